//! Claims and Pods beside each other, as states in which the controller comes to rest.
//!
//! # Upstream
//! `pvc_protection_controller_test.go` of `pkg/controller/volume/pvcprotection`.

use std::time::Duration;

use kcm_framework::api::views::PersistentVolumeClaim;
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{PODS, Sandbox};
use serde_json::{Value, json};

use crate::persistentvolumeclaim_protection::DESCRIPTOR;

const CLAIMS: Resource = PersistentVolumeClaim::RESOURCE;

/// Claims and Pods are `NAMESPACE/NAME` with words after them. Words of claims: `deleted` and a phase, otherwise Bound.
/// Words of Pods: names of claims, `waits` for a Node, `gone` is deleted once the claims are, and a phase.
struct Row {
    name: &'static str,
    claims: &'static [&'static str],
    pods: &'static [&'static str],
    /// The claims that are left with the status of their condition `Unused`, if they have it.
    left: &'static [&'static str],
}

const DELETED: &[Row] = &[
    Row { name: "no pod", claims: &["shop/a deleted"], pods: &[], left: &[] },
    Row { name: "two namespaces", claims: &["shop/a deleted", "bank/a deleted"], pods: &[], left: &[] },
    Row { name: "two of a namespace", claims: &["shop/a deleted", "shop/b deleted"], pods: &[], left: &[] },
    Row { name: "a pod uses it", claims: &["shop/a deleted"], pods: &["shop/web a"], left: &["shop/a False"] },
    Row {
        name: "a finished pod uses it",
        claims: &["shop/a deleted"],
        pods: &["shop/web a Succeeded"],
        left: &["shop/a True"],
    },
    Row { name: "a pod that waits for a node", claims: &["shop/a deleted"], pods: &["shop/web a waits"], left: &[] },
    Row { name: "a pod of another claim", claims: &["shop/a deleted"], pods: &["shop/web x"], left: &[] },
    Row { name: "a pod of another namespace", claims: &["shop/a deleted"], pods: &["bank/web a"], left: &[] },
    Row {
        name: "two, and a pod of another claim",
        claims: &["shop/a deleted", "shop/b deleted"],
        pods: &["shop/web x"],
        left: &[],
    },
    Row {
        name: "used and unused ones",
        claims: &["shop/a deleted", "shop/b deleted", "shop/c deleted", "bank/a deleted"],
        pods: &["shop/web b", "bank/web b a"],
        left: &["bank/a False", "shop/b False"],
    },
    Row { name: "the pod is deleted", claims: &["shop/a deleted"], pods: &["shop/web a gone"], left: &[] },
    Row {
        name: "one of two pods is deleted",
        claims: &["shop/a deleted"],
        pods: &["shop/web a gone", "shop/other a"],
        left: &["shop/a False"],
    },
];

const CONDITIONS: &[Row] = &[
    Row { name: "unused", claims: &["shop/a"], pods: &[], left: &["shop/a True"] },
    Row { name: "not bound", claims: &["shop/a Pending"], pods: &["shop/web a"], left: &["shop/a"] },
    Row { name: "used", claims: &["shop/a"], pods: &["shop/web a"], left: &["shop/a False"] },
    Row { name: "a pod waits for a node", claims: &["shop/a"], pods: &["shop/web a waits"], left: &["shop/a False"] },
    Row { name: "a pod has succeeded", claims: &["shop/a"], pods: &["shop/web a Succeeded"], left: &["shop/a True"] },
    Row { name: "a pod has failed", claims: &["shop/a"], pods: &["shop/web a Failed"], left: &["shop/a True"] },
    Row { name: "the pod is deleted", claims: &["shop/a"], pods: &["shop/web a gone"], left: &["shop/a True"] },
    Row {
        name: "one of two pods is deleted",
        claims: &["shop/a"],
        pods: &["shop/web a gone", "shop/other a"],
        left: &["shop/a False"],
    },
];

