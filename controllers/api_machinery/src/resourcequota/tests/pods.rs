//! What pods add to the usage of a quota, and in which scopes they are.

use std::sync::Arc;

use kcm_framework::api::views::Pod;
use serde_json::{Value, json};

use super::{GATES, now, pod, reader, used};
use crate::resourcequota::evaluator::Evaluator;
use crate::resourcequota::evaluator::pods::{CountedPod, PodConstraint};
use crate::resourcequota::observe::Content;
use crate::resourcequota::settings::Gates;

fn container(requests: &Value, limits: &Value) -> Value {
    json!({ "name": "main", "resources": { "requests": requests, "limits": limits } })
}

fn usage(constraints: &[&str], spec: &Value, status: &Value, gates: Gates) -> Vec<String> {
    let pods = Content::Pods(vec![pod("pod", spec, status)]);
    used(constraints, json!({}), Evaluator::Pods, pods, gates)
}

const CONSTRAINTS: [&str; 15] = [
    "count/pods",
    "cpu",
    "ephemeral-storage",
    "hugepages-2Mi",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "pods",
    "requests.cpu",
    "requests.deviceclass.resource.kubernetes.io/gpu",
    "requests.ephemeral-storage",
    "requests.example.com/dongle",
    "requests.hugepages-2Mi",
    "requests.memory",
];

/// The usage of a running pod, without what is zero.
fn counted(spec: &Value) -> String {
    let mut used = usage(&CONSTRAINTS, spec, &json!({ "phase": "Running" }), GATES);
    used.retain(|used| !used.ends_with("=0"));
    used.join(" ")
}

#[test]
fn a_pod_counts_as_what_its_containers_request() {
    assert_eq!(counted(&json!({ "containers": [{ "name": "main" }] })), "count/pods=1 pods=1");
    let requests = json!({
        "cpu": "1m", "memory": "1Mi", "ephemeral-storage": "32Mi", "hugepages-2Mi": "100Mi", "example.com/dongle": "3",
        "deviceclass.resource.kubernetes.io/gpu": "2",
    });
    let limits = json!({ "cpu": "2m", "memory": "2Mi", "ephemeral-storage": "64Mi", "hugepages-2Mi": "100Mi" });
    assert_eq!(
        counted(&json!({ "containers": [container(&requests, &limits)] })),
        "count/pods=1 cpu=1m ephemeral-storage=32Mi hugepages-2Mi=100Mi limits.cpu=2m limits.ephemeral-storage=64Mi \
         limits.memory=2Mi memory=1Mi pods=1 requests.cpu=1m requests.deviceclass.resource.kubernetes.io/gpu=2 \
         requests.ephemeral-storage=32Mi requests.example.com/dongle=3 requests.hugepages-2Mi=100Mi requests.memory=1Mi"
    );
}

#[test]
fn the_most_of_an_init_container_counts_where_it_exceeds_the_sum_of_containers() {
    let list = |cpu: &str, memory: &str, dongles: &str| {
        json!({
            "cpu": cpu, "memory": memory, "example.com/dongle": dongles,
            "deviceclass.resource.kubernetes.io/gpu": dongles,
        })
    };
    let spec = json!({
        "initContainers": [
            container(&list("4", "100M", "4"), &list("8", "200M", "4")),
            container(&list("1", "50M", "2"), &list("2", "100M", "2")),
        ],
        "containers": [
            container(&list("1", "50M", "1"), &list("2", "100M", "1")),
            container(&list("2", "25M", "2"), &list("5", "50M", "2")),
        ],
    });
    assert_eq!(
        counted(&spec),
        "count/pods=1 cpu=4 limits.cpu=8 limits.memory=200M memory=100M pods=1 requests.cpu=4 \
         requests.deviceclass.resource.kubernetes.io/gpu=4 requests.example.com/dongle=4 requests.memory=100M"
    );
}

#[test]
fn an_init_container_runs_beside_the_sidecars_before_it() {
    let sidecar = |cpu: &str| {
        let resources = json!({ "requests": { "cpu": cpu }, "limits": { "cpu": cpu } });
        json!({ "name": "side", "restartPolicy": "Always", "resources": resources })
    };
    let requesting = |cpu: &str| container(&json!({ "cpu": cpu }), &json!({}));
    let spec = json!({
        "initContainers": [sidecar("1"), requesting("3"), sidecar("2"), requesting("500m")],
        "containers": [requesting("100m")],
    });
    assert_eq!(counted(&spec), "count/pods=1 cpu=4 limits.cpu=3 pods=1 requests.cpu=4");
}

