//! Failures, lost responses, late watches and kills, with invariants that are checked throughout.

use std::collections::BTreeSet;
use std::time::Duration;

use kcm_testing::sandbox::{Fault, PODS, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, kill_after_each_write};
use serde_json::{Value, json};

use super::apply::{CLAIMS, Cluster, REVISIONS, SETS, has, images, is_complete, patch, roll, run_pods, scale, web};
use super::fixtures::with_claims;
use crate::statefulset::DESCRIPTOR;
use crate::tests::cluster::{NAMESPACE, environment, key};

const MINUTE: Duration = Duration::from_mins(1);

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// What holds at every moment of a life in order: each ordinal has one pod, every pod has its claim, and no more than one
/// pod is not ready.
fn check_invariants(sandbox: &Sandbox) {
    let pods = sandbox.list(&PODS, Some(NAMESPACE));
    let indexes: Vec<_> =
        pods.iter().map(|pod| pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"].as_str().unwrap()).collect();
    assert_eq!(indexes.iter().collect::<BTreeSet<_>>().len(), indexes.len(), "two pods of one ordinal: {indexes:?}");
    for pod in &pods {
        let claim = &pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
        assert!(sandbox.get(&CLAIMS, &key(claim.as_str().unwrap())).is_some(), "{claim} is missing");
    }
    let unready = pods.iter().filter(|pod| !is_ready(pod)).count();
    assert!(unready <= 1, "{unready} pods are not ready");
}

/// Waits until there are these pods and no others, all of them ready and reported, while the invariants hold.
pub(super) async fn passes(cluster: &TestCluster, pods: &[(&str, &str)]) {
    passes_with(cluster, pods, 0).await;
}

/// The same, while no more than one pod is missing or not ready: a rollout.
pub(super) async fn rolls(cluster: &TestCluster, pods: &[(&str, &str)]) {
    passes_with(cluster, pods, pods.len() - 1).await;
}

async fn passes_with(cluster: &TestCluster, pods: &[(&str, &str)], ready: usize) {
    let what = format!("there are {pods:?}, and they are reported");
    cluster
        .eventually(&what, |sandbox| {
            check_invariants(sandbox);
            let are_ready = sandbox.list(&PODS, Some(NAMESPACE)).iter().filter(|pod| is_ready(pod)).count();
            assert!(are_ready >= ready, "{are_ready} pods are ready, fewer than {ready}");
            run_pods(sandbox);
            is_complete(sandbox, pods)
        })
        .await;
}

/// A life: made, rolled down to a partition, completed, and scaled down.
async fn live(cluster: &TestCluster) {
    cluster.sandbox().create(&SETS, web(2, with_claims("Delete", "Delete"))).unwrap();
    passes(cluster, &[("web-0", "image:1"), ("web-1", "image:1")]).await;
    patch(cluster, &json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 1 } } } }));
    roll(cluster, "image:2");
    rolls(cluster, &[("web-0", "image:1"), ("web-1", "image:2")]).await;
    patch(cluster, &json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } }));
    rolls(cluster, &[("web-0", "image:2"), ("web-1", "image:2")]).await;
    scale(cluster, 1);
    passes(cluster, &[("web-0", "image:2")]).await;
    // A later start has nothing to do.
    cluster.settle().await;
    assert_eq!(cluster.sandbox().list(&REVISIONS, Some(NAMESPACE)).len(), 2);
    let owner = cluster.sandbox().get(&CLAIMS, &key("data-web-1")).unwrap()["metadata"]["ownerReferences"][0].clone();
    assert_eq!(owner["kind"], "Pod");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || environment(&[DESCRIPTOR]),
        async |cluster| {
            cluster.watches(&[PODS, SETS, REVISIONS, CLAIMS]).await;
            live(cluster).await;
        },
    )
    .await;
    assert!(writes >= 20, "2 revisions, 2 claims, 4 + 3 pods, 1 owner, and a status after each step: {writes}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_makes_nothing_twice() {
    for number in 0..24 {
        let cluster = Cluster::start(|_| {}).await;
        cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        live(&cluster).await;
        let created = cluster.created();
        let once = |name: &str| created.iter().filter(|created| created.starts_with(name)).count();
        assert!(once("ControllerRevision") <= 3 && once("PersistentVolumeClaim") <= 3, "{number}: {created:?}");
        assert_eq!((cluster.list(&CLAIMS).len(), cluster.list(&REVISIONS).len()), (2, 2), "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_minutes_behind_make_no_pod_twice() {
    let cluster = Cluster::start(|sandbox| {
        for resource in [PODS, CLAIMS, REVISIONS] {
            sandbox.faults().delay_events(&resource, 2 * MINUTE);
        }
    })
    .await;
    live(&cluster).await;
    assert_eq!(cluster.created().iter().filter(|created| created.starts_with("Pod ")).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_delays_the_pods_and_no_more() {
    let cluster = Cluster::start(|sandbox| {
        let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(30);
        sandbox.faults().inject(busy.fail(Status::too_many_requests(1)));
    })
    .await;
    live(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_stays_terminating_holds_up_a_rollout_and_costs_no_other_pod() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(3, with_claims("Retain", "Retain")));
    passes(&cluster, &[("web-0", "image:1"), ("web-1", "image:1"), ("web-2", "image:1")]).await;
    let held = |finalizers: Value| {
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        cluster.sandbox().patch(&CLAIMS, &key("data-web-1"), &patch).expect("the claim must be there");
    };
    held(json!(["example.com/held"]));
    cluster.sandbox().delete(&CLAIMS, &key("data-web-1")).unwrap();
    roll(&cluster, "image:2");
    let left = [("web-0".to_owned(), "image:1".to_owned()), ("web-2".to_owned(), "image:2".to_owned())];
    let is_held = |sandbox: &Sandbox| {
        check_invariants(sandbox);
        run_pods(sandbox);
        images(sandbox) == left
    };
    cluster.eventually("the pod of the claim is gone", is_held).await;
    cluster.consistently("it is not created, and no other pod is replaced", 10 * MINUTE, is_held).await;
    let message = "Create Pod web-1 in StatefulSet web failed error: pvc data-web-1 is being deleted";
    assert!(cluster.events().iter().any(|(_, _, told)| told == message), "{:?}", cluster.events());
    held(Value::Null);
    passes(&cluster, &[("web-0", "image:2"), ("web-1", "image:2"), ("web-2", "image:2")]).await;
    assert!(cluster.object(&CLAIMS, "data-web-1")["metadata"]["deletionTimestamp"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_reported_and_ends_a_burst() {
    let cluster = Cluster::start(|_| {}).await;
    let refused = Status::forbidden(&PODS, "web-0", "exceeded quota: pods");
    let quota = cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(PODS).fail(refused));
    cluster.create(web(100, json!({ "spec": { "podManagementPolicy": "Parallel" } })));
    let failed = |(_, reason, message): &(String, String, String)| {
        reason == "FailedCreate" && message.contains("exceeded quota")
    };
    cluster.eventually("the failure is reported", |_| cluster.events().iter().any(failed)).await;
    assert!(cluster.requests("POST").len() < 20, "one at a time");
    quota.remove();
    cluster.eventually("all are created", |_| cluster.pods().len() == 100).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_another_object_has_the_name_of_is_not_made_and_no_event_tells() {
    let foreign = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "namespace": NAMESPACE, "name": "web-0", "labels": { "app": "other" } },
        "spec": { "containers": [{ "name": "main", "image": "image:9" }] },
    });
    let cluster = Cluster::start(move |sandbox| drop(sandbox.create(&PODS, foreign).unwrap())).await;
    cluster.create(web(1, json!({})));
    cluster.advance(MINUTE).await;
    assert!(cluster.events().iter().all(|(_, reason, _)| reason != "FailedCreate"), "{:?}", cluster.events());
    cluster.sandbox().delete_now(&PODS, &key("web-0")).unwrap();
    cluster.advance(MINUTE).await;
    has(&cluster, &[("web-0", "image:1")]).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_update_does_not_delay_the_availability_of_a_pod() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(1, json!({ "spec": { "minReadySeconds": 3600 } })));
    let count = |field: &str| cluster.set()["status"][field].as_i64().unwrap_or(0);
    cluster
        .eventually("the pod is ready", |sandbox| {
            run_pods(sandbox);
            count("readyReplicas") == 1
        })
        .await;
    cluster.settle().await;
    let since = cluster.sandbox().now();

    // After a missing permission, the next attempt is a minute away.
    let refused = Status::forbidden(&SETS, "web", "User \"u\" cannot update resource \"statefulsets/status\"");
    let refused = Fault::on(Verb::Update).resource(SETS).times(1).fail(refused);
    let refused = cluster.sandbox().faults().inject(refused);
    patch(&cluster, &json!({ "spec": { "minReadySeconds": 20 } }));
    cluster.eventually("it is available", |_| count("availableReplicas") == 1).await;
    let waited = cluster.sandbox().now().duration_since(since).as_secs();
    assert_eq!((refused.hits(), cluster.take_errors().len()), (1, 1));
    assert!((15..=22).contains(&waited), "after {waited} s");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_fails_the_reconcile_and_the_error_of_a_pod_comes_first() {
    let failing = |message: &str| Status::forbidden(&PODS, "", &format!("User \"u\" cannot {message}"));
    for (name, pod_fails, expected) in
        [("status error", false, "update the status"), ("both errors", true, "create the pod")]
    {
        let cluster = Cluster::start(|_| {}).await;
        let of_status = Fault::on(Verb::Update).resource(SETS).times(1).fail(failing("update the status"));
        let of_status = cluster.sandbox().faults().inject(of_status);
        let times = usize::from(pod_fails);
        let of_pod = Fault::on(Verb::Create).resource(PODS).times(times).fail(failing("create the pod"));
        cluster.sandbox().faults().inject(of_pod);
        cluster.create(web(1, json!({})));
        has(&cluster, &[("web-0", "image:1")]).await;
        let errors = cluster.take_errors();
        assert_eq!((errors.len(), of_status.hits()), (1, 1), "{name}: {errors:?}");
        assert!(errors[0].contains(expected), "{name}: {errors:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_conflicts_is_repeated_by_the_next_reconcile() {
    let cluster = Cluster::start(|_| {}).await;
    let conflict = |resource| Status::conflict(&resource, "web", "the object has been modified");
    let of_status = Fault::on(Verb::Update).resource(SETS).times(1).fail(conflict(SETS));
    let of_pod = Fault::on(Verb::Patch).resource(PODS).times(1).fail(conflict(PODS));
    let faults = [of_status, of_pod].map(|fault| cluster.sandbox().faults().inject(fault));
    cluster.create(web(1, json!({})));
    has(&cluster, &[("web-0", "image:1")]).await;
    let unlabelled = json!({ "metadata": { "labels": { "statefulset.kubernetes.io/pod-name": null } } });
    cluster.sandbox().patch(&PODS, &key("web-0"), &unlabelled).unwrap();
    let name = || cluster.object(&PODS, "web-0")["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"].clone();
    cluster.eventually("the pod has its identity", |_| name() == "web-0").await;
    assert_eq!(faults.map(|fault| fault.hits()), [1, 1]);
    assert!(cluster.events().iter().all(|(kind, ..)| kind == "Normal"), "no event tells of a conflict");
}
