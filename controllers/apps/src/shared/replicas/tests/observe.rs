//! Snapshots from caches.

use kcm_framework::api::views::{Pod, ReplicaSet};
use kcm_framework::informers::{Factory, FactoryOptions, ListOptions};
use kcm_sandbox_apiserver::{REPLICA_SETS, Sandbox};
use serde_json::json;

use super::fixtures::{NAMESPACE, ReplicaSetBuilder, build, key, names, pod, replica_set};
use crate::shared::replicas::observe::{Caches, Observed};
use crate::shared::replicas::rank::Occupancy;
use crate::tests::fixtures::{create_pod, create_replica_set};

/// A replica set of a deployment.
fn by_deployment(name: &str) -> ReplicaSetBuilder {
    let owner =
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "uid-of-d", "controller": true });
    replica_set(name).with("/metadata", "ownerReferences", json!([owner]))
}

/// The snapshot of the replica set `web` of an API server that `prepare` has filled.
async fn observe_web(prepare: impl FnOnce(&Sandbox)) -> Observed<ReplicaSet> {
    let sandbox = Sandbox::default();
    for namespace in [NAMESPACE, "elsewhere"] {
        sandbox.create_namespace(namespace).unwrap();
    }
    prepare(&sandbox);
    let factory = Factory::new(FactoryOptions::new(sandbox.client(), 1));
    let owners = factory.informer::<ReplicaSet>(ListOptions::default());
    let pods = factory.informer::<Pod>(ListOptions::default());
    let caches = Caches::new(&owners, pods.clone());
    factory.start();
    owners.wait_synced().await;
    pods.wait_synced().await;
    let mut observed = caches.observe(&owners.get(&key("web")).unwrap());
    observed.pods.sort_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    factory.shut_down().await;
    observed
}

#[tokio::test(start_paused = true)]
async fn reads_its_own_pods_and_the_orphans_that_it_selects() {
    let observed = observe_web(|sandbox| {
        let web = create_replica_set(sandbox, &by_deployment("web").replicas(9));
        let uid = web["metadata"]["uid"].as_str().unwrap();
        let own = |name: &str| pod(name).owner("ReplicaSet", "web", uid);
        for pod in [
            own("own"),
            own("own-failed").phase("Failed"),
            own("own-relabelled").labels(json!({})),
            own("elsewhere").namespace("elsewhere"),
            pod("kind").owner("Job", "web", uid),
            pod("name").owner("ReplicaSet", "other", uid),
            pod("uid").owner("ReplicaSet", "web", "uid-before"),
            pod("orphan").orphan(),
            pod("orphan-unselected").orphan().labels(json!({})),
            pod("orphan-elsewhere").orphan().namespace("elsewhere"),
        ] {
            create_pod(sandbox, &pod);
        }
    })
    .await;
    assert_eq!(names(&observed.pods), ["orphan", "own", "own-failed", "own-relabelled"]);
    assert_eq!(observed.occupancy, Occupancy::default(), "not counted without surplus pods");
}

#[tokio::test(start_paused = true)]
async fn occupancy_counts_every_active_pod_that_a_sibling_selects() {
    let observed = observe_web(|sandbox| {
        create_replica_set(sandbox, &by_deployment("web").replicas(0));
        create_replica_set(sandbox, &by_deployment("old"));
        create_replica_set(sandbox, &replica_set("unrelated"));
        create_replica_set(sandbox, &by_deployment("unrelated").namespace("elsewhere"));
        let of = |name: &str, app: &str, node: &str| pod(name).labels(json!({ "app": app })).orphan().node(node);
        for pod in [
            of("a", "web", "one"),
            of("b", "old", "one"),
            of("c", "old", "two"),
            of("d", "old", "two").owned_by("other"),
            of("e", "unrelated", "two"),
            of("f", "old", "two").namespace("elsewhere"),
        ] {
            create_pod(sandbox, &pod);
        }
    })
    .await;
    let counted = build(&[pod("a").node("one"), pod("b").node("one"), pod("c").node("two"), pod("d").node("two")]);
    assert_eq!(observed.occupancy, Occupancy::of(counted.iter().map(|pod| &**pod)));
}