#[test]
fn an_overhead_is_added_to_requests_and_to_limits_that_there_are() {
    let spec = json!({
        "overhead": { "cpu": "1", "memory": "1Gi" },
        "containers": [container(&json!({ "cpu": "1", "memory": "2Gi" }), &json!({ "cpu": "2" }))],
    });
    assert_eq!(counted(&spec), "count/pods=1 cpu=2 limits.cpu=3 memory=3Gi pods=1 requests.cpu=2 requests.memory=3Gi");
}

#[test]
fn what_a_pod_requests_as_a_whole_replaces_what_its_containers_request() {
    let requests = json!({ "cpu": "1", "ephemeral-storage": "1Gi", "example.com/dongle": "1" });
    let spec = json!({
        "resources": { "requests": { "cpu": "5", "example.com/dongle": "9" }, "limits": { "memory": "9Gi" } },
        "containers": [container(&requests, &json!({ "memory": "1Gi" }))],
    });
    assert_eq!(
        counted(&spec),
        "count/pods=1 cpu=5 ephemeral-storage=1Gi limits.memory=9Gi pods=1 requests.cpu=5 requests.ephemeral-storage=1Gi \
         requests.example.com/dongle=1"
    );
}

#[test]
fn the_gate_of_pod_level_resources_decides_whether_they_count() {
    let spec = json!({
        "resources": { "requests": { "cpu": "5" } },
        "containers": [container(&json!({ "cpu": "1" }), &json!({}))],
    });
    for (is_on, expected) in [(true, "requests.cpu=5"), (false, "requests.cpu=1")] {
        let gates = Gates { pod_level_resources: is_on, ..GATES };
        assert_eq!(usage(&["requests.cpu"], &spec, &json!({}), gates), [expected]);
    }
}

#[test]
fn during_a_resize_the_most_of_spec_and_status_counts() {
    let status = |actuated: Value, allocated: Value, reason: &str| {
        json!({
            "containerStatuses": [{ "name": "main", "resources": actuated, "allocatedResources": allocated }],
            "conditions": [{ "type": "PodResizePending", "status": "True", "reason": reason }],
        })
    };
    let cpu = |quantity: &str| json!({ "requests": { "cpu": quantity }, "limits": { "cpu": quantity } });
    for (name, status, with_gate, without_gate) in [
        ("no status yet", json!({}), ["limits.cpu=2", "requests.cpu=2"], ["limits.cpu=2", "requests.cpu=2"]),
        (
            "a status without resources",
            status(Value::Null, json!({ "cpu": "9" }), ""),
            ["limits.cpu=2", "requests.cpu=9"],
            ["limits.cpu=2", "requests.cpu=2"],
        ),
        (
            "more is in use",
            status(cpu("4"), json!({ "cpu": "3" }), "Deferred"),
            ["limits.cpu=4", "requests.cpu=4"],
            ["limits.cpu=2", "requests.cpu=2"],
        ),
        (
            "more is allocated",
            status(cpu("1"), json!({ "cpu": "3" }), "Deferred"),
            ["limits.cpu=2", "requests.cpu=3"],
            ["limits.cpu=2", "requests.cpu=2"],
        ),
        (
            "the resize is infeasible",
            status(cpu("1"), json!({ "cpu": "1500m" }), "Infeasible"),
            ["limits.cpu=1", "requests.cpu=1500m"],
            ["limits.cpu=2", "requests.cpu=2"],
        ),
    ] {
        let spec = json!({ "containers": [container(&json!({ "cpu": "2" }), &json!({ "cpu": "2" }))] });
        for (in_place_resize, expected) in [(true, with_gate), (false, without_gate)] {
            let gates = Gates { in_place_resize, ..GATES };
            assert_eq!(usage(&["limits.cpu", "requests.cpu"], &spec, &status, gates), expected, "{name}");
        }
    }
}

