//! Whole reconciles on an API server in the process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kcm_framework::ControllerDescriptor;
use kcm_framework::api::{KnownView as _, Resource, views};
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use super::{CronJobBuilder, cron_job, zones};
use crate::cronjob::{SYNCS, init_in};
use crate::tests::cluster::{Cluster, NAMESPACE, environment, key, now};

pub(super) const CRON_JOBS: Resource = views::CronJob::RESOURCE;
pub(super) const JOBS: Resource = views::Job::RESOURCE;
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_mins(1);
/// The name of the controller.
const NAME: &str = "cronjob-controller";

/// The job of the first minute, which ends a minute after the start of a test.
pub(super) const FIRST: &str = "report-29455921";
pub(super) const SECOND_JOB: &str = "report-29455922";

/// The controller on a machine whose time zone is UTC.
pub(super) const CONTROLLER: ControllerDescriptor =
    ControllerDescriptor::new(NAME, |context| init_in(zones(), context)).settings(const { &[SYNCS.row()] });

/// A cron job as people create it.
pub(super) fn manifest(builder: CronJobBuilder) -> Value {
    let mut object = builder.0;
    object["metadata"] = json!({ "namespace": NAMESPACE, "name": object["metadata"]["name"] });
    object.as_object_mut().expect("it is an object").remove("status");
    object
}

pub(super) fn minutely() -> CronJobBuilder {
    cron_job("* * * * *")
}

pub(super) fn with(builder: CronJobBuilder) -> TestEnvironment {
    let object = manifest(builder);
    environment(&[CONTROLLER]).prepare(move |sandbox| drop(sandbox.create(&CRON_JOBS, object).expect("it is valid")))
}

async fn start(builder: CronJobBuilder) -> Cluster {
    let object = manifest(builder);
    Cluster::start(&[CONTROLLER], &[CRON_JOBS, JOBS], move |sandbox| {
        sandbox.create(&CRON_JOBS, object).expect("it is valid");
    })
    .await
}

pub(super) fn status(sandbox: &Sandbox) -> Value {
    sandbox.get(&CRON_JOBS, &key("report")).expect("it is there")["status"].clone()
}

/// The names of the jobs in `status.active`.
pub(super) fn active(sandbox: &Sandbox) -> Vec<String> {
    let status = status(sandbox);
    let active = status["active"].as_array().cloned().unwrap_or_default();
    active.iter().map(|job| job["name"].as_str().expect("it has a name").to_owned()).collect()
}

pub(super) fn last_schedule(sandbox: &Sandbox) -> Value {
    status(sandbox)["lastScheduleTime"].clone()
}

pub(super) fn names(sandbox: &Sandbox) -> Vec<String> {
    let jobs = sandbox.list(&JOBS, Some(NAMESPACE));
    jobs.iter().map(|job| job["metadata"]["name"].as_str().expect("it has a name").to_owned()).collect()
}

pub(super) fn finish(sandbox: &Sandbox, name: &str, type_: &str) {
    let at = format!("{:.0}", sandbox.now());
    let mut status =
        json!({ "startTime": at, "conditions": [{ "type": type_, "status": "True", "lastTransitionTime": at }] });
    if type_ == "Complete" {
        status["completionTime"] = json!(at);
    }
    sandbox.patch_status(&JOBS, &key(name), &json!({ "status": status })).expect("the job must be there");
}

/// All jobs that were ever seen: their uids by name. A name with two uids is a job that was created twice.
#[derive(Debug, Default)]
pub(super) struct Seen(BTreeMap<String, BTreeSet<String>>);

impl Seen {
    pub(super) fn see(&mut self, sandbox: &Sandbox) {
        for job in sandbox.list(&JOBS, Some(NAMESPACE)) {
            let text = |field: &str| job["metadata"][field].as_str().unwrap_or_default().to_owned();
            self.0.entry(text("name")).or_default().insert(text("uid"));
        }
    }

    /// Fails where a job was created twice. Returns the names.
    pub(super) fn once_each(&self) -> Vec<&str> {
        assert!(self.0.values().all(|uids| uids.len() == 1), "created twice: {:?}", self.0);
        self.0.keys().map(String::as_str).collect()
    }
}

pub(super) async fn started(cluster: &TestCluster, name: &str, seen: &mut Seen) {
    cluster
        .eventually(&format!("{name} is active"), |sandbox| {
            seen.see(sandbox);
            active(sandbox).iter().any(|active| active == name)
        })
        .await;
}

