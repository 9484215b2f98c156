//! Volumes: the plan, and their life on an API server in the process.

mod simulation;

use std::time::Duration;

use kcm_framework::api::views::PersistentVolume;
use kcm_framework::api::{KnownView as _, ObjectKey, Resource, View as _};
use kcm_testing::sandbox::Sandbox;
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use crate::persistentvolume_protection::DESCRIPTOR;
use crate::persistentvolume_protection::plan::{FINALIZER, plan};
use crate::shared::protection::Protection;
use crate::tests::faults::passing_faults;

const VOLUMES: Resource = PersistentVolume::RESOURCE;

#[test]
fn pvp_1_to_3_the_phase_alone_decides() {
    let terminating = json!("2026-01-01T00:00:00Z");
    let rows: [(&str, Value, Value, &str, Protection); 6] = [
        ("a new volume", json!([]), Value::Null, "Available", Protection::Add),
        ("a protected volume", json!([FINALIZER]), Value::Null, "Bound", Protection::Keep),
        ("terminating, bound", json!([FINALIZER]), terminating.clone(), "Bound", Protection::InUse),
        ("terminating, released", json!([FINALIZER]), terminating.clone(), "Released", Protection::Remove),
        (
            "terminating, with a claim but not bound",
            json!([FINALIZER]),
            terminating.clone(),
            "Available",
            Protection::Remove,
        ),
        ("terminating, not protected", json!(["other"]), terminating, "Bound", Protection::Keep),
    ];
    for (name, finalizers, deleted, phase, expected) in rows {
        let volume = json!({
            "metadata": { "name": "pv", "finalizers": finalizers, "deletionTimestamp": deleted },
            "spec": { "claimRef": { "namespace": "shop", "name": "data" } },
            "status": { "phase": phase },
        });
        assert_eq!(plan(&PersistentVolume::decode(&volume.to_string()).unwrap()), expected, "{name}");
    }
}

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR])
}

fn key() -> ObjectKey {
    ObjectKey::cluster_scoped("pv")
}

fn finalizers(sandbox: &Sandbox) -> Value {
    sandbox.get(&VOLUMES, &key()).unwrap_or_default()["metadata"]["finalizers"].clone()
}

async fn life(cluster: &TestCluster) {
    cluster.watches(&[VOLUMES]).await;
    let spec = json!({
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "/tmp/pv" },
    });
    let volume = json!({ "metadata": { "name": "pv", "finalizers": ["example.com/other"] }, "spec": spec });
    cluster.sandbox().create(&VOLUMES, volume).expect("the volume must be valid");
    cluster.sandbox().patch_status(&VOLUMES, &key(), &json!({ "status": { "phase": "Bound" } })).unwrap();
    // The API server protects new volumes itself.
    let unprotected = json!({ "metadata": { "finalizers": ["example.com/other"] } });
    cluster.sandbox().patch(&VOLUMES, &key(), &unprotected).unwrap();
    let both = json!(["example.com/other", FINALIZER]);
    cluster.eventually("it is protected", |sandbox| finalizers(sandbox) == both).await;
    cluster.sandbox().delete(&VOLUMES, &key()).unwrap();
    cluster.consistently("it stays", Duration::from_mins(1), |sandbox| finalizers(sandbox) == both).await;
    cluster.sandbox().patch_status(&VOLUMES, &key(), &json!({ "status": { "phase": "Released" } })).unwrap();
    cluster.eventually("it is released", |sandbox| finalizers(sandbox) == json!(["example.com/other"])).await;
}

#[tokio::test(start_paused = true)]
async fn a_bound_volume_is_protected_until_it_is_released() {
    let cluster = environment().start().await;
    life(&cluster).await;
    let writes = cluster.writes_of("pv-protection-controller").len();
    cluster.advance(Duration::from_hours(30)).await;
    assert_eq!(cluster.writes_of("pv-protection-controller").len(), writes, "at rest nothing is written");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, life).await;
    assert_eq!(writes, 2);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault.resource(VOLUMES));
        life(&cluster).await;
    }
}