/// kubernetes#140047
#[test]
fn during_a_resize_the_maximum_of_sums_counts_and_not_the_sum_of_maxima() {
    let resources = |cpu: &str| json!({ "requests": { "cpu": cpu }, "limits": { "cpu": cpu } });
    let named = |name: &str, cpu: &str| json!({ "name": name, "resources": resources(cpu) });
    let sidecar =
        |name: &str, cpu: &str| json!({ "name": name, "restartPolicy": "Always", "resources": resources(cpu) });
    let allocated = |name: &str, cpu: &str| json!({ "name": name, "allocatedResources": { "cpu": cpu } });
    let in_use = |name: &str, cpu: &str| json!({ "name": name, "resources": resources(cpu) });
    let both = |name: &str, used: &str, allocated: &str| json!({ "name": name, "resources": resources(used), "allocatedResources": { "cpu": allocated } });
    let infeasible = json!([{ "type": "PodResizePending", "status": "True", "reason": "Infeasible" }]);
    let two = json!({ "containers": [named("a", "1"), named("b", "2")] });
    let with_init = |init: Value| json!({ "containers": [named("a", "1")], "initContainers": [init] });
    for (name, spec, status, expected) in [
        (
            "one container gets what another gives, by allocation",
            &two,
            json!({ "containerStatuses": [allocated("a", "2"), allocated("b", "1")] }),
            ["limits.cpu=3", "requests.cpu=3"],
        ),
        (
            "and by use",
            &two,
            json!({ "containerStatuses": [in_use("a", "2"), in_use("b", "1")] }),
            ["limits.cpu=3", "requests.cpu=3"],
        ),
        (
            "and by both",
            &two,
            json!({ "containerStatuses": [both("a", "2", "2"), both("b", "1", "1")] }),
            ["limits.cpu=3", "requests.cpu=3"],
        ),
        (
            "a container without a status counts by its spec",
            &two,
            json!({ "containerStatuses": [both("a", "4", "3")] }),
            ["limits.cpu=6", "requests.cpu=6"],
        ),
        (
            "what is in use is what is allocated, if it is not reported",
            &two,
            json!({ "containerStatuses": [allocated("a", "4"), allocated("b", "4")] }),
            ["limits.cpu=3", "requests.cpu=8"],
        ),
        (
            "an infeasible resize leaves the spec out",
            &two,
            json!({ "conditions": infeasible, "containerStatuses": [both("a", "1", "1"), both("b", "500m", "250m")] }),
            ["limits.cpu=1500m", "requests.cpu=1500m"],
        ),
        (
            "and a container without a status too",
            &two,
            json!({ "conditions": infeasible, "containerStatuses": [allocated("a", "1")] }),
            ["limits.cpu=0", "requests.cpu=1"],
        ),
        (
            "a status of an init container that ends counts",
            &with_init(named("init", "2")),
            json!({ "initContainerStatuses": [allocated("init", "5")] }),
            ["limits.cpu=2", "requests.cpu=5"],
        ),
        (
            "a status of a sidecar counts beside the containers",
            &with_init(sidecar("side", "2")),
            json!({ "initContainerStatuses": [both("side", "5", "4")] }),
            ["limits.cpu=6", "requests.cpu=6"],
        ),
        (
            "of two statuses of a name the first counts",
            &two,
            json!({ "containerStatuses": [allocated("a", "5"), allocated("a", "9")],
                "initContainerStatuses": [allocated("a", "7")] }),
            ["limits.cpu=3", "requests.cpu=7"],
        ),
        (
            "another first condition of a pending resize",
            &two,
            json!({ "conditions": [
                { "type": "PodResizePending", "status": "True", "reason": "Deferred" }, infeasible[0],
            ], "containerStatuses": [both("a", "500m", "500m")] }),
            ["limits.cpu=3", "requests.cpu=3"],
        ),
    ] {
        assert_eq!(usage(&["limits.cpu", "requests.cpu"], spec, &status, GATES), expected, "{name}");
    }
}

#[test]
fn a_pod_without_a_class_in_its_status_is_best_effort_by_its_own_resources_only_if_they_count() {
    let requesting = json!([container(&json!({ "cpu": "1" }), &json!({}))]);
    let dongle = json!({ "requests": { "example.com/dongle": "1" } });
    let pages = json!({ "requests": { "hugepages-2Mi": "2Mi" } });
    for (name, of_pod, with_fix, without_fix) in [
        ("no resources of the pod", Value::Null, 0, 0),
        ("resources that do not count", dongle, 0, 1),
        ("huge pages, which are neither CPU nor memory", pages, 1, 1),
    ] {
        let spec = json!({ "containers": requesting, "resources": of_pod });
        for (pod_level_qos_fix, expected) in [(true, with_fix), (false, without_fix)] {
            let pods = Content::Pods(vec![pod("pod", &spec, &json!({}))]);
            let gates = Gates { pod_level_qos_fix, ..GATES };
            let scope = json!({ "scopes": ["BestEffort"] });
            let found = used(&["count/pods"], scope, Evaluator::Pods, pods, gates);
            assert_eq!(found, [format!("count/pods={expected}")], "{name}, fix {pod_level_qos_fix}");
        }
    }
}

