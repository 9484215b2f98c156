//! Views: the fields that are read, and that no response of a server breaks the reader.

use jiff::{SignedDuration, Timestamp};
use kcm_api::views::{
    DaemonSet, DaemonSetUpdateStrategy, Deployment, Job, JobCompletion, Lease, Namespace, NamespacePhase, Node,
    NodeConditionStatus, NodeHealth, NodePodCidrs, NodeVolumes, Pod, PodDisruption, PodInlineVolumes, PodPhase,
    PodTargetNode, PodTermination, PodTolerations, Readiness, ReplicaSet, ReplicaSetView, ReplicationControllerView,
};
use kcm_api::{
    ConditionStatus, InvalidSelector, KnownView, Labels, Meta, Need, Needs, PartialObjectMeta, Selector, Typed, Uid,
    View,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const POD: &str = include_str!("../../fixtures/pod.json");
const REPLICA_SET: &str = include_str!("../../fixtures/replica_set.json");

fn pod(object: &Value) -> Pod {
    Pod::decode(&object.to_string()).expect("the case must be a pod")
}

fn at(time: &str) -> Timestamp {
    time.parse().expect("the case must be a time")
}

#[test]
fn metadata_is_read() {
    let Meta {
        key,
        uid,
        resource_version,
        generation,
        creation_timestamp,
        deletion_timestamp,
        labels,
        annotations,
        ..
    } = Pod::decode(POD).unwrap().metadata;
    assert_eq!(key.to_string(), "shop/checkout-7d9c5b8f6d-x2k9w");
    assert_eq!(uid, Uid::from("6f1e2d3c-4b5a-4978-8a6b-5c4d3e2f1a0b"));
    assert_eq!(resource_version.to_string(), "48213377");
    assert_eq!(generation, 1);
    assert_eq!(creation_timestamp, Some(at("2026-03-01T09:15:02Z")));
    assert_eq!(deletion_timestamp, None);
    assert_eq!(labels.get("tier"), Some("backend"));
    assert_eq!(labels.len(), 4);
    assert!(annotations.is_empty(), "annotations that no decision reads are not kept: {annotations:?}");
}

#[test]
fn the_annotations_of_decisions_are_kept() {
    let cost = "controller.kubernetes.io/pod-deletion-cost";
    let pod = pod(&json!({"metadata": {"annotations": {"a": "b", cost: "10"}}}));
    assert_eq!(pod.metadata.annotations, [(cost, "10")].into_iter().collect::<Labels>());
}

#[test]
fn the_first_owner_that_controls_is_the_controller() {
    let owners = json!([
        {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"},
        {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "2", "controller": true},
        {"apiVersion": "v1", "kind": "C", "name": "c", "uid": "3", "controller": true},
    ]);
    let meta = pod(&json!({"metadata": {"ownerReferences": owners}})).metadata;
    assert_eq!(meta.owner_references.len(), 3);
    assert_eq!(meta.controller().unwrap().name, "b");
    assert!(meta.is_controlled_by(&Uid::from("2")));
    assert!(!meta.is_controlled_by(&Uid::from("1")));
    assert!(!meta.is_controlled_by(&Uid::from("3")));
}

#[test]
fn a_pod_is_read() {
    let pod = Pod::decode(POD).unwrap();
    assert_eq!(pod.node_name.as_deref(), Some("worker-017"));
    assert_eq!(pod.phase, PodPhase::Running);
    assert_eq!(pod.readiness(), Readiness::Ready { since: Some(at("2026-03-01T09:15:09Z")) });
    assert_eq!((pod.restarts, pod.sidecar_restarts), (1, 0));
}

#[test]
fn a_pod_counts_unless_it_ended_or_is_terminating() {
    // phase, deletion, active, terminating
    for (phase, deletion, active, terminating) in [
        (json!("Pending"), Value::Null, true, false),
        (json!("Running"), Value::Null, true, false),
        (json!("Unknown"), Value::Null, true, false),
        (json!("Novel"), Value::Null, true, false),
        (Value::Null, Value::Null, true, false),
        (json!("Succeeded"), Value::Null, false, false),
        (json!("Failed"), Value::Null, false, false),
        (json!("Running"), json!("2026-01-01T00:00:00Z"), false, true),
        (Value::Null, json!("2026-01-01T00:00:00Z"), false, true),
        (json!("Failed"), json!("2026-01-01T00:00:00Z"), false, false),
    ] {
        let pod = pod(&json!({"metadata": {"deletionTimestamp": deletion}, "status": {"phase": phase}}));
        assert_eq!((pod.is_active(), pod.is_terminating()), (active, terminating), "{phase} {deletion}");
    }
}

fn with_conditions(conditions: &Value) -> Pod {
    pod(&json!({"metadata": {}, "status": {"conditions": conditions}}))
}

#[test]
fn the_first_ready_condition_decides() {
    let since = "2026-01-01T00:00:00Z";
    for (conditions, ready) in [
        (Value::Null, Readiness::NotReady),
        (json!([]), Readiness::NotReady),
        (json!([{"type": "Initialized", "status": "True"}]), Readiness::NotReady),
        (json!([{"type": "Ready", "status": "False", "lastTransitionTime": since}]), Readiness::NotReady),
        (json!([{"type": "Ready", "status": "Unknown"}, {"type": "Ready", "status": "True"}]), Readiness::NotReady),
        (
            json!([{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]),
            Readiness::Ready { since: None },
        ),
        (json!([{"type": "Ready", "status": "True", "lastTransitionTime": null}]), Readiness::Ready { since: None }),
        (
            // The API server takes it; our calendar ends a day earlier.
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": "9999-12-31T23:59:59Z"}]),
            Readiness::Ready { since: None },
        ),
        (
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]),
            Readiness::Ready { since: Some(at(since)) },
        ),
    ] {
        assert_eq!(with_conditions(&conditions).readiness(), ready, "{conditions}");
    }
}

#[test]
fn a_pod_is_available_from_the_moment_it_has_been_ready_for_long_enough() {
    let since = "2026-01-01T00:00:00Z";
    let moment = |seconds| at(since) + SignedDuration::from_secs(seconds);
    let ready = with_conditions(&json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]));
    assert!(ready.is_available_at(0, moment(-5)));
    assert!(!ready.is_available_at(10, moment(9)));
    assert!(ready.is_available_at(10, moment(10)));
    assert!(!ready.is_available_at(i32::MAX, moment(i64::from(i32::MAX) - 1)));

    let ready_since_nobody_knows = with_conditions(&json!([{"type": "Ready", "status": "True"}]));
    assert!(ready_since_nobody_knows.is_available_at(0, moment(0)));
    assert!(!ready_since_nobody_knows.is_available_at(1, moment(100)));

    let not_ready = with_conditions(&json!([{"type": "Ready", "status": "False", "lastTransitionTime": since}]));
    assert!(!not_ready.is_available_at(0, moment(100)));
}

