//! Budgets relative to the replicas of the controllers of their pods.

use std::time::Duration;

use kcm_framework::api::Resource;
use kcm_testing::sandbox::{DEPLOYMENTS, Fault, PODS, REPLICA_SETS, Sandbox, ScalePaths, Status, Verb};
use serde_json::{Value, json};

use super::{BUDGETS, Cluster, allowed, create_budget, create_ready, create_ready_pod, has, numbers, owned_by, set_of};
use crate::tests::cluster::{NAMESPACE, key};
use crate::tests::fixtures::pod;

pub(super) const WEBSITES: Resource = Resource::namespaced("example.com", "v1", "websites", "Website");
const STATEFUL_SETS: Resource = Resource::namespaced("apps", "v1", "statefulsets", "StatefulSet");
const CONTROLLERS: Resource = Resource::namespaced("", "v1", "replicationcontrollers", "ReplicationController");

/// Creates an object with so many replicas, and a ready pod that it controls.
pub(super) fn create_owner(sandbox: &Sandbox, resource: &Resource, name: &str, replicas: i32) {
    let selector =
        if resource.group.is_empty() { json!({ "app": "web" }) } else { json!({ "matchLabels": { "app": "web" } }) };
    let object = json!({
        "apiVersion": resource.api_version(), "kind": resource.kind,
        "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": {
            "replicas": replicas, "selector": selector, "serviceName": "web",
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "image" }] },
            },
        },
    });
    let created = sandbox.create(resource, object).expect("the owner must be valid");
    let owner = json!([{
        "apiVersion": resource.api_version(), "kind": resource.kind, "name": name, "uid": created["metadata"]["uid"],
        "controller": true,
    }]);
    let pod = pod(&format!("{name}-0")).unassigned().with("/metadata", "ownerReferences", owner);
    create_ready_pod(sandbox, &pod);
}

#[tokio::test(start_paused = true)]
async fn replicas_of_every_kind_of_controller_are_added_up() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.register_scaled(WEBSITES, ScalePaths::default());
        create_owner(sandbox, &CONTROLLERS, "rc", 1);
        create_owner(sandbox, &STATEFUL_SETS, "sts", 2);
        create_owner(sandbox, &REPLICA_SETS, "rs", 4);
        create_owner(sandbox, &WEBSITES, "site", 8);
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": "20%" }));
    has(&cluster, [1, 4, 3, 15]).await;
    cluster.settle().await;
    let scales = cluster.requests("GET").into_iter().filter(|request| request.path.ends_with("/scale"));
    let paths: Vec<String> = scales.map(|request| request.path).collect();
    assert!(!paths.is_empty());
    assert!(paths.iter().all(|path| path.ends_with("/websites/site/scale")), "the others come from caches: {paths:?}");
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_counts_as_the_deployment_that_controls_it() {
    let cluster = Cluster::start(|sandbox| {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": NAMESPACE, "name": "web" },
            "spec": {
                "replicas": 5, "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "main", "image": "image" }] },
                },
            },
        });
        let created = sandbox.create(&DEPLOYMENTS, deployment).unwrap();
        let uid = created["metadata"]["uid"].as_str().unwrap();
        for (name, replicas) in [("old", 2), ("new", 5)] {
            let pod_of = owned_by(sandbox, &set_of(name, replicas).owner("Deployment", "web", uid));
            create_ready_pod(sandbox, &pod_of(&format!("{name}-0")));
        }
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "maxUnavailable": 4 }));
    has(&cluster, [1, 2, 1, 5]).await;
}

#[tokio::test(start_paused = true)]
async fn pods_without_a_controller_do_not_count_as_expected_and_are_warned_of() {
    let cluster = Cluster::start(|sandbox| {
        create_ready(sandbox, 2);
        let pod_of = owned_by(sandbox, &set_of("web", 3));
        create_ready_pod(sandbox, &pod_of("managed"));
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "maxUnavailable": 1 }));
    has(&cluster, [1, 3, 2, 3]).await;
    cluster.eventually("it is warned of", |_| cluster.messages("UnmanagedPods").len() == 1).await;
    let message = &cluster.messages("UnmanagedPods")[0];
    let selector = "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{},})";
    assert!(message.contains(selector), "{message}");
}