fn reasons(cluster: &Cluster) -> Vec<String> {
    cluster.events().into_iter().map(|(_, reason, _)| reason).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_is_started_at_its_minute_and_the_status_has_it() {
    let cluster = start(minutely()).await;
    cluster.advance(59 * SECOND).await;
    assert!(names(cluster.sandbox()).is_empty());
    started(&cluster, FIRST, &mut Seen::default()).await;
    let late = cluster.sandbox().now().duration_since(now()).as_millis();
    assert!((60_100..60_300).contains(&late), "after {late} ms");
    let job = cluster.object(&JOBS, FIRST);
    let reference = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": NAMESPACE,
        "name": FIRST,
        "uid": job["metadata"]["uid"],
        "resourceVersion": job["metadata"]["resourceVersion"],
    });
    assert_eq!(status(cluster.sandbox()), json!({ "active": [reference], "lastScheduleTime": "2026-01-02T12:01:00Z" }));
    assert_eq!(job["metadata"]["labels"]["app"], "report");
    let annotation = &job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(*annotation, "2026-01-02T12:01:00Z");
    let metric = "cronjob_controller_job_creation_skew_duration_seconds_count 1";
    assert!(cluster.metrics().lines().any(|line| line == metric), "{}", cluster.metrics());
    // No more than it needs.
    let requests: Vec<String> =
        cluster.requests("").iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    let path = "/apis/batch/v1/namespaces/shop";
    assert_eq!(requests, [format!("POST {path}/jobs"), format!("PUT {path}/cronjobs/report/status")]);
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_leaves_the_status_and_old_ones_are_deleted() {
    let limited = minutely().spec("successfulJobsHistoryLimit", json!(1)).spec("failedJobsHistoryLimit", json!(0));
    let cluster = start(limited).await;
    let mut seen = Seen::default();
    started(&cluster, FIRST, &mut seen).await;
    finish(cluster.sandbox(), FIRST, "Complete");
    cluster.settle().await;
    assert!(active(cluster.sandbox()).is_empty());
    assert_eq!(status(cluster.sandbox())["lastSuccessfulTime"], "2026-01-02T12:01:00Z");
    started(&cluster, SECOND_JOB, &mut seen).await;
    finish(cluster.sandbox(), SECOND_JOB, "Complete");
    cluster.settle().await;
    assert_eq!(names(cluster.sandbox()), [SECOND_JOB]);
    started(&cluster, "report-29455923", &mut seen).await;
    finish(cluster.sandbox(), "report-29455923", "Failed");
    cluster.settle().await;
    assert_eq!(names(cluster.sandbox()), [SECOND_JOB]);
    assert_eq!(seen.once_each().len(), 3);
    for (reason, count) in [("SuccessfulCreate", 3), ("SawCompletedJob", 2), ("SuccessfulDelete", 2)] {
        assert_eq!(
            reasons(&cluster).iter().filter(|it| *it == reason).count(),
            count,
            "{reason}: {:?}",
            cluster.events()
        );
    }
    let deletion = &cluster.bodies("DELETE")[0];
    assert_eq!(deletion["propagationPolicy"], "Background");
    assert!(deletion["preconditions"]["uid"].is_string(), "{deletion}");
}

