//! A cluster with odd objects and commands: no panic and no endless loop.

use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_sandbox_apiserver::{NODES, PODS, Sandbox};
use kcm_sandbox_cluster::{Cluster, ClusterOptions, PodRules};
use serde_json::{Value, json};

use crate::fuzz::choices::{Choices, hold};
use crate::fuzz::odd;

const WORDS: &[&str] =
    &["start", "pull", "ready", "run", "crash", "finish", "exit", "after", "times", "stop", "", "=", "ü", "crahs", ","];
const SETTINGS: &[&str] = &[
    "",
    "=",
    "=1s",
    "=0s",
    "=0ms",
    "=1s..3s",
    "=3s..1s",
    "=24h",
    "=25h",
    "=1e3s",
    "=.5s",
    "=1..2s",
    "=..",
    "=never",
    "=fails",
    "=stuck",
    "=0",
    "=3",
    "=255",
    "=-1",
    "=4294967295",
    "=4294967296",
    "=nans",
    "=infs",
    "=ü",
    "=1e-300s",
    "=0.0000001ms",
];

fn phrase(choices: &mut Choices) -> String {
    let mut phrase = String::new();
    for _ in 0..=choices.below(4) {
        phrase.push_str(choices.one(WORDS));
        phrase.push_str(choices.one(SETTINGS));
        phrase.push_str(choices.one(&[" ", ",", "  ", "\t", "\u{a0}", "\n"]));
    }
    phrase
}

#[test]
fn odd_rules_are_understood_or_refused() {
    hold(200, 60, |mut choices| async move {
        let mut text = String::from("pods:\n");
        for _ in 0..choices.below(4) {
            let key = choices.one(&["do", "image", "container", "namespace", "labels", "odd", ""]);
            let value = match choices.below(5) {
                0 | 1 => format!("'{}'", phrase(&mut choices)),
                2 => phrase(&mut choices),
                3 => choices
                    .one(&["{app: web}", "*", "'*:*'", "|\n   crash", ">-\n   crahs", "&a x", "*a", "[]", "!!int 1"])
                    .to_owned(),
                _ => choices.one(odd::STRINGS).to_owned(),
            };
            text.extend(["- ", key, ": ", &value, "\n  do: ", phrase(&mut choices).trim(), "\n"]);
        }
        if choices.once_in(3) {
            let end = choices.below(text.len() + 1);
            text.truncate(text.floor_char_boundary(end));
        }
        if let Err(error) = PodRules::parse(&text) {
            assert!(error.to_string().starts_with("line "), "{text}\n{error}");
        }
    });
}

#[test]
fn a_cluster_outlives_odd_pods_nodes_and_commands() {
    hold(35, 400, |mut choices| async move {
        let sandbox = Sandbox::default();
        let rules = PodRules::parse("pods:\n- image: '*:2*'\n  do: crash after=0s\n").expect("the rules are right");
        let options = ClusterOptions { nodes: 2, rules, ..ClusterOptions::default() };
        let cluster = Cluster::start(&sandbox, options);
        for step in 0..12 {
            match choices.below(8) {
                0..=2 => {
                    let pod = pod(&mut choices, &format!("p{step}"));
                    drop(sandbox.create(&PODS, pod));
                }
                3 => command(&mut choices, &cluster),
                4 => disturb_pod(&mut choices, &sandbox),
                5 => disturb_node(&mut choices, &sandbox),
                _ => {}
            }
            let seconds = choices.one(&[0, 1, 5, 60, 400]);
            pass(&sandbox, seconds).await;
        }
        pass(&sandbox, 600).await;
        assert!(cluster.command("pods").is_ok() && cluster.command("nodes").is_ok());
    });
}

/// Advances time; an endless loop exceeds the write limit.
async fn pass(sandbox: &Sandbox, seconds: u64) {
    let version = sandbox.version();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let written = sandbox.version() - version;
    assert!(written < 3_000 + 10 * seconds, "{written} writes in {seconds} seconds");
}

