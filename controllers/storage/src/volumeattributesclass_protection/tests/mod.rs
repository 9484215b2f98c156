//! Classes: their event mapping, and their life on an API server in the process.

mod simulation;

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::views::PersistentVolumeClaim;
use kcm_framework::api::{KnownView as _, ObjectKey, Resource, View as _};
use kcm_framework::informers::Change;
use kcm_testing::sandbox::Sandbox;
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use crate::tests::faults::passing_faults;
use crate::volumeattributesclass_protection::DESCRIPTOR;
use crate::volumeattributesclass_protection::event_mapping::keys_for_claim;
use crate::volumeattributesclass_protection::plan::FINALIZER;
use crate::volumeattributesclass_protection::view::VolumeAttributesClass;

const CLASSES: Resource = VolumeAttributesClass::RESOURCE;
const CLAIMS: Resource = PersistentVolumeClaim::RESOURCE;

fn claim(asked: &str, current: &str, target: &str) -> Arc<PersistentVolumeClaim> {
    let claim = json!({
        "metadata": { "name": "data", "namespace": "shop" },
        "spec": { "volumeAttributesClassName": asked },
        "status": {
            "currentVolumeAttributesClassName": current,
            "modifyVolumeStatus": { "targetVolumeAttributesClassName": target },
        },
    });
    Arc::new(PersistentVolumeClaim::decode(&claim.to_string()).unwrap())
}

#[test]
fn vac_2_a_claim_enqueues_the_classes_that_it_gives_up() {
    let all = claim("gold", "silver", "bronze");
    let keys = |change: &Change<PersistentVolumeClaim>| {
        let mut keys: Vec<String> = keys_for_claim(change).iter().map(ToString::to_string).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&Change::Added(all.clone())), [""; 0]);
    let updated = |new| Change::Updated { old: all.clone(), new };
    assert_eq!(keys(&updated(claim("gold", "gold", "gold"))), ["bronze", "silver"]);
    assert_eq!(keys(&updated(claim("bronze", "gold", "silver"))), [""; 0]);
    assert_eq!(keys(&updated(claim("", "", ""))), ["bronze", "gold", "silver"]);
    let deleted = Change::Deleted { last: all.clone(), final_state_known: false };
    assert_eq!(keys(&deleted), ["bronze", "gold", "silver"], "also if the watch missed the deletion");
    assert_eq!(keys(&Change::Undecodable { last: all }), [""; 0], "it may still name them");
}

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop")
}

fn key() -> ObjectKey {
    ObjectKey::cluster_scoped("gold")
}

fn finalizers(sandbox: &Sandbox) -> Value {
    sandbox.get(&CLASSES, &key()).unwrap_or_default()["metadata"]["finalizers"].clone()
}

async fn life(cluster: &TestCluster) {
    cluster.watches(&[CLASSES, CLAIMS]).await;
    let class =
        json!({ "metadata": { "name": "gold" }, "driverName": "csi.example.com", "parameters": { "iops": "1" } });
    cluster.sandbox().create(&CLASSES, class).expect("the class must be valid");
    // The API server protects new classes itself.
    cluster.sandbox().patch(&CLASSES, &key(), &json!({ "metadata": { "finalizers": null } })).unwrap();
    cluster.eventually("it is protected", |sandbox| finalizers(sandbox) == json!([FINALIZER])).await;
    let spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } },
        "volumeAttributesClassName": "gold",
    });
    cluster
        .sandbox()
        .create(&CLAIMS, json!({ "metadata": { "namespace": "shop", "name": "data" }, "spec": spec }))
        .expect("the claim must be valid");
    cluster.settle().await;
    cluster.sandbox().delete(&CLASSES, &key()).unwrap();
    cluster.consistently("it stays", Duration::from_mins(1), |sandbox| finalizers(sandbox) == json!([FINALIZER])).await;
    // The API server protects claims too.
    let claim = ObjectKey::namespaced("shop", "data");
    cluster.sandbox().patch(&CLAIMS, &claim, &json!({ "metadata": { "finalizers": null } })).unwrap();
    cluster.sandbox().delete_now(&CLAIMS, &claim).unwrap();
    cluster.eventually("it is deleted", |sandbox| sandbox.get(&CLASSES, &key()).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn vac_3_a_class_is_protected_while_a_claim_names_it() {
    let cluster = environment().start().await;
    life(&cluster).await;
    let writes = cluster.writes_of("volumeattributesclass-protection-controller").len();
    cluster.advance(Duration::from_hours(30)).await;
    assert_eq!(cluster.writes_of("volumeattributesclass-protection-controller").len(), writes);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(environment, life).await, 2);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault.resource(CLASSES));
        life(&cluster).await;
    }
}