/// Waits until the budget allows nothing with that message.
async fn fails(cluster: &Cluster, message: &str) {
    let failed = |condition: Value| condition["reason"] == "SyncFailed" && condition["message"] == message;
    cluster.eventually(message, |_| failed(allowed(&cluster.status()))).await;
    assert_eq!(cluster.status()["disruptionsAllowed"].as_i64().unwrap_or_default(), 0);
    let event = format!("Failed to calculate the number of expected pods: {message}");
    cluster.eventually("it is said", |_| cluster.messages("CalculateExpectedPodCountFailed").contains(&event)).await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_not_found_allows_nothing_until_it_is() {
    let cluster = Cluster::start(|sandbox| {
        let _pod_of = owned_by(sandbox, &set_of("web", 1));
        create_ready_pod(sandbox, &pod("web-1").unassigned().owner("ReplicaSet", "web", "another"));
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "maxUnavailable": 1 }));
    fails(&cluster, "found no controllers for pod \"web-1\"").await;
    cluster.sandbox().patch(&PODS, &key("web-1"), &json!({ "metadata": { "ownerReferences": null } })).unwrap();
    create_ready_pod(cluster.sandbox(), &pod("web-2").unassigned().orphan());
    cluster.eventually("it is computed", |_| allowed(&cluster.status())["reason"] == "InsufficientPods").await;
    let _errors = cluster.take_errors();
}

#[tokio::test(start_paused = true)]
async fn kinds_without_a_scale_or_that_are_not_served_allow_nothing() {
    let cluster = Cluster::start(|sandbox| {
        let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true }]);
        create_ready_pod(sandbox, &pod("web-0").unassigned().with("/metadata", "ownerReferences", owner));
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": "50%" }));
    fails(&cluster, "nodes does not implement the scale subresource").await;
    let owner =
        json!([{ "apiVersion": "example.com/v1", "kind": "Website", "name": "n", "uid": "u", "controller": true }]);
    cluster.sandbox().patch(&PODS, &key("web-0"), &json!({ "metadata": { "ownerReferences": owner } })).unwrap();
    fails(&cluster, "no matches for kind \"Website\" in version \"example.com/v1\"").await;
    let _errors = cluster.take_errors();
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_cannot_be_read_allows_nothing_and_is_read_again() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.register_scaled(WEBSITES, ScalePaths::default());
        create_owner(sandbox, &WEBSITES, "site", 2);
        create_ready(sandbox, 1);
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "maxUnavailable": 1 }));
    has(&cluster, [1, 2, 1, 2]).await;
    let fault = Fault::on(Verb::Get).subresource("scale").fail(Status::new(500, "InternalError", "it is broken"));
    let broken = cluster.sandbox().faults().inject(fault);
    cluster.sandbox().patch(&BUDGETS, &key("web"), &json!({ "spec": { "maxUnavailable": 2 } })).unwrap();
    fails(&cluster, "it is broken").await;
    assert_eq!(numbers(&cluster.status()), [0, 2, 1, 2], "the other numbers stay");
    assert_eq!(cluster.status()["observedGeneration"], 1);
    broken.remove();
    has(&cluster, [2, 2, 0, 2]).await;
    let _errors = cluster.take_errors();
}