fn command(choices: &mut Choices, cluster: &Cluster) {
    let words =
        ["help", "nodes", "pods", "add", "stop", "start", "cordon", "uncordon", "drain", "lose", "", "ü", "drian"];
    let arguments =
        ["node-1", "node-2", "node-3", "2", "0", "-1", "1001", "99999999999999999999", "default", "nod", "ü", ""];
    let text = match choices.below(4) {
        0 => choices.one(odd::STRINGS).to_owned(),
        1 => choices.one(&words).to_owned(),
        _ => format!("{} {}", choices.one(&words), choices.one(&arguments)),
    };
    // Whatever it says.
    drop(cluster.command(&text));
}

fn disturb_pod(choices: &mut Choices, sandbox: &Sandbox) {
    let pods = sandbox.list(&PODS, Some("default"));
    if pods.is_empty() {
        return;
    }
    let pod = choices.one(&pods);
    let key = ObjectKey::namespaced("default", pod["metadata"]["name"].as_str().unwrap_or_default());
    let patch = match choices.below(6) {
        0 => return drop(sandbox.delete(&PODS, &key)),
        1 => return drop(sandbox.delete_now(&PODS, &key)),
        2 => {
            let mut status = json!({ "status": pod["status"] });
            odd::disturb(choices, &mut status);
            return drop(sandbox.patch_status(&PODS, &key, &status));
        }
        3 => json!({ "metadata": { "finalizers": choices.one(&[&["example.org/a"][..], &[]]) } }),
        4 => json!({ "spec": { "activeDeadlineSeconds": choices.one(&[1, 5, 4_294_967_295_u64]) } }),
        _ => json!({ "metadata": { "annotations": { "sandbox/pod": phrase(choices) } } }),
    };
    drop(sandbox.patch(&PODS, &key, &patch));
}

fn disturb_node(choices: &mut Choices, sandbox: &Sandbox) {
    let nodes = sandbox.list(&NODES, None);
    if nodes.is_empty() {
        return;
    }
    let mut node = choices.one(&nodes);
    let key = ObjectKey::cluster_scoped(node["metadata"]["name"].as_str().unwrap_or_default());
    match choices.below(5) {
        0 => drop(sandbox.delete(&NODES, &key)),
        1 => {
            let effect = choices.one(&["NoSchedule", "NoExecute", "PreferNoSchedule"]);
            let taint = json!({ "key": choices.one(&["a", "example.org/b"]), "value": "v", "effect": effect });
            drop(sandbox.patch(&NODES, &key, &json!({ "spec": { "taints": [taint] } })));
        }
        2 => {
            let amounts = json!({ "cpu": quantity(choices), "memory": quantity(choices), "pods": quantity(choices) });
            drop(sandbox.patch_status(
                &NODES,
                &key,
                &json!({ "status": { "capacity": amounts, "allocatable": amounts } }),
            ));
        }
        3 => {
            odd::disturb(choices, &mut node);
            drop(sandbox.update(&NODES, node));
        }
        _ => {
            let mut status = json!({ "status": node["status"] });
            odd::disturb(choices, &mut status);
            drop(sandbox.patch_status(&NODES, &key, &status));
        }
    }
}

fn quantity(choices: &mut Choices) -> &'static str {
    choices.one(&[
        "1",
        "100m",
        "0",
        "1Gi",
        "9E",
        "8Ei",
        "1n",
        "1e18",
        "9223372036854775807",
        "92233720368547758070",
        "1e-9",
        "0.5",
        "3",
        "170141183460469231731687303715884105727",
        "170141183460469231731687303715884105727n",
        "1e38",
        "12345678901234567890123456789012345678e-9",
    ])
}