fn words(text: &'static str) -> (ObjectKey, Vec<&'static str>) {
    let mut words = text.split(' ');
    let (namespace, name) = words.next().and_then(|key| key.split_once('/')).unwrap();
    (ObjectKey::namespaced(namespace, name), words.collect())
}

fn metadata(key: &ObjectKey) -> Value {
    json!({ "namespace": key.namespace(), "name": key.name() })
}

fn create_claim(sandbox: &Sandbox, text: &'static str) {
    let (key, words) = words(text);
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    sandbox.create(&CLAIMS, json!({ "metadata": metadata(&key), "spec": spec })).expect("the claim must be valid");
    let phase = if words.contains(&"Pending") { "Pending" } else { "Bound" };
    sandbox.patch_status(&CLAIMS, &key, &json!({ "status": { "phase": phase } })).expect("the claim is there");
}

fn create_pod(sandbox: &Sandbox, text: &'static str) {
    let (key, words) = words(text);
    let (states, claims): (Vec<&str>, Vec<&str>) =
        words.into_iter().partition(|word| ["waits", "gone", "Succeeded", "Failed"].contains(word));
    let volume =
        |claim: &&str| json!({ "name": format!("v-{claim}"), "persistentVolumeClaim": { "claimName": claim } });
    let mut volumes: Vec<Value> = claims.iter().map(volume).collect();
    volumes.push(json!({ "name": "scratch", "emptyDir": {} }));
    let mut spec = json!({ "containers": [{ "name": "main", "image": "example/main:1" }], "volumes": volumes });
    if !states.contains(&"waits") {
        spec["nodeName"] = json!("n1");
    }
    sandbox.create(&PODS, json!({ "metadata": metadata(&key), "spec": spec })).expect("the pod must be valid");
    if let Some(phase) = states.iter().find(|state| ["Succeeded", "Failed"].contains(state)) {
        sandbox.patch_status(&PODS, &key, &json!({ "status": { "phase": phase } })).expect("the pod is there");
    }
}

/// The claims that are left, in the notation of [`Row::left`], sorted.
fn left(sandbox: &Sandbox) -> Vec<String> {
    let text = |claim: &Value| {
        let metadata = &claim["metadata"];
        let conditions = claim["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let unused = conditions.iter().find(|condition| condition["type"] == "Unused");
        let status = unused.and_then(|condition| condition["status"].as_str()).unwrap_or_default();
        let key = [&metadata["namespace"], &metadata["name"]].map(|value| value.as_str().unwrap_or_default());
        format!("{} {status}", key.join("/")).trim_end().to_owned()
    };
    let mut left: Vec<String> = sandbox.list(&CLAIMS, None).iter().map(text).collect();
    left.sort();
    left
}

async fn check(rows: &'static [Row]) {
    for row in rows {
        let cluster = TestEnvironment::new([DESCRIPTOR]).namespace("shop").namespace("bank").start().await;
        cluster.watches(&[CLAIMS, PODS]).await;
        let sandbox = cluster.sandbox();
        for claim in row.claims {
            create_claim(sandbox, claim);
        }
        for pod in row.pods {
            create_pod(sandbox, pod);
        }
        cluster.advance(Duration::from_secs(10)).await;
        for (key, _) in row.claims.iter().map(|text| words(text)).filter(|(_, words)| words.contains(&"deleted")) {
            sandbox.delete(&CLAIMS, &key).expect("the claim is there");
        }
        cluster.settle().await;
        for (key, _) in row.pods.iter().map(|text| words(text)).filter(|(_, words)| words.contains(&"gone")) {
            sandbox.delete_now(&PODS, &key).expect("the pod is there");
        }
        cluster.advance(Duration::from_mins(1)).await;
        assert_eq!(left(sandbox), row.left, "{}", row.name);
    }
}

#[tokio::test(start_paused = true)]
async fn pvcp_6_deleted_claims_stay_while_pods_use_them() {
    check(DELETED).await;
}

#[tokio::test(start_paused = true)]
async fn pvcp_5_claims_say_if_pods_use_them() {
    check(CONDITIONS).await;
}