#[tokio::test(start_paused = true)]
async fn replicas_that_change_count_when_a_pod_changes_next() {
    for (name, unavailable, at_first, later) in
        [("a number", json!(1), [0, 2, 2, 3], [2, 3, 1, 2]), ("a percentage", json!("34%"), [1, 2, 1, 3], [2, 3, 1, 2])]
    {
        let cluster = Cluster::start(|sandbox| {
            let pod_of = owned_by(sandbox, &set_of("web", 3));
            create_ready_pod(sandbox, &pod_of("web-0"));
            create_ready_pod(sandbox, &pod_of("web-1"));
        })
        .await;
        create_budget(cluster.sandbox(), json!({ "maxUnavailable": unavailable }));
        has(&cluster, at_first).await;
        cluster.sandbox().patch(&REPLICA_SETS, &key("web"), &json!({ "spec": { "replicas": 2 } })).unwrap();
        cluster.advance(Duration::from_mins(1)).await;
        assert_eq!(numbers(&cluster.status()), at_first, "{name}: a controller of pods enqueues nothing");
        let owners = cluster.object(&PODS, "web-0")["metadata"]["ownerReferences"].clone();
        create_ready_pod(cluster.sandbox(), &pod("web-2").unassigned().with("/metadata", "ownerReferences", owners));
        has(&cluster, later).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_whose_deployment_is_not_cached_is_read_live_by_itself() {
    // The deployment wants five replicas, and the replica set two.
    for (name, api_version, owner, has_uid, expected) in [
        ("the deployment", "apps/v1", "web", true, 5),
        ("by the group that it was in", "extensions/v1beta1", "web", true, 5),
        ("by another group", "example.com/v1", "web", true, 2),
        ("recreated", "apps/v1", "web", false, 2),
        ("gone", "apps/v1", "gone", true, 2),
    ] {
        let cluster = Cluster::start(move |sandbox| {
            let deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": NAMESPACE, "name": "web" },
                "spec": {
                    "replicas": 5, "selector": { "matchLabels": { "app": "web" } },
                    "template": {
                        "metadata": { "labels": { "app": "web" } },
                        "spec": { "containers": [{ "name": "main", "image": "image" }] },
                    },
                },
            });
            let created = sandbox.create(&DEPLOYMENTS, deployment).unwrap();
            let uid = if has_uid { created["metadata"]["uid"].clone() } else { json!("another") };
            let owner = json!([{
                "apiVersion": api_version, "kind": "Deployment", "name": owner, "uid": uid, "controller": true,
            }]);
            let pod_of = owned_by(sandbox, &set_of("old", 2).with("/metadata", "ownerReferences", owner));
            create_ready_pod(sandbox, &pod_of("web-0"));
        })
        .await;
        create_budget(cluster.sandbox(), json!({ "minAvailable": "100%" }));
        has(&cluster, [0, 1, expected, expected]).await;
        let live = cluster.requests("GET").iter().any(|request| request.path.ends_with("/replicasets/old/scale"));
        assert_eq!(live, expected == 2, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_of_another_kind_counts_by_itself() {
    let cluster = Cluster::start(|sandbox| {
        let pod_of = owned_by(sandbox, &set_of("old", 2).owner("Rollout", "web", "u"));
        create_ready_pod(sandbox, &pod_of("web-0"));
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": "100%" }));
    has(&cluster, [0, 1, 2, 2]).await;
    assert_eq!(scales(&cluster), 0, "the cache has it");
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_a_custom_kind_that_does_not_exist_allows_nothing() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.register_scaled(WEBSITES, ScalePaths::default());
        let owner =
            json!([{ "apiVersion": "example.com/v1", "kind": "Website", "name": "n", "uid": "u", "controller": true }]);
        create_ready_pod(sandbox, &pod("web-0").unassigned().with("/metadata", "ownerReferences", owner));
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "maxUnavailable": 1 }));
    fails(&cluster, "found no controllers for pod \"web-0\"").await;
    let _errors = cluster.take_errors();
}

/// The requests for scales.
fn scales(cluster: &Cluster) -> usize {
    cluster.requests("GET").iter().filter(|request| request.path.ends_with("/scale")).count()
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_pods_without_a_scale_is_looked_at_every_ten_minutes() {
    let cluster = Cluster::start(|sandbox| {
        let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true }]);
        create_ready_pod(sandbox, &pod("web-0").unassigned().with("/metadata", "ownerReferences", owner));
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "maxUnavailable": 1 }));
    fails(&cluster, "nodes does not implement the scale subresource").await;
    cluster.advance(Duration::from_secs(70)).await;
    let at_first = scales(&cluster);
    assert!((2..=4).contains(&at_first), "again after a minute, as its kind may be installed just now: {at_first}");
    cluster.advance(Duration::from_mins(30)).await;
    assert_eq!(scales(&cluster), at_first + 3, "each is a request that changes nothing");
    let _errors = cluster.take_errors();
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_after_its_pods_is_found_within_a_minute() {
    let cluster = Cluster::start(|sandbox| {
        let owner =
            json!([{ "apiVersion": "example.com/v1", "kind": "Website", "name": "site", "uid": "u", "controller": true }]);
        create_ready_pod(sandbox, &pod("web-0").unassigned().with("/metadata", "ownerReferences", owner));
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "maxUnavailable": 1 }));
    fails(&cluster, "no matches for kind \"Website\" in version \"example.com/v1\"").await;
    cluster.sandbox().register_scaled(WEBSITES, ScalePaths::default());
    cluster.advance(Duration::from_secs(65)).await;
    let message = "found no controllers for pod \"web-0\"";
    assert_eq!(allowed(&cluster.status())["message"], message, "the kind is served, and there is no such object");
    let _errors = cluster.take_errors();
}
