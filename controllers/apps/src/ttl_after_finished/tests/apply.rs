//! Whole reconciles on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{KnownView as _, Resource, views};
use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use super::{completed, with};
use crate::tests::cluster::{NAMESPACE, environment, key, now};
use crate::ttl_after_finished::DESCRIPTOR;

const JOBS: Resource = views::Job::RESOURCE;
const NAME: &str = "ttl-after-finished-controller";
const SECOND: Duration = Duration::from_secs(1);

/// Creates a job and puts its status.
fn create(sandbox: &Sandbox, job: &Value) {
    let name = job["metadata"]["name"].as_str().expect("jobs have names");
    sandbox.create(&JOBS, job.clone()).expect("the job must be valid");
    sandbox.patch_status(&JOBS, &key(name), &json!({ "status": job["status"] })).expect("the job must be there");
}

fn with_job(job: Value) -> TestEnvironment {
    environment(&[DESCRIPTOR]).prepare(move |sandbox| create(sandbox, &job))
}

/// Removes the job at once, with the finalizers that its deletion adds.
fn remove(sandbox: &Sandbox) {
    sandbox.delete_now(&JOBS, &key("a")).expect("the job must be there");
    if job(sandbox).is_some() {
        sandbox.patch(&JOBS, &key("a"), &json!({ "metadata": { "finalizers": null } })).expect("it is terminating");
    }
    assert!(job(sandbox).is_none());
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[JOBS]).await;
    cluster
}

fn job(sandbox: &Sandbox) -> Option<Value> {
    sandbox.get(&JOBS, &key("a"))
}

/// Deleted in the foreground, so that the finalizer of the garbage collector, which does not run here, keeps it.
fn is_terminating(sandbox: &Sandbox) -> bool {
    job(sandbox).is_some_and(|job| job["metadata"]["deletionTimestamp"].is_string())
}

async fn deleted(cluster: &TestCluster) {
    cluster.eventually("the job is deleted", is_terminating).await;
}