#[test]
fn restarts_of_containers_and_of_sidecars_are_counted_apart() {
    let object = json!({
        "metadata": {},
        "spec": {"initContainers": [
            {"name": "first"}, {"name": "sidecar", "restartPolicy": "Always"}, {"name": "other", "restartPolicy": "OnFailure"},
            {"name": "side\"car", "restartPolicy": "Always"},
        ]},
        "status": {
            "containerStatuses": [{"name": "a", "restartCount": 2}, {"name": "b", "restartCount": 3}, {"name": "c"}],
            "initContainerStatuses": [
                {"name": "first", "restartCount": 9}, {"name": "sidecar", "restartCount": 4}, {"name": "other", "restartCount": 9},
                {"name": "side\"car", "restartCount": 5}, {"name": "unheard of", "restartCount": 9}, {"restartCount": 9},
            ],
        },
    });
    assert_eq!((pod(&object).restarts, pod(&object).sidecar_restarts), (3, 5));
}

#[test]
fn a_pod_with_an_empty_node_name_is_not_assigned() {
    assert_eq!(pod(&json!({"metadata": {}, "spec": {"nodeName": ""}})).node_name, None);
    assert_eq!(pod(&json!({"metadata": {}, "spec": {}})).node_name, None);
}

#[test]
fn a_replica_set_is_read() {
    let replica_set = ReplicaSet::decode(REPLICA_SET).unwrap();
    assert_eq!((replica_set.replicas, replica_set.min_ready_seconds), (50, 5));
    assert!(replica_set.selector.as_ref().unwrap().matches(&Pod::decode(POD).unwrap().metadata.labels));
    assert_eq!(replica_set.template_labels, replica_set.meta().labels);
    let status = &replica_set.status;
    assert_eq!((status.replicas, status.fully_labeled_replicas, status.ready_replicas), (50, 50, 49));
    assert_eq!((status.available_replicas, status.terminating_replicas, status.observed_generation), (48, Some(0), 2));
    assert!(status.conditions.is_empty());
    assert_eq!(ReplicaSet::RESOURCE, ReplicaSetView::RESOURCE);
}

