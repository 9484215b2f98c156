//! The strategy `Recreate`, with the gate `StatefulSetRecreateStrategy` and without.

use std::time::Duration;

use kcm_framework::api::views::StatefulSetStatus;
use kcm_framework::api::{Condition, ConditionStatus};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{Fault, PODS, Sandbox, Status, Verb};
use serde_json::{Value, json};

use super::apply::{CLAIMS, Cluster, REVISIONS, SETS, has, images, is_complete, patch, roll, run_pods, web};
use super::fixtures::{Claims, GATES, Is, merge, planned, pod, revisions, set, with_claims};
use crate::statefulset::DESCRIPTOR;
use crate::statefulset::gates::Gates;
use crate::statefulset::recreate::{check_strategy, set_progress};
use crate::statefulset::status::status;
use crate::statefulset::steps::Recreation;
use crate::statefulset::steps::{Deletion, Step, Wait};
use crate::tests::cluster::{environment, key, now};

/// Lets the API server accept every strategy: it validates no custom resources.
fn accepts_every_strategy(sandbox: &Sandbox) {
    sandbox.unregister(&SETS);
    sandbox.register(SETS);
}

fn with_gate(gate: bool) -> TestEnvironment {
    let environment = environment(&[DESCRIPTOR]).prepare(accepts_every_strategy);
    if gate { environment.arguments(&["--feature-gates=StatefulSetRecreateStrategy=true"]) } else { environment }
}

const RECREATES: Gates = Gates { recreate: true, ..GATES };

fn recreate(more: Value) -> Value {
    let mut changes = json!({ "spec": { "updateStrategy": { "type": "Recreate", "rollingUpdate": null } } });
    merge(&mut changes, more);
    changes
}

#[test]
fn a_strategy_that_is_not_carried_out_is_an_error() {
    let of = |type_: &str, gates: Gates| {
        let set = set(json!({ "spec": { "updateStrategy": { "type": type_, "rollingUpdate": null } } }));
        check_strategy(&set, gates).map_err(|error| error.to_string())
    };
    let disabled =
        "statefulset shop/web uses Recreate strategy but feature gate StatefulSetRecreateStrategy is disabled";
    for type_ in ["RollingUpdate", "OnDelete", ""] {
        assert_eq!(of(type_, GATES), Ok(()), "{type_}");
    }
    assert_eq!((of("Recreate", RECREATES), of("Recreate", GATES)), (Ok(()), Err(disabled.to_owned())));
    let unknown = "statefulset shop/web uses strategy BlueGreen, which this version does not support";
    assert_eq!(of("BlueGreen", RECREATES), Err(unknown.to_owned()));
}

#[test]
fn pods_of_earlier_revisions_are_deleted_before_any_other_step() {
    use Is::{Old, OldTerminating, OldUnready, Older, Pending, Ready, Unready};
    let creating = Some(Recreation::Creating);
    let deleting = Some(Recreation::Deleting);
    for policy in ["OrderedReady", "Parallel"] {
        for (name, pods, deleted, recreation) in [
            ("all are old", vec![Old, Older, OldUnready], "0 1 2", deleting),
            ("a surplus pod is old too", vec![Old, Old, Old, Old], "0 1 2 3", deleting),
            ("one is new", vec![Ready, Old, Old], "1 2", deleting),
            ("one terminates", vec![Ready, OldTerminating, Ready], "", deleting),
            ("one terminates and one is old", vec![Ready, OldTerminating, Old], "2", deleting),
            ("all are new", vec![Ready, Ready, Ready], "", creating),
            ("a new one is not ready", vec![Ready, Ready, Unready], "", creating),
            ("a new one is pending", vec![Ready, Ready, Pending], "", creating),
        ] {
            let set = set(recreate(json!({ "spec": { "podManagementPolicy": policy } })));
            let pods: Vec<_> = (0..).zip(pods).map(|(ordinal, is)| pod(ordinal, is)).collect();
            let plan = planned(&set, &pods, &Claims::default(), RECREATES);
            let steps = plan.phases.iter().flat_map(|phase| phase.pods.iter().flatten());
            let names = steps.map(|step| {
                let Step::Delete { pod, reason: Deletion::Outdated } = step else { panic!("{name}: {step:?}") };
                pod.metadata.key.name().trim_start_matches("web-")
            });
            assert_eq!(names.collect::<Vec<_>>().join(" "), deleted, "{name}, {policy}");
            assert_eq!(plan.recreation, recreation, "{name}, {policy}");
            assert!(plan.phases.iter().all(|phase| !phase.in_order), "{name}: in batches, {policy}");
            let waits = matches!(plan.wait, Some(Wait::Recreation { .. }));
            assert_eq!(waits, recreation == deleting, "{name}, {policy}: {:?}", plan.wait);
        }
    }
}