#[tokio::test(start_paused = true)]
async fn the_policy_replace_deletes_what_runs_and_forbid_waits_for_it() {
    let cluster = start(minutely().spec("concurrencyPolicy", json!("Replace"))).await;
    let mut seen = Seen::default();
    started(&cluster, FIRST, &mut seen).await;
    started(&cluster, SECOND_JOB, &mut seen).await;
    assert_eq!(active(cluster.sandbox()), [SECOND_JOB]);
    assert_eq!(names(cluster.sandbox()), [SECOND_JOB]);
    let forbid = json!({ "spec": { "concurrencyPolicy": "Forbid" } });
    cluster.sandbox().patch(&CRON_JOBS, &key("report"), &forbid).unwrap();
    cluster.advance(5 * MINUTE).await;
    assert_eq!(names(cluster.sandbox()), [SECOND_JOB]);
    assert!(reasons(&cluster).contains(&"JobAlreadyActive".to_owned()));
    finish(cluster.sandbox(), SECOND_JOB, "Complete");
    // The minute that is due is started late.
    started(&cluster, "report-29455927", &mut seen).await;
    assert_eq!(seen.once_each().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_cron_job_starts_nothing_and_then_the_most_recent_start() {
    let cluster = start(minutely().spec("suspend", json!(true))).await;
    cluster.advance(200 * MINUTE).await;
    assert!(names(cluster.sandbox()).is_empty() && cluster.requests("").is_empty());
    cluster.sandbox().patch(&CRON_JOBS, &key("report"), &json!({ "spec": { "suspend": false } })).unwrap();
    cluster.settle().await;
    assert_eq!(names(cluster.sandbox()), ["report-29456120"]);
    assert!(reasons(&cluster).contains(&"TooManyMissedTimes".to_owned()), "{:?}", cluster.events());
}

#[tokio::test(start_paused = true)]
async fn a_changed_schedule_is_followed_without_a_start_that_it_alone_has_missed() {
    let cluster = start(cron_job("0 0 * * *")).await;
    cluster.advance(90 * SECOND).await;
    cluster.sandbox().patch(&CRON_JOBS, &key("report"), &json!({ "spec": { "schedule": "* * * * *" } })).unwrap();
    cluster.advance(29 * SECOND).await;
    assert!(names(cluster.sandbox()).is_empty());
    started(&cluster, SECOND_JOB, &mut Seen::default()).await;
}

#[tokio::test(start_paused = true)]
async fn an_active_job_that_is_gone_leaves_the_status() {
    let cluster = start(cron_job("1 12 * * *")).await;
    started(&cluster, FIRST, &mut Seen::default()).await;
    cluster.sandbox().delete_now(&JOBS, &key(FIRST)).unwrap();
    // The finalizer of a deletion without a policy, for the garbage collector, which does not run here.
    cluster.sandbox().patch(&JOBS, &key(FIRST), &json!({ "metadata": { "finalizers": null } })).unwrap();
    cluster.settle().await;
    assert!(active(cluster.sandbox()).is_empty() && names(cluster.sandbox()).is_empty());
    assert!(reasons(&cluster).contains(&"MissingJob".to_owned()));
    assert_eq!(last_schedule(cluster.sandbox()), "2026-01-02T12:01:00Z");
}

/// A job of that name with another owner, or with none.
pub(super) fn foreign(name: &str, owner: Option<&str>) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": minutely().0["spec"]["jobTemplate"]["spec"],
    });
    if let Some(uid) = owner {
        let owner =
            json!({ "apiVersion": "batch/v1", "kind": "CronJob", "name": "report", "uid": uid, "controller": true });
        job["metadata"]["ownerReferences"] = json!([owner]);
    }
    job
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_owner_under_the_name_costs_its_minute_alone() {
    for owner in [None, Some("earlier")] {
        let cluster = start(minutely()).await;
        cluster.sandbox().create(&JOBS, foreign(FIRST, owner)).unwrap();
        started(&cluster, SECOND_JOB, &mut Seen::default()).await;
        assert_eq!(active(cluster.sandbox()), [SECOND_JOB]);
        assert_eq!(names(cluster.sandbox()), [FIRST, SECOND_JOB]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_people_create_from_the_template_is_reported_and_not_active() {
    let cluster = start(minutely()).await;
    let uid = cluster.object(&CRON_JOBS, "report")["metadata"]["uid"].as_str().unwrap().to_owned();
    cluster.sandbox().create(&JOBS, foreign("by-hand", Some(&uid))).unwrap();
    cluster.settle().await;
    assert!(reasons(&cluster).contains(&"UnexpectedJob".to_owned()));
    started(&cluster, FIRST, &mut Seen::default()).await;
    assert_eq!(active(cluster.sandbox()), [FIRST]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_be_created_is_reported_and_retried() {
    let cluster = start(minutely()).await;
    let refused = Fault::on(Verb::Create).resource(JOBS).times(3).fail(Status::forbidden(&JOBS, FIRST, "no jobs yet"));
    cluster.sandbox().faults().inject(refused);
    started(&cluster, FIRST, &mut Seen::default()).await;
    let events = cluster.events();
    let failed = events.iter().find(|(_, reason, _)| reason == "FailedCreate").expect("it is reported");
    assert!(failed.2.starts_with("Error creating job: ") && failed.2.contains("no jobs yet"), "{failed:?}");
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn two_thousand_cron_jobs_of_one_minute_have_a_job_each_within_it() {
    let env = environment(&[CONTROLLER]).prepare(|sandbox| {
        for number in 0..2000 {
            let mut object = manifest(minutely());
            object["metadata"]["name"] = json!(format!("report-{number:04}"));
            sandbox.create(&CRON_JOBS, object).expect("it is valid");
        }
    });
    let cluster = env.start().await;
    cluster.advance(61 * SECOND).await;
    let jobs = names(cluster.sandbox());
    assert_eq!(jobs.len(), 2000);
    assert!(jobs.iter().all(|name| name.ends_with("-29455921")), "{jobs:?}");
}