#[test]
fn what_a_replica_set_leaves_out_has_upstreams_defaults() {
    let view = ReplicaSetView::decode(r#"{"metadata":{},"spec":null}"#).unwrap();
    assert_eq!((view.replicas, view.min_ready_seconds), (1, 0));
    assert_eq!(view.selector, Ok(Selector::nothing()));
    assert_eq!(view.status.terminating_replicas, None);
}

#[test]
fn a_replication_controller_is_read() {
    let json = json!({
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 3, "minReadySeconds": 5, "selector": {"app": "web"},
            "template": {"metadata": {"labels": {"app": "web", "tier": "front"}}},
        },
        "status": {
            "replicas": 3, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 1, "observedGeneration": 4,
            "terminatingReplicas": 7, "conditions": [{"type": "ReplicaFailure", "status": "True"}],
        },
    });
    let view = ReplicationControllerView::decode(&json.to_string()).unwrap();
    assert_eq!((view.replicas, view.min_ready_seconds), (3, 5));
    let selector = view.selector.as_ref().unwrap();
    assert!(selector.matches(&view.template_labels) && !selector.matches(&view.metadata.labels));
    let status = &view.status;
    assert_eq!((status.replicas, status.fully_labeled_replicas, status.ready_replicas), (3, 2, 2));
    assert_eq!((status.available_replicas, status.terminating_replicas, status.observed_generation), (1, None, 4));
    assert_eq!(&*status.conditions[0].type_, "ReplicaFailure");
}

#[test]
fn a_replication_controller_without_a_selector_selects_nothing() {
    for spec in [json!(null), json!({}), json!({"selector": null}), json!({"selector": {}})] {
        let view = ReplicationControllerView::decode(&json!({"metadata": {}, "spec": spec}).to_string()).unwrap();
        assert_eq!((view.replicas, view.selector), (1, Ok(Selector::nothing())), "{spec}");
    }
}

#[test]
fn a_node_is_read() {
    let node = |conditions| {
        let taints =
            json!([{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}]);
        let json = json!({"metadata": {}, "spec": {"taints": taints}, "status": {"conditions": conditions}});
        Node::decode(&json.to_string()).unwrap()
    };
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status});
    for (conditions, is_ready) in [
        (json!(null), false),
        (json!([condition("MemoryPressure", "True")]), false),
        (json!([condition("MemoryPressure", "False"), condition("Ready", "True")]), true),
        (json!([condition("Ready", "Unknown")]), false),
        (json!([condition("Ready", "False"), condition("Ready", "True")]), false),
    ] {
        assert_eq!(node(conditions.clone()).is_ready, is_ready, "{conditions}");
    }
    assert!(node(json!([])).has_taint("node.kubernetes.io/out-of-service"));
    assert!(!node(json!([])).has_taint("node.kubernetes.io"));
}

