//! Snapshots from caches.

use kcm_framework::api::views::{Deployment, Pod, PodPhase, ReplicaSet};
use kcm_framework::informers::{Factory, FactoryOptions, Informer, ListOptions};
use kcm_sandbox_apiserver::{PODS, REPLICA_SETS, Sandbox};
use serde_json::json;

use super::cluster::{create_deployment, create_set};
use super::fixtures::{DeploymentBuilder, NAMESPACE, ReplicaSetBuilder, deployment, key, set};
use crate::deployment::event_mapping::ReplicaSetLister as _;
use crate::deployment::observe::{Caches, Observed};

/// The result of `look` on the caches of an API server with `owner` and the objects that `prepare` creates.
async fn with_caches<T>(
    owner: &DeploymentBuilder,
    prepare: impl FnOnce(&Sandbox, &str),
    look: impl FnOnce(&Caches, &Informer<Deployment>, &Informer<ReplicaSet>) -> T,
) -> T {
    let sandbox = Sandbox::default();
    for namespace in [NAMESPACE, "elsewhere"] {
        sandbox.create_namespace(namespace).unwrap();
    }
    let owner = create_deployment(&sandbox, owner);
    prepare(&sandbox, owner["metadata"]["uid"].as_str().unwrap());
    let factory = Factory::new(FactoryOptions::new(sandbox.client(), 1));
    let pods = factory.informer::<Pod>(ListOptions::default());
    let deployments = factory.informer::<Deployment>(ListOptions::default());
    let replica_sets = factory.informer::<ReplicaSet>(ListOptions::default());
    let caches = Caches::new(replica_sets.clone(), &pods);
    factory.start();
    deployments.wait_synced().await;
    replica_sets.wait_synced().await;
    pods.wait_synced().await;
    let seen = look(&caches, &deployments, &replica_sets);
    factory.shut_down().await;
    seen
}

fn observe(caches: &Caches, deployments: &Informer<Deployment>, _: &Informer<ReplicaSet>) -> Observed {
    caches.observe(&deployments.get(&key("web")).unwrap())
}

/// A pod that the replica set of that name controls.
fn create_pod(sandbox: &Sandbox, name: &str, owner: &str, phase: &str) {
    let set = sandbox.get(&REPLICA_SETS, &key(owner)).unwrap();
    let reference = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": set["metadata"]["uid"],
        "controller": true });
    let pod = json!({
        "metadata": { "namespace": NAMESPACE, "name": name, "ownerReferences": [reference] },
        "spec": { "containers": [{ "name": "main", "image": "image" }] },
    });
    sandbox.create(&PODS, pod).unwrap();
    sandbox.set_pod_phase(&key(name), phase).unwrap();
}

#[tokio::test(start_paused = true)]
async fn reads_its_own_replica_sets_and_the_orphans_that_it_selects() {
    let prepare = |sandbox: &Sandbox, uid: &str| {
        let own = |name: &str| set(name).owner("Deployment", "web", uid);
        let elsewhere = |set: ReplicaSetBuilder| set.with("/metadata", "namespace", json!("elsewhere"));
        for set in [
            own("own"),
            own("own-relabelled").labels(json!({})),
            set("kind").owner("Rollout", "web", uid),
            set("name").owner("Deployment", "other", uid),
            set("uid").owner("Deployment", "web", "uid-before"),
            set("orphan").orphan(),
            set("orphan-unselected").orphan().labels(json!({})),
        ] {
            create_set(sandbox, &set);
        }
        let orphan = elsewhere(set("orphan-elsewhere").orphan()).0;
        sandbox.create(&REPLICA_SETS, crate::tests::cluster::as_sent(orphan)).unwrap();
    };
    let observed = with_caches(&deployment("web"), prepare, observe).await;
    let mut names: Vec<_> = observed.replica_sets.iter().map(|set| set.metadata.key.name().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["orphan", "own", "own-relabelled"]);
}

#[tokio::test(start_paused = true)]
async fn reads_pods_only_for_recreations() {
    for (strategy, expected) in [
        (json!({ "type": "Recreate" }), vec![PodPhase::Running, PodPhase::Failed]),
        (json!({ "type": "RollingUpdate" }), vec![]),
    ] {
        let prepare = |sandbox: &Sandbox, uid: &str| {
            create_set(sandbox, &set("own").owner("Deployment", "web", uid));
            create_set(sandbox, &set("theirs").owned_by("twin"));
            for (name, owner, phase) in [("a", "own", "Running"), ("b", "own", "Failed"), ("c", "theirs", "Running")] {
                create_pod(sandbox, name, owner, phase);
            }
        };
        let owner = deployment("web").with("/spec", "strategy", strategy);
        let observed = with_caches(&owner, prepare, observe).await;
        assert_eq!(observed.pods.iter().map(|(_, phase)| *phase).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn finds_out_whether_a_replica_set_has_a_pod_that_may_run() {
    for (phase, expected) in [(Some("Running"), true), (Some("Pending"), true), (Some("Failed"), false), (None, false)]
    {
        let prepare = |sandbox: &Sandbox, uid: &str| {
            create_set(sandbox, &set("own").owner("Deployment", "web", uid));
            create_set(sandbox, &set("theirs").owned_by("twin"));
            create_pod(sandbox, "other", "theirs", "Running");
            if let Some(phase) = phase {
                create_pod(sandbox, "a", "own", phase);
            }
        };
        let look = |caches: &Caches, _: &Informer<Deployment>, replica_sets: &Informer<ReplicaSet>| {
            caches.cached_replica_sets().has_running_pods(&replica_sets.get(&key("own")).unwrap())
        };
        assert_eq!(with_caches(&deployment("web"), prepare, look).await, expected, "{phase:?}");
    }
}