/// A pod that is mostly valid, and strange.
fn pod(choices: &mut Choices, name: &str) -> Value {
    let image = choices.one(&["web:1", "web:2", "web:crash", "web:bad", "a@b:c/d", ":", "web:2-slow", "ü"]);
    let mut container = json!({ "name": "main", "image": image });
    let mut pod = json!({ "metadata": { "name": name, "labels": { "app": choices.one(&["web", "db"]) } } });
    let mut spec = json!({});
    for _ in 0..choices.below(6) {
        match choices.below(16) {
            0 => {
                let amounts = json!({ "cpu": quantity(choices), "memory": quantity(choices), "example.org/x": choices.one(&["1", "2"]) });
                let place = choices.one(&["requests", "limits"]);
                container["resources"] = json!({ place: amounts });
            }
            1 => spec["terminationGracePeriodSeconds"] = json!(choices.one(&[0, 1, 30, 100_000, i64::MAX, i64::MIN])),
            2 => spec["activeDeadlineSeconds"] = json!(choices.one(&[1, 60, 2_147_483_647])),
            3 => spec["restartPolicy"] = json!(choices.one(&["Never", "OnFailure", "Always"])),
            4 => {
                let seconds =
                    choices.one(&[json!(0), json!(5), json!(-5), json!(i64::MAX), json!(i64::MIN), Value::Null]);
                let toleration = json!({
                    "key": choices.one(&["a", "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"]),
                    "operator": choices.one(&["Exists", "Exists", "Equal", "Lt", "Gt"]), "effect": "NoExecute", "tolerationSeconds": seconds,
                });
                spec["tolerations"] = json!([toleration]);
            }
            5 => spec["nodeSelector"] = json!({ "kubernetes.io/hostname": choices.one(&["node-1", "node-9"]) }),
            6 => {
                let operator = choices.one(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);
                let values = choices.one(&[&["1"][..], &["9223372036854775808"], &[], &["node-1", "x"], &["-1"]]);
                let key = choices.one(&["kubernetes.io/hostname", "none", "kubernetes.io/os"]);
                let expressions = json!([{ "key": key, "operator": operator, "values": values }]);
                let term = json!({ choices.one(&["matchExpressions", "matchFields"]): expressions });
                spec["affinity"]["nodeAffinity"] =
                    json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] } });
            }
            7 | 8 => {
                let how = choices.one(&["podAffinity", "podAntiAffinity"]);
                let selector = choices.one(&[json!({ "matchLabels": { "app": "web" } }), json!({}), Value::Null]);
                let topology = choices.one(&["kubernetes.io/hostname", "none"]);
                let term = json!({ "labelSelector": selector, "topologyKey": topology });
                spec["affinity"][how] = json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] });
            }
            9 => {
                let skew = choices.one(&[1, i32::MAX]);
                spec["topologySpreadConstraints"] = json!([{
                    "maxSkew": skew, "topologyKey": choices.one(&["kubernetes.io/hostname", "none"]), "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": { "matchLabels": { "app": "web" } }, "minDomains": choices.one(&[1, i32::MAX]),
                }]);
            }
            10 => {
                let seconds = choices.one(&[1, 60, i32::MAX]);
                let probe = json!({
                    "tcpSocket": { "port": 80 }, "initialDelaySeconds": seconds, "periodSeconds": seconds, "successThreshold": choices.one(&[1, i32::MAX]),
                });
                container[choices.one(&["readinessProbe", "startupProbe"])] = probe;
            }
            11 => {
                let policy = choices.one(&[json!("Always"), Value::Null]);
                spec["initContainers"] = json!([{ "name": "i", "image": "i:1", "restartPolicy": policy }]);
            }
            12 => container["ports"] = json!([{ "containerPort": 80, "hostPort": choices.one(&[80, 65_535]) }]),
            13 => spec["readinessGates"] = json!([{ "conditionType": "a" }]),
            14 => spec["schedulingGates"] = json!([{ "name": "a" }]),
            _ => {
                let annotation =
                    choices.one(&["sandbox/pod", "sandbox/container.main", "sandbox/container.", "sandbox/odd"]);
                pod["metadata"]["annotations"] = json!({ annotation: phrase(choices) });
            }
        }
    }
    spec["containers"] = json!([container]);
    pod["spec"] = spec;
    if choices.once_in(5) {
        odd::disturb(choices, &mut pod);
    }
    pod
}