fn requests(cluster: &TestCluster) -> Vec<String> {
    cluster.requests_of(NAME).iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_is_deleted_in_the_foreground_after_a_live_read_at_the_end_of_its_time_to_live() {
    let cluster = start(with_job(completed("a", 0))).await;
    cluster.advance(59 * SECOND).await;
    assert!(requests(&cluster).is_empty());
    deleted(&cluster).await;
    let waited = cluster.sandbox().now().duration_since(now()).as_secs();
    assert!((60..62).contains(&waited), "after {waited} s");
    cluster.advance(120 * SECOND).await;
    let path = "/apis/batch/v1/namespaces/shop/jobs/a";
    assert_eq!(requests(&cluster), [format!("GET {path}"), format!("DELETE {path}")]);
    let body: Value = serde_json::from_str(&cluster.requests_of(NAME)[1].body).unwrap();
    let uid = &job(cluster.sandbox()).unwrap()["metadata"]["uid"];
    let version = &body["preconditions"]["resourceVersion"];
    assert!(version.is_string(), "{body}");
    let expected = json!({
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Foreground",
        "preconditions": { "uid": uid, "resourceVersion": version },
    });
    assert_eq!(body, expected);
    let metric = "ttl_after_finished_controller_job_deletion_duration_seconds_count 1";
    assert!(cluster.metrics().lines().any(|line| line == metric), "{}", cluster.metrics());
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_time_to_live_is_prolonged_while_its_deletion_is_on_its_way_is_kept() {
    let cluster = start(with_job(completed("a", 30))).await;
    cluster.sandbox().faults().inject(Fault::on(Verb::Delete).times(1).delay(10 * SECOND));
    cluster.advance(35 * SECOND).await;
    assert_eq!(requests(&cluster).len(), 2, "the deletion is on its way");
    cluster.sandbox().patch(&JOBS, &key("a"), &json!({ "spec": { "ttlSecondsAfterFinished": 600 } })).unwrap();
    cluster.advance(120 * SECOND).await;
    assert!(!is_terminating(cluster.sandbox()));
    cluster.advance(600 * SECOND).await;
    assert!(is_terminating(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_finishes_or_gets_a_time_to_live_later_is_deleted() {
    let running = with(completed("a", 0), "/status", "conditions", json!([]));
    let cluster = start(with_job(with(running, "/spec", "ttlSecondsAfterFinished", Value::Null))).await;
    cluster.advance(100 * SECOND).await;
    let status = json!({ "status": completed("a", 0)["status"] });
    cluster.sandbox().patch_status(&JOBS, &key("a"), &status).unwrap();
    cluster.advance(100 * SECOND).await;
    assert!(requests(&cluster).is_empty());
    cluster.sandbox().patch(&JOBS, &key("a"), &json!({ "spec": { "ttlSecondsAfterFinished": 60 } })).unwrap();
    deleted(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_time_to_live_that_was_changed_behind_the_cache_holds() {
    let cluster = start(with_job(completed("a", 0))).await;
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&JOBS);
    cluster.sandbox().patch(&JOBS, &key("a"), &json!({ "spec": { "ttlSecondsAfterFinished": 600 } })).unwrap();
    cluster.advance(300 * SECOND).await;
    assert!(!is_terminating(cluster.sandbox()));
    assert!(requests(&cluster).iter().all(|request| request.starts_with("GET")), "{:?}", requests(&cluster));
    cluster.sandbox().faults().release_watches(&JOBS);
    deleted(&cluster).await;
    assert!(cluster.sandbox().now().duration_since(now()).as_secs() >= 600);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_recreated_behind_the_cache_is_left_alone() {
    let cluster = start(with_job(completed("a", 0))).await;
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&JOBS);
    remove(cluster.sandbox());
    create(cluster.sandbox(), &with(completed("a", 0), "/status", "conditions", json!([])));
    cluster.advance(120 * SECOND).await;
    assert!(job(cluster.sandbox()).is_some() && !is_terminating(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_gone_behind_the_cache_is_no_error() {
    let cluster = start(with_job(completed("a", 0))).await;
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&JOBS);
    remove(cluster.sandbox());
    cluster.advance(120 * SECOND).await;
    assert_eq!(requests(&cluster).len(), 1, "{:?}", requests(&cluster));
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let two = || with_job(completed("a", 0)).prepare(|sandbox| create(sandbox, &completed("b", 30)));
    let writes = kill_after_each_write(two, async |cluster| {
        let all_terminating = |sandbox: &Sandbox| {
            let jobs = sandbox.list(&JOBS, Some(NAMESPACE));
            jobs.iter().all(|job| job["metadata"]["deletionTimestamp"].is_string())
        };
        cluster.eventually("both are deleted", all_terminating).await;
        cluster.settle().await;
    })
    .await;
    assert_eq!(writes, 2);
}

#[tokio::test(start_paused = true)]
async fn lost_responses_late_watches_and_a_busy_server_change_nothing() {
    let cluster = start(with_job(completed("a", 0))).await;
    cluster.sandbox().faults().inject(Fault::on_writes().times(1).lose_answer());
    deleted(&cluster).await;

    let cluster = start(with_job(completed("a", 0)).allow_error("Loop is stalled")).await;
    cluster.sandbox().faults().delay_events(&JOBS, 180 * SECOND);
    deleted(&cluster).await;
    cluster.advance(600 * SECOND).await;
    let deletions = requests(&cluster).iter().filter(|request| request.starts_with("DELETE")).count();
    assert_eq!(deletions, 1, "the job is not reconciled before the deletion is seen");

    let cluster = start(with_job(completed("a", 0))).await;
    let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(20).fail(Status::too_many_requests(1));
    cluster.sandbox().faults().inject(busy);
    deleted(&cluster).await;
}
