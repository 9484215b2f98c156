use kcm_api::ObjectKey;

use super::super::wants;
use super::*;

/// A node with 4 CPUs and capacity for 10 pods.
fn node(name: &str, zone: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name, "zone": zone } },
        "status": { "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "10", "example.com/gpu": "1" } },
    })
}

fn pod(spec: &Value) -> Value {
    json!({ "metadata": { "namespace": "default", "labels": { "app": "web" } }, "spec": spec })
}

fn requests(resource: &str, amount: &str) -> Value {
    pod(&json!({ "containers": [{ "resources": { "requests": { resource: amount } } }] }))
}

/// Nodes, the pods on them, and a pod to schedule.
struct Case {
    nodes: Vec<Value>,
    placed: Vec<(&'static str, Value)>,
}

impl Case {
    fn new(nodes: Vec<Value>) -> Self {
        Self { nodes, placed: Vec::new() }
    }

    fn with(mut self, node: &'static str, pod: Value) -> Self {
        self.placed.push((node, pod));
        self
    }

    fn choose(&self, pod: &Value) -> Result<String, String> {
        let mut nodes: BTreeMap<Arc<str>, Node> =
            self.nodes.iter().map(|node| (json::name(node).into(), Node::new(node))).collect();
        let mut placed = Placed::default();
        for (at, (name, pod)) in self.placed.iter().enumerate() {
            let wants = Arc::new(wants::read(pod));
            nodes.get_mut(*name).expect("the node is there").take(&wants);
            placed.insert(&ObjectKey::namespaced("default", at.to_string()), &(*name).into(), &wants);
        }
        choose(&nodes, &mut placed, &wants::read(pod), Dice::new(1), "u").map(|name| name.to_string())
    }
}

/// The reasons in a message, without the preemption part.
fn reasons(answer: &str) -> &str {
    let rest = answer.split_once(": ").map_or(answer, |(_, rest)| rest);
    rest.split_once(". preemption").map_or(rest, |(reasons, _)| reasons)
}

#[test]
fn allocated_resources_are_not_allocated_twice() {
    let case = || Case::new(vec![node("a", "x")]);
    for (name, case, pod, expected) in [
        ("fits exactly", case(), requests("cpu", "4"), Ok("a")),
        ("too large", case(), requests("cpu", "4001m"), Err("1 Insufficient cpu")),
        ("taken", case().with("a", requests("cpu", "1")), requests("cpu", "3500m"), Err("1 Insufficient cpu")),
        ("unknown resource", case(), requests("example.com/fpga", "1"), Err("1 Insufficient example.com/fpga")),
        ("extended resource", case(), requests("example.com/gpu", "1"), Ok("a")),
        (
            "extended resource taken",
            case().with("a", requests("example.com/gpu", "1")),
            requests("example.com/gpu", "1"),
            Err("1 Insufficient example.com/gpu"),
        ),
        (
            "several reasons",
            (0..10).fold(case(), |case, _| case.with("a", requests("cpu", "300m"))),
            requests("cpu", "2"),
            Err("1 Insufficient cpu, 1 Too many pods"),
        ),
    ] {
        let answer = case.choose(&pod);
        let answer = answer.as_deref().map_err(|answer| reasons(answer));
        assert_eq!(answer, expected, "{name}");
    }
}

#[test]
fn the_node_with_least_allocated_is_chosen() {
    let case = Case::new(vec![node("a", "x"), node("b", "x"), node("c", "x")])
        .with("a", requests("cpu", "2"))
        .with("b", requests("cpu", "1"))
        .with("c", requests("cpu", "3"));
    assert_eq!(case.choose(&requests("cpu", "500m")).as_deref(), Ok("b"));
}

#[test]
fn host_ports_are_exclusive() {
    let port = |address: &str, port: i64| {
        pod(&json!({ "containers": [{ "ports": [{ "hostPort": port, "hostIP": address }] }] }))
    };
    let case = || Case::new(vec![node("a", "x")]).with("a", port("10.0.0.1", 80));
    for (wanted, expected) in [
        (port("", 80), Err("1 node(s) didn't have free ports for the requested pod ports")),
        (port("10.0.0.1", 80), Err("1 node(s) didn't have free ports for the requested pod ports")),
        (port("10.0.0.2", 80), Ok("a")),
        (port("", 81), Ok("a")),
    ] {
        let answer = case().choose(&wanted);
        assert_eq!(answer.as_deref().map_err(|answer| reasons(answer)), expected, "{wanted}");
    }
}

#[test]
fn node_affinity_expressions_match_as_upstream() {
    for (operator, values, value, expected) in [
        ("In", vec!["a"], Some("a"), true),
        ("In", vec!["a"], None, false),
        ("NotIn", vec!["a"], Some("b"), true),
        ("NotIn", vec!["a"], None, true),
        ("Exists", vec![], Some(""), true),
        ("DoesNotExist", vec![], Some(""), false),
        ("Gt", vec!["5"], Some("6"), true),
        ("Gt", vec!["5"], Some("x"), false),
        ("Lt", vec!["5"], Some("4"), true),
        ("Lt", vec!["5"], None, false),
        ("Near", vec!["5"], Some("5"), false),
    ] {
        let values = values.into_iter().map(str::to_owned).collect();
        let expression = Expression { key: "k".to_owned(), operator: operator.to_owned(), values };
        assert_eq!(holds(&expression, value), expected, "{expression:?} {value:?}");
    }
}

#[test]
fn spread_is_bounded_over_zones() {
    let spread = pod(&json!({
        "containers": [],
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "web" } },
        }],
    }));
    let nodes = || vec![node("a", "x"), node("b", "x"), node("c", "y")];
    let one = || Case::new(nodes()).with("a", spread.clone());
    assert_eq!(one().choose(&spread).as_deref(), Ok("c"));
    let mut missing = node("d", "z");
    missing["metadata"]["labels"] = json!({});
    let full = Case::new(vec![node("a", "x"), missing]);
    assert_eq!(full.choose(&spread).as_deref(), Ok("a"), "a node without the label is no place");
}