#[test]
fn the_condition_follows_the_recreation() {
    use Is::{Old, Ready, Unready};
    let done = json!({
        "type": "Progressing", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "RecreateCompleted", "message": "All pods recreated successfully",
    });
    let doing = json!({
        "type": "Progressing", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "RecreateInProgress", "message": "Deleting old revision pods",
    });
    let other = json!({ "type": "Mine", "status": "True" });
    let new = "Waiting for new-revision pods to be created";
    let [progress, end] = [ConditionStatus::True, ConditionStatus::False];
    let at_start = "2026-01-01T00:00:00Z".parse().unwrap();
    for (name, present, recreation, pods, expected) in [
        (
            "it begins",
            vec![],
            Some(Recreation::Deleting),
            vec![Old],
            Some((progress, "Deleting old revision pods", now())),
        ),
        ("again", vec![done.clone()], Some(Recreation::Creating), vec![Unready], Some((progress, new, now()))),
        ("it goes on", vec![doing.clone()], Some(Recreation::Creating), vec![Unready], Some((progress, new, at_start))),
        (
            "it ends",
            vec![other.clone(), doing.clone()],
            Some(Recreation::Creating),
            vec![Ready],
            Some((end, "All pods recreated successfully", now())),
        ),
        ("nothing changes", vec![done], None, vec![Ready], Some((end, "All pods recreated successfully", at_start))),
        ("it never began", vec![other], None, vec![Ready], None),
    ] {
        let pods: Vec<_> = (0..).zip(pods).map(|(ordinal, is)| pod(ordinal, is)).collect();
        let set = set(recreate(json!({ "spec": { "replicas": 1 }, "status": { "conditions": present } })));
        let mut status = status(&set, &revisions(), &pods, now());
        let others = status.conditions.iter().filter(|one| one.type_ != "Progressing").count();
        set_progress(&set, &mut status, recreation, RECREATES, now());
        let found: Vec<&Condition> = status.conditions.iter().filter(|one| one.type_ == "Progressing").collect();
        let found = found.first().map(|one| (one.status, &*one.message, one.last_transition_time.unwrap()));
        assert_eq!(found, expected, "{name}");
        assert_eq!(status.conditions.len(), others + usize::from(expected.is_some()), "{name}: the others stay");
    }
    // Another strategy, or the gate being off, leaves the condition alone.
    for (changes, gates) in [(json!({}), RECREATES), (recreate(json!({})), GATES)] {
        let mut changes = changes;
        merge(&mut changes, json!({ "spec": { "replicas": 1 }, "status": { "conditions": [doing] } }));
        let set = set(changes);
        let mut status: StatefulSetStatus = status(&set, &revisions(), &[pod(0, Is::Ready)], now());
        set_progress(&set, &mut status, None, gates, now());
        assert_eq!(status.conditions, set.status.conditions);
    }
}