#[tokio::test(start_paused = true)]
async fn occupancy_is_the_same_if_replica_sets_are_being_deleted() {
    let observed = observe_web(|sandbox| {
        let held = |name: &str| by_deployment(name).with("/metadata", "finalizers", json!(["example.com/hold"]));
        create_replica_set(sandbox, &held("web").replicas(0));
        create_replica_set(sandbox, &held("old"));
        for (name, app, node) in [("a", "web", "one"), ("b", "old", "two")] {
            create_pod(sandbox, &pod(name).labels(json!({ "app": app })).orphan().node(node));
        }
        for name in ["web", "old"] {
            sandbox.delete(&REPLICA_SETS, &key(name)).unwrap();
        }
    })
    .await;
    assert!(observed.owner.metadata.is_terminating());
    let counted = build(&[pod("a").node("one"), pod("b").node("two")]);
    assert_eq!(observed.occupancy, Occupancy::of(counted.iter().map(|pod| &**pod)));
}

/// A replica set that selects by the template hash.
fn of_template(name: &str, hash: &str) -> ReplicaSetBuilder {
    let labels = json!({ "app": "web", "pod-template-hash": hash });
    by_deployment(name).with("/spec/selector", "matchLabels", labels.clone()).with(
        "/spec/template/metadata",
        "labels",
        labels,
    )
}

#[tokio::test(start_paused = true)]
async fn occupancy_is_the_same_if_siblings_select_by_their_template() {
    let observed = observe_web(|sandbox| {
        create_replica_set(sandbox, &of_template("web", "1").replicas(0));
        create_replica_set(sandbox, &of_template("old", "2"));
        create_replica_set(sandbox, &of_template("old-again", "2"));
        let of = |name: &str, hash: &str, node: &str| {
            pod(name).labels(json!({ "app": "web", "pod-template-hash": hash })).orphan().node(node)
        };
        for pod in [
            of("a", "1", "one"),
            of("b", "2", "one"),
            of("c", "2", "two").owned_by("other"),
            of("d", "3", "two"),
            of("e", "2", "two").labels(json!({ "app": "other", "pod-template-hash": "2" })),
            of("f", "2", "two").labels(json!({ "app": "web" })),
            of("g", "2", "two").namespace("elsewhere"),
        ] {
            create_pod(sandbox, &pod);
        }
    })
    .await;
    let counted = build(&[pod("a").node("one"), pod("b").node("one"), pod("c").node("two")]);
    assert_eq!(observed.occupancy, Occupancy::of(counted.iter().map(|pod| &**pod)));
}

#[tokio::test(start_paused = true)]
async fn a_sibling_without_the_template_hash_scans_the_namespace() {
    let observed = observe_web(|sandbox| {
        create_replica_set(sandbox, &of_template("web", "1").replicas(0));
        create_replica_set(sandbox, &by_deployment("old"));
        create_pod(sandbox, &pod("a").labels(json!({ "app": "web", "pod-template-hash": "1" })).orphan().node("one"));
        create_pod(sandbox, &pod("b").labels(json!({ "app": "old" })).orphan().node("two"));
    })
    .await;
    let counted = build(&[pod("a").node("one"), pod("b").node("two")]);
    assert_eq!(observed.occupancy, Occupancy::of(counted.iter().map(|pod| &**pod)));
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_without_a_controller_has_no_occupancy() {
    let observed = observe_web(|sandbox| {
        create_replica_set(sandbox, &replica_set("web").replicas(0));
        create_pod(sandbox, &pod("a").orphan());
    })
    .await;
    assert_eq!(observed.occupancy, Occupancy::default());
}