#[test]
fn zones_are_kept_apart_by_both_sides() {
    let apart = pod(&json!({
        "containers": [],
        "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": "web" } },
        }] } },
    }));
    let plain = pod(&json!({ "containers": [] }));
    let nodes = || vec![node("a", "x"), node("b", "x"), node("c", "y")];
    let with_apart = Case::new(nodes()).with("a", apart.clone());
    assert_eq!(with_apart.choose(&apart).as_deref(), Ok("c"));
    assert_eq!(with_apart.choose(&plain).as_deref(), Ok("c"), "the pod that is there keeps others away");
    assert_eq!(Case::new(nodes()).with("a", plain).choose(&apart).as_deref(), Ok("c"));
}

#[test]
fn the_first_pod_of_a_group_satisfies_its_own_affinity() {
    let near = pod(&json!({
        "containers": [],
        "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": "web" } },
        }] } },
    }));
    let nodes = || vec![node("a", "x"), node("b", "y")];
    assert!(Case::new(nodes()).choose(&near).is_ok());
    assert_eq!(Case::new(nodes()).with("b", near.clone()).choose(&near).as_deref(), Ok("b"));
}

#[test]
fn counts_follow_what_is_placed_and_removed() {
    let mut placed = Placed::default();
    let wants = Arc::new(wants::read(&requests("cpu", "1")));
    let group = wants::Group { namespaces: Vec::new(), selector: "{\"matchLabels\":{\"app\":\"web\"}}".to_owned() };
    let key = |name: &str| ObjectKey::namespaced("default", name);
    placed.insert(&key("1"), &"a".into(), &wants);
    assert_eq!(placed.counts(&group).get("a"), Some(&1));
    placed.insert(&key("2"), &"a".into(), &wants);
    placed.insert(&key("3"), &"b".into(), &wants);
    placed.remove(&key("1"));
    placed.remove(&key("3"));
    assert_eq!(placed.counts(&group).iter().map(|(node, count)| (&**node, *count)).collect::<Vec<_>>(), [("a", 1)]);
}
