//! Requests of a pod, as horizontal pod autoscalers read them.

use kcm_api::views::{AutoscaledPod, Pod};
use kcm_api::{Need, Needs, ResourceList, View as _};
use serde_json::{Value, json};

/// Returns the requests of the containers by their names, and the request of the pod as a whole.
fn requests(spec: &Value) -> (Vec<(String, String)>, Option<String>) {
    let needs: Needs = [Need::part::<AutoscaledPod>()].into_iter().collect();
    let object = json!({ "metadata": { "namespace": "shop", "name": "web" }, "spec": spec });
    let pod = Pod::decode(&object.to_string()).expect("it is a pod");
    let found = &needs.reader::<AutoscaledPod>().expect("the part is needed").of(&pod).requests;
    let shown = |list: &ResourceList| {
        let mut shown: Vec<_> = list.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect();
        shown.sort();
        shown.join(" ")
    };
    let containers = found.containers.iter().map(|(name, list)| (name.to_string(), shown(list))).collect();
    (containers, found.pod_level.as_ref().map(shown))
}

fn container(name: &str, requests: &Value) -> Value {
    json!({ "name": name, "resources": { "requests": requests } })
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, list)| ((*name).to_owned(), (*list).to_owned())).collect()
}

#[test]
fn init_containers_count_where_they_are_always_restarted() {
    let mut sidecar = container("proxy", &json!({ "cpu": "50m" }));
    sidecar["restartPolicy"] = json!("Always");
    let spec = json!({
        "containers": [container("main", &json!({ "cpu": "100m", "memory": "1Mi" })), { "name": "bare" }],
        "initContainers": [container("migrate", &json!({ "cpu": "4" })), sidecar],
    });
    let (containers, pod_level) = requests(&spec);
    assert_eq!(containers, pairs(&[("main", "cpu=100m memory=1Mi"), ("bare", ""), ("proxy", "cpu=50m")]));
    assert_eq!(pod_level, None, "the pod requests nothing as a whole");
}

#[test]
fn what_a_pod_requests_as_a_whole_goes_before_its_containers_and_has_its_overhead() {
    let main = container("main", &json!({ "cpu": "100m", "memory": "1Mi" }));
    for (name, resources, overhead, expected) in [
        ("one resource, the other of the containers", json!({ "cpu": "1" }), json!({}), Some("cpu=1 memory=1Mi")),
        ("both", json!({ "cpu": "1", "memory": "2Mi" }), json!({}), Some("cpu=1 memory=2Mi")),
        (
            "with overhead",
            json!({ "cpu": "1" }),
            json!({ "cpu": "10m", "memory": "1Mi" }),
            Some("cpu=1010m memory=2Mi"),
        ),
        ("huge pages", json!({ "hugepages-2Mi": "4Mi" }), json!({}), Some("cpu=100m hugepages-2Mi=4Mi memory=1Mi")),
        ("a name that pods do not support", json!({ "example.com/lamp": "1" }), json!({}), None),
        (
            "beside one that they do",
            json!({ "cpu": "1", "example.com/lamp": "1" }),
            json!({}),
            Some("cpu=1 memory=1Mi"),
        ),
        ("nothing", json!({}), json!({ "cpu": "10m" }), None),
    ] {
        let spec = json!({ "containers": [main], "resources": { "requests": resources }, "overhead": overhead });
        assert_eq!(requests(&spec).1.as_deref(), expected, "{name}");
    }
}
