//! Owners of claims when pods and sizes change, by upstream's cases, and a pod that blocks scaling.

use std::time::Duration;

use kcm_testing::sandbox::{PODS, Sandbox};
use serde_json::{Value, json};

use super::apply::{CLAIMS, Cluster, SETS, has, run_pods, scale, web};
use super::fixtures::{merge, with_claims};
use crate::tests::cluster::{NAMESPACE, key};

const POLICIES: [(&str, &str); 4] =
    [("Retain", "Retain"), ("Delete", "Retain"), ("Retain", "Delete"), ("Delete", "Delete")];

/// The names of pods with their image.
fn pods(ordinals: std::ops::Range<i32>) -> Vec<String> {
    ordinals.map(|ordinal| format!("web-{ordinal}")).collect()
}

async fn has_pods(cluster: &Cluster, count: i32) {
    let names = pods(0..count);
    has(cluster, &names.iter().map(|name| (name.as_str(), "image:1")).collect::<Vec<_>>()).await;
}

/// Creates a pod with the volume of a claim, and the claim.
fn create_pod(sandbox: &Sandbox, name: &str, ordinal: i32, owner: Option<&Value>) {
    let claim = format!("data-web-{ordinal}");
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "labels": {
                "app": "web",
                "statefulset.kubernetes.io/pod-name": name,
                "apps.kubernetes.io/pod-index": ordinal.to_string(),
            },
        },
        "spec": {
            "containers": [{ "name": "main", "image": "image:1" }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }],
        },
    });
    if let Some(set) = owner {
        let reference = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": set["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true,
        });
        merge(&mut pod, json!({ "metadata": { "ownerReferences": [reference] } }));
    }
    sandbox.create(&PODS, pod).unwrap();
    let claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "namespace": NAMESPACE, "name": claim, "labels": { "app": "web" } },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    sandbox.create(&CLAIMS, claim).unwrap();
}

/// The kinds of the owners of a claim.
fn owners(sandbox: &Sandbox, claim: &str) -> Vec<String> {
    let claim = sandbox.get(&CLAIMS, &key(claim)).expect("the claim is there");
    let references = claim["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    references.iter().map(|reference| reference["kind"].as_str().unwrap().to_owned()).collect()
}

/// Upstream's `TestOrphanedPodsWithPVCDeletePolicy`: `web-1` has no owner, and `xweb-2` has the name of no member.
#[tokio::test(start_paused = true)]
async fn claims_of_adopted_pods_have_the_owners_of_the_policy_and_claims_of_strangers_have_none() {
    for (when_deleted, when_scaled) in POLICIES {
        let mut set = web(2, with_claims(when_deleted, when_scaled));
        // The pods are of no revision, and a rollout would replace them.
        set["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
        let cluster = Cluster::start(move |sandbox| {
            let set = sandbox.create(&SETS, set).unwrap();
            create_pod(sandbox, "web-0", 0, Some(&set));
            create_pod(sandbox, "web-1", 1, None);
            create_pod(sandbox, "xweb-2", 2, Some(&set));
            run_pods(sandbox);
        })
        .await;
        let name = format!("when deleted {when_deleted}, when scaled {when_scaled}");
        let by_set = if when_deleted == "Delete" { vec!["StatefulSet"] } else { vec![] };
        let claims = |sandbox: &Sandbox| ["data-web-0", "data-web-1"].map(|claim| owners(sandbox, claim));
        cluster
            .eventually(&format!("both claims have their owners: {name}"), |sandbox| {
                let is_adopted = !cluster.object(&PODS, "web-1")["metadata"]["ownerReferences"].is_null();
                is_adopted && claims(sandbox) == [by_set.clone(), by_set.clone()]
            })
            .await;
        scale(&cluster, 0);
        cluster.eventually("the members are deleted", |_| cluster.pods().len() == 1).await;
        cluster.settle().await;
        let condemned = if when_scaled == "Delete" { vec!["Pod"] } else { by_set };
        assert_eq!(claims(cluster.sandbox()), [condemned.clone(), condemned], "{name}");
        assert_eq!(owners(cluster.sandbox(), "data-web-2"), [""; 0], "{name}");
        let stranger = cluster.object(&PODS, "xweb-2");
        assert!(stranger["metadata"]["ownerReferences"].is_null(), "it is released: {name}");
    }
}

/// Upstream's case is `TestStaleOwnerRefOnScaleup`.
#[tokio::test(start_paused = true)]
async fn scaling_up_waits_for_the_end_of_a_claim_of_an_earlier_pod() {
    for when_deleted in ["Retain", "Delete"] {
        let cluster = Cluster::start(|_| {}).await;
        cluster.create(web(3, with_claims(when_deleted, "Delete")));
        has_pods(&cluster, 3).await;
        scale(&cluster, 2);
        has_pods(&cluster, 2).await;
        assert_eq!(owners(cluster.sandbox(), "data-web-2"), ["Pod"]);
        let mut references = cluster.object(&CLAIMS, "data-web-2")["metadata"]["ownerReferences"].clone();
        references[0]["uid"] = json!("stale");
        let stale = json!({ "metadata": { "ownerReferences": references } });
        cluster.sandbox().patch(&CLAIMS, &key("data-web-2"), &stale).unwrap();

        scale(&cluster, 3);
        cluster.consistently("two pods", Duration::from_mins(10), |_| cluster.pods().len() == 2).await;
        assert_eq!(cluster.set()["status"]["replicas"], 2);
        let claim = cluster.object(&CLAIMS, "data-web-2");
        assert_eq!(claim["metadata"]["ownerReferences"], references, "it is left to the garbage collector");

        cluster.sandbox().delete_now(&CLAIMS, &key("data-web-2")).unwrap();
        drop(cluster.sandbox().patch(&CLAIMS, &key("data-web-2"), &json!({ "metadata": { "finalizers": null } })));
        has_pods(&cluster, 3).await;
        let expected = if when_deleted == "Delete" { vec!["StatefulSet"] } else { vec![] };
        assert_eq!(owners(cluster.sandbox(), "data-web-2"), expected, "a new claim");
    }
}

/// Upstream's case is `TestStatefulSetControllerBlocksScaling`.
#[tokio::test(start_paused = true)]
async fn a_terminating_pod_blocks_scaling_until_it_is_gone() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(3, json!({})));
    has_pods(&cluster, 3).await;
    let held = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    cluster.sandbox().patch(&PODS, &key("web-0"), &held(json!(["example.com/held"]))).unwrap();
    cluster.sandbox().delete(&PODS, &key("web-0")).unwrap();
    scale(&cluster, 5);
    cluster.consistently("no pod is made", Duration::from_mins(10), |_| cluster.pods().len() == 3).await;
    cluster.sandbox().patch(&PODS, &key("web-0"), &held(Value::Null)).unwrap();
    has_pods(&cluster, 5).await;
}