/// Waits until there are these pods, all of them ready and reported. Pods of two images never exist together.
async fn recreates(cluster: &Cluster, replicas: usize, image: &str) {
    let names: Vec<_> = (0..replicas).map(|ordinal| format!("web-{ordinal}")).collect();
    let pods: Vec<_> = names.iter().map(|name| (name.as_str(), image)).collect();
    let what = format!("there are {replicas} pods of {image}, and they are reported");
    cluster
        .eventually(&what, |sandbox| {
            let images = images(sandbox);
            assert!(images.windows(2).all(|pair| pair[0].1 == pair[1].1), "revisions are mixed: {images:?}");
            run_pods(sandbox);
            is_complete(sandbox, &pods)
        })
        .await;
}

/// Status, reason and message of the condition `Progressing` in every status that was written, without repetitions.
fn progress(cluster: &Cluster) -> Vec<[String; 3]> {
    let puts = cluster.bodies("PUT");
    let conditions = puts.iter().filter(|put| put["kind"] == "StatefulSet").map(|put| &put["status"]["conditions"][0]);
    let mut states: Vec<_> = conditions
        .filter(|condition| condition["type"] == "Progressing")
        .map(|condition| ["status", "reason", "message"].map(|field| condition[field].as_str().unwrap().to_owned()))
        .collect();
    states.dedup();
    states
}

const WHOLE: [[&str; 3]; 3] = [
    ["True", "RecreateInProgress", "Deleting old revision pods"],
    ["True", "RecreateInProgress", "Waiting for new-revision pods to be created"],
    ["False", "RecreateCompleted", "All pods recreated successfully"],
];

