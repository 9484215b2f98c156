//! A rollout that is stuck, with the gate `StatefulSetRolloutRecovery` and without.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::views::Pod;
use kcm_testing::sandbox::{PODS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use super::apply::{CLAIMS, REVISIONS, SETS, images, roll, run_pods, web};
use super::faults::{passes, rolls};
use super::fixtures::{Claims, GATES, Is, pod, pod_with, revision, set, volumes, with_claims};
use crate::statefulset::DESCRIPTOR;
use crate::statefulset::gates::Gates;
use crate::statefulset::plan::plan;
use crate::statefulset::revisions::Revisions;
use crate::statefulset::steps::{Deletion, Input, Plan, Step, Wait};
use crate::tests::cluster::{NAMESPACE, environment, key, now};

const RECOVERS: Gates = Gates { rollout_recovery: true, ..GATES };

/// A plan from the revision `web-old` to the one of that name.
fn planned(changes: Value, pods: &[Arc<Pod>], update: &str, gates: Gates) -> Plan {
    let (current, update) = (revision("web-old", "image:1"), revision(update, "image:2"));
    let revisions = Revisions { current, update, collision_count: 0 };
    let (set, claims) = (set(changes), Claims::default());
    plan(Input { set: &set, pods, revisions: &revisions, claims: &claims, volumes: volumes(), gates, now: now() })
}

/// What a plan replaces, or else waits for.
fn outcome(plan: &Plan) -> String {
    let steps: Vec<_> = plan.phases.iter().flat_map(|phase| phase.pods.iter().flatten()).collect();
    match (&steps[..], &plan.wait) {
        ([Step::Delete { pod, reason: Deletion::Outdated }], Some(Wait::Deleted { pod: name })) => {
            assert_eq!(pod.metadata.key.name(), name);
            format!("replaces {name}")
        }
        ([], Some(Wait::NotReady { pod })) => format!("waits for {pod}"),
        ([], Some(Wait::NotAvailable { pod } | Wait::Terminating { pod })) => format!("lets {pod} be"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pod_of_a_revision_without_a_ready_pod_is_replaced_with_the_gate_alone() {
    use Is::{Old, OldUnready, OlderUnready, Ready, Unready, Young};
    let plain = || json!({});
    let partition =
        |partition: i32| json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": partition } } } });
    let on_delete = json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } });
    for (name, changes, pods, update, with, without) in [
        ("repaired", plain(), vec![Old, Old, OlderUnready], "web-new", "replaces web-2", "waits for web-2"),
        ("rolled back", plain(), vec![Old, Old, OlderUnready], "web-old", "replaces web-2", "waits for web-2"),
        ("broken from the first", plain(), vec![OldUnready], "web-new", "replaces web-0", "waits for web-0"),
        ("all are broken", plain(), vec![OldUnready; 3], "web-new", "replaces web-0", "waits for web-0"),
        (
            "the next of all",
            plain(),
            vec![Ready, OldUnready, OldUnready],
            "web-new",
            "replaces web-1",
            "waits for web-1",
        ),
        ("the template is broken", plain(), vec![Old, Old, Unready], "web-new", "waits for web-2", "waits for web-2"),
        (
            "another pod of the revision is ready",
            plain(),
            vec![OldUnready, Old, Ready],
            "web-new",
            "waits for web-0",
            "waits for web-0",
        ),
        (
            "the repair is not ready either",
            plain(),
            vec![OldUnready, OldUnready, Unready],
            "web-new",
            "waits for web-0",
            "waits for web-0",
        ),
        (
            "ready, and too young",
            json!({ "spec": { "minReadySeconds": 3 } }),
            vec![Young],
            "web-old",
            "lets web-0 be",
            "lets web-0 be",
        ),
        ("below the partition", partition(1), vec![OldUnready], "web-new", "waits for web-0", "waits for web-0"),
        (
            "below the partition, of neither revision",
            partition(2),
            vec![Old, OlderUnready],
            "web-new",
            "replaces web-1",
            "waits for web-1",
        ),
        ("on delete", on_delete, vec![Old, Old, OlderUnready], "web-new", "waits for web-2", "waits for web-2"),
    ] {
        let pods: Vec<_> = (0..).zip(pods).map(|(ordinal, is)| pod(ordinal, is)).collect();
        assert_eq!(outcome(&planned(changes.clone(), &pods, update, RECOVERS)), with, "{name}");
        assert_eq!(outcome(&planned(changes, &pods, update, GATES)), without, "{name}, without the gate");
    }
}

#[test]
fn a_pending_pod_is_replaced_and_a_terminating_one_is_not_deleted_again() {
    let pending = pod_with(0, Is::OlderUnready, json!({ "status": { "phase": "Pending" } }));
    assert_eq!(outcome(&planned(json!({}), &[pending], "web-new", RECOVERS)), "replaces web-0");
    let ends = pod_with(0, Is::OlderUnready, json!({ "metadata": { "deletionTimestamp": "2026-01-02T11:00:00Z" } }));
    assert_eq!(outcome(&planned(json!({}), &[ends], "web-new", RECOVERS)), "lets web-0 be");
}

fn with_gate(gate: bool) -> TestEnvironment {
    let argument = format!("--feature-gates=StatefulSetRolloutRecovery={gate}");
    environment(&[DESCRIPTOR]).arguments(&[&argument])
}

/// Three pods, the last of which has an image that never becomes ready.
async fn gets_stuck(cluster: &TestCluster) {
    cluster.watches(&[PODS, SETS, REVISIONS, CLAIMS]).await;
    cluster.sandbox().create(&SETS, web(3, with_claims("Retain", "Retain"))).unwrap();
    passes(cluster, &[("web-0", "image:1"), ("web-1", "image:1"), ("web-2", "image:1")]).await;
    roll(cluster, "broken:2");
    let is_stuck = |sandbox: &Sandbox| {
        run_pods(sandbox);
        images(sandbox).last() == Some(&("web-2".to_owned(), "broken:2".to_owned()))
    };
    cluster.eventually("the last pod has the broken image", is_stuck).await;
}

#[tokio::test(start_paused = true)]
async fn a_repaired_template_is_rolled_out_with_the_gate_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || with_gate(true),
        async |cluster| {
            gets_stuck(cluster).await;
            roll(cluster, "image:3");
            rolls(cluster, &[("web-0", "image:3"), ("web-1", "image:3"), ("web-2", "image:3")]).await;
            cluster.settle().await;
        },
    )
    .await;
    assert!(writes >= 20, "3 revisions, 3 claims, 7 pods, 4 deletions, and statuses: {writes}");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_replaces_the_broken_pod_alone_with_the_gate() {
    let cluster = with_gate(true).start().await;
    gets_stuck(&cluster).await;
    let uids = || -> Vec<Value> {
        let pods = cluster.sandbox().list(&PODS, Some(NAMESPACE));
        pods.iter().map(|pod| pod["metadata"]["uid"].clone()).collect()
    };
    let before = uids();
    roll(&cluster, "image:1");
    rolls(&cluster, &[("web-0", "image:1"), ("web-1", "image:1"), ("web-2", "image:1")]).await;
    let after = uids();
    assert_eq!(before[..2], after[..2]);
    assert_ne!(before[2], after[2]);
}

#[tokio::test(start_paused = true)]
async fn a_repair_that_is_broken_too_costs_one_pod() {
    let cluster = with_gate(true).start().await;
    gets_stuck(&cluster).await;
    roll(&cluster, "broken:3");
    cluster
        .eventually("the pod is replaced", |sandbox| {
            images(sandbox).last().is_some_and(|(_, image)| image == "broken:3")
        })
        .await;
    let expected = ["image:1", "image:1", "broken:3"];
    cluster
        .consistently("no other pod is", Duration::from_mins(10), |sandbox| {
            images(sandbox).iter().map(|(_, image)| image.as_str()).eq(expected)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_a_person_deletes_the_broken_pod() {
    let cluster = with_gate(false).start().await;
    gets_stuck(&cluster).await;
    roll(&cluster, "image:3");
    cluster
        .consistently("nothing is replaced", Duration::from_mins(10), |sandbox| {
            images(sandbox).last().is_some_and(|(_, image)| image == "broken:2")
        })
        .await;
    cluster.sandbox().delete_now(&PODS, &key("web-2")).unwrap();
    rolls(&cluster, &[("web-0", "image:3"), ("web-1", "image:3"), ("web-2", "image:3")]).await;
}