/// A pod with a deletion timestamp and a grace period, in a phase.
fn dying(phase: &str, deleted: Option<&str>, grace: i64) -> Arc<Pod> {
    let mut object = json!({
        "metadata": { "namespace": "shop", "name": "pod" }, "status": { "phase": phase },
        "spec": { "containers": [container(&json!({ "cpu": "1" }), &json!({}))] },
    });
    if let Some(deleted) = deleted {
        object["metadata"]["deletionTimestamp"] = json!(deleted);
        object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
    }
    super::decode(&object)
}

#[test]
fn a_pod_that_has_ended_counts_as_an_object_alone() {
    let charged = ["count/pods=1", "pods=1", "requests.cpu=1"];
    let stored = ["count/pods=1", "pods=0", "requests.cpu=0"];
    for (name, pod, expected) in [
        ("pending", dying("Pending", None, 0), charged),
        ("unknown", dying("Unknown", None, 0), charged),
        ("succeeded", dying("Succeeded", None, 0), stored),
        ("failed", dying("Failed", None, 0), stored),
        ("terminating", dying("Running", Some("2026-01-02T11:59:50Z"), 30), charged),
        ("terminating for just its grace period", dying("Running", Some("2026-01-02T11:59:30Z"), 30), charged),
        ("terminating for longer than its grace period", dying("Running", Some("2026-01-02T11:59:29Z"), 30), stored),
    ] {
        let pods = Content::Pods(vec![pod]);
        let found = used(&["count/pods", "pods", "requests.cpu"], json!({}), Evaluator::Pods, pods, GATES);
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn only_constraints_of_pods_are_counted() {
    for constraint in [
        "requests.storage",
        "services",
        "count/pods.example.com",
        "limits.example.com/dongle",
        "example.com/dongle",
        "requests.kubernetes.io/thing",
        "gold.storageclass.storage.k8s.io/requests.storage",
        "requests.dongle",
        "limits.hugepages-2Mi",
    ] {
        assert_eq!(PodConstraint::parse(constraint), None, "{constraint}");
    }
}

#[test]
fn a_pod_counts_where_it_is_in_all_scopes() {
    let named = |name: &str| json!({ "scopes": [name] });
    let selected = |operator: &str, values: &[&str]| {
        json!({ "scopeSelector": { "matchExpressions": [
            { "scopeName": "PriorityClass", "operator": operator, "values": values },
        ] } })
    };
    let affinity = |kind: &str, term: Value| json!({ "affinity": { kind: term } });
    let plain = json!({ "containers": [{ "name": "main" }] });
    let high = json!({ "priorityClassName": "high" });
    let deadline = json!({ "activeDeadlineSeconds": 0 });
    let requesting = json!({ "containers": [container(&json!({ "memory": "1" }), &json!({}))] });
    let limited = json!({ "initContainers": [container(&json!({}), &json!({ "cpu": "1m" }))] });
    let zero = json!({ "containers": [container(&json!({ "cpu": "0", "example.com/dongle": "1" }), &json!({}))] });
    let of_pod = json!({ "resources": { "requests": { "cpu": "1" } } });
    let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": [{ "namespaces": ["other"] }] });
    let preferred = json!({ "preferredDuringSchedulingIgnoredDuringExecution": [
        { "weight": 1, "podAffinityTerm": { "topologyKey": "zone" } },
        { "weight": 1, "podAffinityTerm": { "namespaceSelector": {} } },
    ] });
    let within =
        json!({ "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "zone", "namespaces": [] }] });
    let status = json!({});
    let long = "x".repeat(100);
    for (name, scope, spec, status, is_counted) in [
        ("no deadline", named("Terminating"), &plain, &status, false),
        ("a deadline", named("Terminating"), &deadline, &status, true),
        ("no deadline", named("NotTerminating"), &plain, &status, true),
        ("a deadline", named("NotTerminating"), &deadline, &status, false),
        ("no requests", named("BestEffort"), &plain, &status, true),
        ("requests of nothing that counts", named("BestEffort"), &zero, &status, true),
        ("requests", named("BestEffort"), &requesting, &status, false),
        ("limits of an init container", named("BestEffort"), &limited, &status, false),
        ("requests of the pod", named("BestEffort"), &of_pod, &status, false),
        ("requests", named("NotBestEffort"), &requesting, &status, true),
        ("the status knows the class", named("BestEffort"), &requesting, &json!({ "qosClass": "BestEffort" }), true),
        ("the status knows the class", named("NotBestEffort"), &plain, &json!({ "qosClass": "Guaranteed" }), true),
        ("a priority class", named("PriorityClass"), &high, &status, true),
        ("no priority class", named("PriorityClass"), &plain, &status, false),
        ("class exists", selected("Exists", &[]), &high, &status, true),
        ("class does not exist", selected("DoesNotExist", &[]), &high, &status, false),
        ("no class", selected("DoesNotExist", &[]), &plain, &status, true),
        ("one of these", selected("In", &["low", "high"]), &high, &status, true),
        ("none of these", selected("In", &["low"]), &high, &status, false),
        ("no class is none of these", selected("In", &["low"]), &plain, &status, false),
        ("not in", selected("NotIn", &["low"]), &high, &status, true),
        ("not in, without a class", selected("NotIn", &["low"]), &plain, &status, true),
        ("in what it should not be", selected("NotIn", &["high"]), &high, &status, false),
        ("a name longer than a label", selected("In", &[&long]), &json!({ "priorityClassName": long }), &status, true),
        ("no affinity", named("CrossNamespacePodAffinity"), &plain, &status, false),
        ("within", named("CrossNamespacePodAffinity"), &affinity("podAffinity", within.clone()), &status, false),
        ("required", named("CrossNamespacePodAffinity"), &affinity("podAffinity", required.clone()), &status, true),
        ("preferred", named("CrossNamespacePodAffinity"), &affinity("podAffinity", preferred.clone()), &status, true),
        ("required", named("CrossNamespacePodAffinity"), &affinity("podAntiAffinity", required), &status, true),
        ("preferred", named("CrossNamespacePodAffinity"), &affinity("podAntiAffinity", preferred), &status, true),
        ("all of several", json!({ "scopes": ["NotTerminating", "PriorityClass"] }), &high, &status, true),
        ("one of several", json!({ "scopes": ["Terminating", "PriorityClass"] }), &high, &status, false),
        ("a scope of claims", named("VolumeAttributesClass"), &plain, &status, false),
    ] {
        let pods = Content::Pods(vec![pod("pod", spec, status)]);
        let found = used(&["count/pods"], scope.clone(), Evaluator::Pods, pods, GATES);
        assert_eq!(found, [format!("count/pods={}", u8::from(is_counted))], "{name}: {scope}");
    }
}

fn counted_pod(pod: &Pod) -> CountedPod<'_> {
    CountedPod { pod, fields: &reader().of(pod).fields }
}

#[test]
fn an_update_replenishes_where_it_may_free_resources() {
    let running = json!({ "phase": "Running" });
    let spec = json!({ "containers": [container(&json!({ "cpu": "2" }), &json!({}))] });
    let in_use = |cpu: &str| json!({ "phase": "Running", "containerStatuses": [{ "name": "main", "resources": { "requests": { "cpu": cpu } } }] });
    let mut with_deadline = spec.clone();
    with_deadline["activeDeadlineSeconds"] = json!(5);
    let before = pod("pod", &spec, &running);
    for (name, old, new, expected, without_gate) in [
        ("nothing changes", &before, pod("pod", &spec, &running), false, false),
        (
            "it is bound",
            &before,
            pod("pod", &json!({ "nodeName": "node", "containers": spec["containers"] }), &running),
            false,
            false,
        ),
        ("it fails", &before, pod("pod", &spec, &json!({ "phase": "Failed" })), true, true),
        ("it gets a deadline", &before, pod("pod", &with_deadline, &running), true, true),
        ("the first status", &before, pod("pod", &spec, &in_use("2")), false, false),
        ("more is in use", &before, pod("pod", &spec, &in_use("3")), true, false),
        ("less is in use", &pod("pod", &spec, &in_use("3")), pod("pod", &spec, &in_use("2")), true, false),
    ] {
        let replenishes = |gates: Gates| counted_pod(&new).replenishes(&counted_pod(old), gates, now());
        assert_eq!(replenishes(GATES), expected, "{name}");
        assert_eq!(replenishes(Gates { in_place_resize: false, ..GATES }), without_gate, "{name}, without the gate");
    }
}