#[test]
fn the_health_of_a_node_is_read_with_the_first_condition_of_each_type() {
    let reader = [Need::part::<NodeHealth>()].into_iter().collect::<Needs>().reader::<NodeHealth>().unwrap();
    let ready = |status: &str, heartbeat: Value| json!({"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat, "lastTransitionTime": "2026-01-02T00:00:00Z"});
    let of = |conditions: Value| {
        let json = json!({"metadata": {}, "spec": {"unschedulable": true}, "status": {"conditions": conditions}});
        reader.of(&Node::decode(&json.to_string()).unwrap()).clone()
    };
    let health = of(json!([
        {"type": "DiskPressure", "status": "True"},
        {"type": "DiskPressure", "status": "False"},
        {"type": "PIDPressure", "status": "False"},
        {"type": "NetworkUnavailable", "status": "Unknown"},
        ready("Unknown", json!("2026-01-01T00:00:00Z")),
        ready("True", json!("2026-01-03T00:00:00Z")),
    ]));
    assert!(health.unschedulable);
    let found = health.ready.unwrap();
    assert_eq!(found.status, NodeConditionStatus::Unknown);
    assert_eq!(found.last_heartbeat, Some(at("2026-01-01T00:00:00Z")));
    assert_eq!(found.last_transition, Some(at("2026-01-02T00:00:00Z")));
    let statuses = [health.memory_pressure, health.disk_pressure, health.pid_pressure, health.network_unavailable];
    let expected = [
        NodeConditionStatus::Absent,
        NodeConditionStatus::True,
        NodeConditionStatus::False,
        NodeConditionStatus::Unknown,
    ];
    assert_eq!(statuses, expected);
    let unset = of(json!([ready("Maybe", json!("yesterday"))])).ready.unwrap();
    assert_eq!((unset.status, unset.last_heartbeat), (NodeConditionStatus::Other, None));
    assert_eq!(of(json!(null)).ready, None);
}

#[test]
fn taints_tolerations_leases_and_pod_cidrs_are_read() {
    let needs: Needs = [Need::part::<NodePodCidrs>(), Need::part::<PodTolerations>()].into_iter().collect();
    let taint = json!({"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"});
    let node = json!({"metadata": {}, "spec": {"podCIDRs": ["10.244.1.0/24", "fd00::/64"], "taints": [taint]}});
    let node = Node::decode(&node.to_string()).unwrap();
    assert_eq!(node.taints[0].time_added, Some(at("2026-01-01T00:00:00Z")));
    let cidrs = &needs.reader::<NodePodCidrs>().unwrap().of(&node).pod_cidrs;
    assert_eq!(cidrs.iter().map(|cidr| &**cidr).collect::<Vec<_>>(), ["10.244.1.0/24", "fd00::/64"]);

    let pod = json!({"metadata": {}, "spec": {"tolerations": [{"key": "a", "tolerationSeconds": 300}, {"key": "b"}]}});
    let pod = Pod::decode(&pod.to_string()).unwrap();
    let tolerations = &needs.reader::<PodTolerations>().unwrap().of(&pod).tolerations;
    assert_eq!(tolerations.iter().map(|one| one.toleration_seconds).collect::<Vec<_>>(), [Some(300), None]);

    let lease = json!({"metadata": {}, "spec": {"renewTime": "2026-01-01T00:00:00.123456Z"}});
    assert_eq!(Lease::decode(&lease.to_string()).unwrap().renew_time, Some(at("2026-01-01T00:00:00Z")));
}

#[test]
fn volumes_of_nodes_and_of_pods_are_read() {
    let needs: Needs = [Need::part::<NodeVolumes>(), Need::part::<PodInlineVolumes>()].into_iter().collect();
    let attached = json!([{"name": "b", "devicePath": "/dev/b"}, {"name": "a"}]);
    let node = json!({"metadata": {}, "status": {"volumesInUse": ["b"], "volumesAttached": attached}});
    let node = Node::decode(&node.to_string()).unwrap();
    let volumes = needs.reader::<NodeVolumes>().unwrap().of(&node);
    assert_eq!(volumes.in_use.iter().map(|name| &**name).collect::<Vec<_>>(), ["b"]);
    let entries: Vec<_> = volumes.attached.iter().map(|entry| (&*entry.name, &*entry.device_path)).collect();
    assert_eq!(entries, [("b", "/dev/b"), ("a", "")]);

    let volumes = json!([
        {"name": "none", "emptyDir": {}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "disk", "cinder": {"volumeID": "id", "fsType": "", "readOnly": false, "secretRef": {"name": "x"}}},
        {"name": "fc", "fc": {"wwids": ["w"], "lun": 0, "targetWWNs": []}},
        {"name": "iscsi", "iscsi": {"targetPortal": "p", "iqn": "i", "lun": 0}},
    ]);
    let pod = pod(&json!({"metadata": {}, "spec": {"volumes": volumes}}));
    let inline = &needs.reader::<PodInlineVolumes>().unwrap().of(&pod).volumes;
    let expected = [
        json!({"name": "disk", "cinder": {"volumeID": "id"}}),
        json!({"name": "fc", "fc": {"wwids": ["w"], "lun": 0}}),
        json!({"name": "iscsi", "iscsi": {"targetPortal": "p", "iqn": "i"}}),
    ];
    assert_eq!(inline.iter().map(|json| json.parse::<Value>().unwrap()).collect::<Vec<_>>(), expected);
}

#[test]
fn a_taint_prevents_scheduling_or_evicts_by_its_effect() {
    for (effect, prevents, evicts) in
        [("NoSchedule", true, false), ("NoExecute", true, true), ("PreferNoSchedule", false, false), ("", false, false)]
    {
        let json = json!({"metadata": {}, "spec": {"taints": [{"key": "a", "value": "b", "effect": effect}]}});
        let node = Node::decode(&json.to_string()).unwrap();
        let taint = &node.taints[0];
        assert_eq!((&*taint.key, &*taint.value, &*taint.effect), ("a", "b", effect));
        assert_eq!((taint.prevents_scheduling(), taint.evicts()), (prevents, evicts), "{effect}");
    }
}

#[test]
fn a_daemon_set_is_read() {
    let by_name = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]);
    let affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": by_name}});
    let json = json!({
        "metadata": {"name": "agent", "annotations": {"deprecated.daemonset.template.generation": "3", "other": "x"}},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}}, "minReadySeconds": 5, "revisionHistoryLimit": 2,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%"}},
            "template": {"spec": {
                "nodeName": "", "hostNetwork": true, "nodeSelector": {"disk": "ssd"},
                "affinity": {"nodeAffinity": affinity}, "tolerations": [{"key": "a", "operator": "Exists"}],
            }},
        },
        "status": {"desiredNumberScheduled": 7, "numberMisscheduled": 1, "observedGeneration": 4, "collisionCount": 0},
    });
    let set = DaemonSet::decode(&json.to_string()).unwrap();
    assert!(set.selector.as_ref().unwrap().matches(&[("app", "agent")].into_iter().collect()));
    assert_eq!((set.min_ready_seconds, set.revision_history_limit, set.host_network), (5, 2, true));
    assert_eq!(set.node_name, None, "an empty name is none");
    let ssd = [("disk", "ssd")].into_iter().collect();
    let selected = [("n1", &ssd), ("n2", &ssd), ("n1", &Labels::default())];
    assert_eq!(selected.map(|(name, labels)| set.node_affinity.matches(name, labels)), [true, false, false]);
    assert_eq!((set.tolerations.len(), &*set.tolerations[0].key), (1, "a"));
    let rolling =
        DaemonSetUpdateStrategy::RollingUpdate { max_unavailable: Some("10%".into()), max_surge: Some(1.into()) };
    assert_eq!(set.update_strategy, rolling);
    let status = &set.status;
    assert_eq!((status.desired_number_scheduled, status.number_misscheduled, status.observed_generation), (7, 1, 4));
    assert_eq!((status.number_ready, status.collision_count), (0, Some(0)));
    assert_eq!(set.metadata.annotations.len(), 1);
}