#[tokio::test(start_paused = true)]
async fn every_pod_is_recreated_whatever_the_policy_and_the_scale() {
    for policy in ["OrderedReady", "Parallel"] {
        for (name, before, after) in [("image", 3, 3), ("image and scale up", 3, 5), ("image and scale down", 5, 3)] {
            let cluster = Cluster::start_in(with_gate(true)).await;
            let mut changes = recreate(json!({ "spec": { "podManagementPolicy": policy } }));
            merge(&mut changes, with_claims("Retain", "Retain"));
            cluster.create(web(before, changes));
            recreates(&cluster, usize::try_from(before).unwrap(), "image:1").await;
            assert!(progress(&cluster).is_empty(), "{name}, {policy}");
            let claims =
                || cluster.list(&CLAIMS).iter().map(|claim| claim["metadata"]["uid"].clone()).collect::<Vec<_>>();
            let claims_before = claims();

            let containers = json!([{ "name": "main", "image": "image:2" }]);
            patch(
                &cluster,
                &json!({ "spec": { "replicas": after, "template": { "spec": { "containers": containers } } } }),
            );
            recreates(&cluster, after, "image:2").await;
            cluster.eventually("it is complete", |_| progress(&cluster).len() == 3).await;
            assert_eq!(progress(&cluster), WHOLE, "{name}, {policy}");
            let status = cluster.set()["status"].clone();
            assert_eq!(status["currentRevision"], status["updateRevision"], "{name}, {policy}");
            assert_eq!(claims()[..claims_before.len()], claims_before, "{name}, {policy}: claims stay");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_none_of_the_template_recreates_nothing() {
    let cluster = Cluster::start_in(with_gate(true)).await;
    cluster.create(web(3, recreate(json!({}))));
    recreates(&cluster, 3, "image:1").await;
    patch(&cluster, &json!({ "spec": { "minReadySeconds": 1 }, "metadata": { "annotations": { "a": "b" } } }));
    cluster.advance(Duration::from_mins(1)).await;
    let status = cluster.set()["status"].clone();
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(status["observedGeneration"], cluster.set()["metadata"]["generation"]);
    assert!(cluster.deleted().is_empty() && progress(&cluster).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_stuck_or_has_failed_is_recreated_too() {
    let cluster = Cluster::start_in(with_gate(true)).await;
    let containers = json!([{ "name": "main", "image": "broken:1" }]);
    let broken = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    cluster.create(web(3, recreate(broken)));
    cluster.eventually("the first pod is stuck", |_| cluster.pods().len() == 1).await;
    cluster.settle().await;
    roll(&cluster, "image:2");
    recreates(&cluster, 3, "image:2").await;
    cluster.sandbox().set_pod_phase(&key("web-1"), "Failed").unwrap();
    roll(&cluster, "image:3");
    recreates(&cluster, 3, "image:3").await;
}

#[tokio::test(start_paused = true)]
async fn no_pod_is_created_while_an_earlier_one_terminates() {
    let cluster = Cluster::start_in(with_gate(true)).await;
    cluster.create(web(2, recreate(json!({ "spec": { "podManagementPolicy": "Parallel" } }))));
    recreates(&cluster, 2, "image:1").await;
    let held = |finalizers: Value| {
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        cluster.sandbox().patch(&PODS, &key("web-1"), &patch).unwrap();
    };
    held(json!(["example.com/held"]));
    roll(&cluster, "image:2");
    let remains = [("web-1".to_owned(), "image:1".to_owned())];
    cluster.eventually("one pod is left", |sandbox| images(sandbox) == remains).await;
    cluster.consistently("none is created", Duration::from_mins(10), |sandbox| images(sandbox) == remains).await;
    assert_eq!(progress(&cluster), WHOLE[..1]);
    assert_eq!(cluster.deleted().len(), 2, "a terminating pod is not deleted again");
    held(json!(null));
    recreates(&cluster, 2, "image:2").await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_is_retried_and_reported_by_its_event() {
    let cluster = Cluster::start_in(with_gate(true)).await;
    cluster.create(web(2, recreate(json!({}))));
    recreates(&cluster, 2, "image:1").await;
    let refused = Fault::on(Verb::Delete).resource(PODS).times(1).fail(Status::new(500, "InternalError", "no"));
    cluster.sandbox().faults().inject(refused);
    let before = cluster.bodies("PUT").len();
    roll(&cluster, "image:2");
    recreates(&cluster, 2, "image:2").await;
    let first = cluster.bodies("PUT").remove(before);
    assert_eq!((&first["status"]["conditions"], &first["status"]["observedGeneration"]), (&Value::Null, &json!(2)));
    let message = "Delete Pod web-0 in StatefulSet web failed error: no";
    let event = ("Warning".to_owned(), "FailedDelete".to_owned(), message.to_owned());
    assert!(cluster.events().contains(&event), "{:?}", cluster.events());
    cluster.eventually("it is complete", |_| progress(&cluster) == WHOLE).await;
}

#[tokio::test(start_paused = true)]
async fn the_strategy_recreate_is_refused_without_its_gate() {
    let cluster = Cluster::start_in(with_gate(false)).await;
    cluster.create(web(2, json!({})));
    let pods = [("web-0", "image:1"), ("web-1", "image:1")];
    has(&cluster, &pods).await;
    cluster.settle().await;
    let status = cluster.set()["status"].clone();
    patch(&cluster, &recreate(json!({})));
    roll(&cluster, "image:2");
    cluster.advance(Duration::from_mins(10)).await;
    let unchanged = pods.map(|(name, image)| (name.to_owned(), image.to_owned()));
    assert_eq!(images(cluster.sandbox()), unchanged, "no pod is replaced");
    assert_eq!(cluster.set()["status"], status, "the status is not written");
    assert_eq!(cluster.list(&REVISIONS).len(), 2, "the revision of the template is created");
    let message =
        "statefulset shop/web uses Recreate strategy but feature gate StatefulSetRecreateStrategy is disabled";
    let event = ("Warning".to_owned(), "UnknownStrategy".to_owned(), message.to_owned());
    assert!(cluster.events().contains(&event), "{:?}", cluster.events());
    // A strategy that is known again is carried out.
    patch(&cluster, &json!({ "spec": { "updateStrategy": { "type": "RollingUpdate" } } }));
    has(&cluster, &[("web-0", "image:2"), ("web-1", "image:2")]).await;
}