#[test]
fn an_unscheduled_pod_has_the_node_that_it_selects_by_name() {
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
    ]}}});
    let reader = [Need::part::<PodTargetNode>()].into_iter().collect::<Needs>().reader::<PodTargetNode>().unwrap();
    for (spec, target) in [
        (json!({"affinity": affinity}), Some("n1")),
        (json!({"affinity": affinity, "nodeName": ""}), Some("n1")),
        (json!({"affinity": affinity, "nodeName": "n2"}), None),
        (json!({}), None),
    ] {
        let pod = Pod::decode(&json!({"metadata": {}, "spec": spec}).to_string()).unwrap();
        assert_eq!(reader.of(&pod).target_node.as_deref(), target, "{spec}");
    }
}

#[test]
fn a_job_is_finished_with_the_first_condition_that_says_so() {
    let at = |time: &str| Some(at(time));
    let condition =
        |type_: &str, status: &str, time: Value| json!({"type": type_, "status": status, "lastTransitionTime": time});
    for (conditions, completion) in [
        (json!(null), JobCompletion::Unfinished),
        (json!([condition("Complete", "False", json!("2026-01-01T00:00:00Z"))]), JobCompletion::Unfinished),
        (json!([condition("Suspended", "True", json!("2026-01-01T00:00:00Z"))]), JobCompletion::Unfinished),
        (
            json!([
                condition("FailureTarget", "True", json!("2026-01-01T00:00:00Z")),
                condition("Failed", "True", json!("2026-01-02T00:00:00Z")),
                condition("Complete", "True", json!("2026-01-03T00:00:00Z")),
            ]),
            JobCompletion::Finished { at: at("2026-01-02T00:00:00Z") },
        ),
        (json!([condition("Complete", "True", json!(null))]), JobCompletion::Finished { at: None }),
    ] {
        let json =
            json!({"metadata": {}, "spec": {"ttlSecondsAfterFinished": 5}, "status": {"conditions": conditions}});
        let job = Job::decode(&json.to_string()).unwrap();
        assert_eq!((job.completion, job.ttl_seconds_after_finished), (completion, Some(5)), "{conditions}");
    }
    assert_eq!(Job::decode(r#"{"metadata":{}}"#).unwrap().ttl_seconds_after_finished, None);
}

#[test]
fn the_termination_of_a_pod_is_read() {
    let terminated = |code: i32, seconds: i32| json!({"terminated": {"exitCode": code, "finishedAt": time(seconds)}});
    let main = |state: &Value| json!([{"name": "main", "restartCount": 2, "state": state}]);
    let not_ready = json!([{"type": "Ready", "status": "False", "lastTransitionTime": time(30)}]);
    let deleted = json!({"deletionTimestamp": time(50), "deletionGracePeriodSeconds": 10});
    let sidecar = json!({"initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}]});
    let inits = json!([
        {"name": "side", "restartCount": 1, "state": terminated(3, 20)},
        {"name": "init", "state": terminated(0, 1)},
    ]);
    let running = json!({"running": {}});
    let failed = |status: Value| (json!({}), json!({}), status);
    for (name, (metadata, spec, mut status), finished_at, codes) in [
        ("ended", failed(json!({"containerStatuses": main(&terminated(7, 10))})), Some(10), &[("main", 7)][..]),
        (
            "a sidecar ends last",
            (
                json!({}),
                sidecar.clone(),
                json!({"containerStatuses": main(&terminated(0, 10)), "initContainerStatuses": inits.clone()}),
            ),
            Some(20),
            &[("side", 3)],
        ),
        (
            "a container has not ended",
            failed(json!({"containerStatuses": main(&running), "conditions": not_ready})),
            Some(30),
            &[],
        ),
        ("deleted", (deleted, json!({}), json!({"containerStatuses": main(&running)})), Some(40), &[]),
        ("no time is known", failed(json!({"containerStatuses": main(&running)})), None, &[]),
        (
            "an invalid time is none",
            failed(json!({"containerStatuses": main(&json!({"terminated": {"exitCode": 1, "finishedAt": "today"}}))})),
            None,
            &[("main", 1)],
        ),
    ] {
        status["phase"] = json!("Failed");
        let pod = pod(&json!({"metadata": metadata, "spec": spec, "status": status}));
        let needs: Needs = [Need::part::<PodTermination>()].into_iter().collect();
        let termination = needs.reader::<PodTermination>().unwrap().of(&pod);
        assert_eq!(termination.finished_at, finished_at.map(|seconds| at(&time(seconds))), "{name}");
        let read: Vec<_> =
            termination.failed_containers.iter().map(|failed| (&*failed.name, failed.exit_code)).collect();
        assert_eq!(read, codes, "{name}");
        assert!(termination.restarts >= 2, "{name}");
    }
}

/// So many seconds after midnight.
fn time(seconds: i32) -> String {
    format!("2026-01-01T00:00:{seconds:02}Z")
}

#[test]
fn conditions_that_every_pod_has_are_kept_of_failed_pods_only() {
    let conditions = json!([{"type": "Ready", "status": "False"}, {"type": "DisruptionTarget", "status": "True"}]);
    for (phase, expected) in [("Running", &["DisruptionTarget"][..]), ("Failed", &["Ready", "DisruptionTarget"])] {
        let pod = pod(&json!({"metadata": {}, "status": {"phase": phase, "conditions": conditions}}));
        let needs: Needs = [Need::part::<PodTermination>()].into_iter().collect();
        let read = &needs.reader::<PodTermination>().unwrap().of(&pod).conditions;
        assert_eq!(read.iter().map(|condition| &*condition.type_).collect::<Vec<_>>(), expected, "{phase}");
    }
}

#[test]
fn the_disruption_of_a_pod_is_read() {
    let since = |conditions: Value| {
        let pod = pod(&json!({"metadata": {}, "status": {"reason": "Evicted", "conditions": conditions}}));
        let needs: Needs = [Need::part::<PodDisruption>()].into_iter().collect();
        let disruption = needs.reader::<PodDisruption>().unwrap();
        assert_eq!(&*disruption.of(&pod).reason, "Evicted");
        disruption.of(&pod).disruption_target_since
    };
    let condition =
        |status: &str, time: &str| json!({"type": "DisruptionTarget", "status": status, "lastTransitionTime": time});
    let (first, second) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    assert_eq!(since(json!(null)), None);
    assert_eq!(since(json!([condition("False", first), condition("True", second)])), None);
    assert_eq!(since(json!([condition("True", first), condition("True", second)])), Some(at(first)));
}

#[test]
fn an_invalid_selector_does_not_keep_the_object_from_being_read() {
    let json = json!({"metadata": {"name": "a"}, "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}});
    let view = ReplicaSetView::decode(&json.to_string()).unwrap();
    assert_eq!(view.selector, Err(InvalidSelector::Operator { operator: "Near".to_owned() }));
    assert_eq!(view.metadata.key.name(), "a");
}

#[test]
fn conditions_of_a_status_are_read() {
    let json = json!({"metadata": {}, "status": {"conditions": [
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Novel", "status": "Perhaps", "reason": null},
    ]}});
    let conditions = ReplicaSetView::decode(&json.to_string()).unwrap().status.conditions;
    assert_eq!((&*conditions[0].type_, conditions[0].status), ("ReplicaFailure", ConditionStatus::True));
    assert_eq!((&*conditions[0].reason, &*conditions[0].message), ("FailedCreate", "m"));
    assert_eq!(conditions[0].last_transition_time, Some(at("2026-01-01T00:00:00Z")));
    assert_eq!((&*conditions[1].type_, conditions[1].status), ("Novel", ConditionStatus::Unknown));
}

#[test]
fn a_namespace_is_read() {
    for (phase, expected) in [
        (json!("Active"), NamespacePhase::Active),
        (json!("Terminating"), NamespacePhase::Terminating),
        (json!("Novel"), NamespacePhase::Other),
        (Value::Null, NamespacePhase::Other),
    ] {
        let json = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "status": {"phase": phase}});
        let namespace = Namespace::decode(&json.to_string()).unwrap();
        assert_eq!(namespace.phase, expected);
        assert_eq!(namespace.meta().key.to_string(), "a");
        assert_eq!(namespace.meta().labels.get("x"), Some("y"));
    }
}

#[test]
fn any_type_that_serde_reads_can_be_a_view() {
    let pod = Typed::<k8s_openapi::api::core::v1::Pod>::decode(POD).unwrap();
    assert_eq!(pod.object.spec.as_ref().unwrap().containers.len(), 1);
    assert_eq!(pod.meta(), Pod::decode(POD).unwrap().meta());
    let managed = json!({"metadata": {"name": "a", "managedFields": [{"manager": "b"}]}, "data": {"c": "d"}});
    let whole = Typed::<Value>::decode(&managed.to_string()).unwrap();
    assert_eq!(whole.object, json!({"metadata": {"name": "a"}, "data": {"c": "d"}}));
}

/// The object with `null` in the place of one value, for every value but the metadata itself.
fn with_each_value_null(object: &Value) -> Vec<Value> {
    let mut paths = Vec::new();
    collect_paths(object, String::new(), &mut paths);
    paths
        .iter()
        .filter(|path| !["", "/metadata"].contains(&path.as_str()))
        .map(|path| {
            let mut changed = object.clone();
            *changed.pointer_mut(path).expect("must lead to a value of the same object") = Value::Null;
            changed
        })
        .collect()
}

fn collect_paths(value: &Value, path: String, paths: &mut Vec<String>) {
    if let Value::Object(members) = value {
        for (key, member) in members {
            collect_paths(member, format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), paths);
        }
    }
    if let Some(Value::Object(first)) = value.as_array().and_then(|items| items.first()) {
        for (key, member) in first {
            collect_paths(member, format!("{path}/0/{key}"), paths);
        }
    }
    paths.push(path);
}

#[test]
fn null_is_read_for_any_value() {
    let everything = json!({
        "metadata": {
            "name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1", "generation": 1, "labels": {"a": "b"},
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": "1"}, "finalizers": ["f"],
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "v1", "kind": "k", "name": "n", "uid": "u", "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {
            "nodeName": "n", "initContainers": [{"name": "i", "restartPolicy": "Always"}], "replicas": 1, "minReadySeconds": 1,
            "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
            "template": {"metadata": {"labels": {"a": "b"}}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
            "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "paused": true,
        },
        "status": {
            "phase": "Running",
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "r", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
            }],
            "containerStatuses": [{"name": "c", "restartCount": 1}], "initContainerStatuses": [{"name": "i", "restartCount": 1}],
            "replicas": 1, "fullyLabeledReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "terminatingReplicas": 1,
            "observedGeneration": 1, "updatedReplicas": 1, "unavailableReplicas": 1, "collisionCount": 1,
        },
    });
    let objects = with_each_value_null(&everything);
    assert!(objects.len() > 40, "the walk must reach the leaves: {}", objects.len());
    for object in objects {
        let json = object.to_string();
        for result in [
            Pod::decode(&json).map(drop),
            ReplicaSet::decode(&json).map(drop),
            Deployment::decode(&json).map(drop),
            Node::decode(&json).map(drop),
            Job::decode(&json).map(drop),
            Namespace::decode(&json).map(drop),
            PartialObjectMeta::decode(&json).map(drop),
        ] {
            assert!(result.is_ok(), "{result:?} for {json}");
        }
    }
}

#[test]
fn a_wrong_type_is_an_error() {
    for json in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"metadata":1}"#,
        r#"{"metadata":{"name":1}}"#,
        r#"{"metadata":{"labels":[]}}"#,
        r#"{"metadata":{"labels":{"a":1}}}"#,
        r#"{"metadata":{"creationTimestamp":"yesterday"}}"#,
        r#"{"metadata":{"ownerReferences":{}}}"#,
        r#"{"metadata":{},"status":{"phase":1}}"#,
        r#"{"metadata":{},"status":{"phase":{"Running":1}}}"#,
        r#"{"metadata":{},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":1}]}}"#,
        r#"{"metadata":{},"status":{"containerStatuses":[{"restartCount":1e99}]}}"#,
    ] {
        assert!(Pod::decode(json).is_err(), "{json}");
    }
}

proptest! {
    #[test]
    fn damaged_objects_do_not_make_it_panic(cut in 0..REPLICA_SET.len(), at in 0..REPLICA_SET.len(), byte in "[ -~]") {
        for json in [POD, REPLICA_SET] {
            let mut damaged = json.to_owned();
            damaged.replace_range(at..=at, &byte);
            for json in [damaged.as_str(), &json[..cut]] {
                drop(Pod::decode(json));
                drop(ReplicaSet::decode(json));
            }
        }
    }
}
