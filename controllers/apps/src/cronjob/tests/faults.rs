//! At most one job for each minute, whatever fails.

use std::time::Duration;

use jiff::SignedDuration;
use kcm_framework::api::ObjectKey;
use kcm_testing::sandbox::{Fault, NAMESPACES, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, kill_after_each_write};
use serde_json::json;
use tokio::time::Instant;

use super::apply::{
    CRON_JOBS, FIRST, JOBS, MINUTE, SECOND, SECOND_JOB, Seen, active, finish, foreign, last_schedule, minutely, names,
    started, status, with,
};
use super::cron_job;
use crate::tests::cluster::{NAMESPACE, key, now};

/// Three minutes of a cron job that keeps one finished job: each job is started once, finishes, and is deleted.
async fn three_minutes(cluster: &TestCluster) -> Seen {
    let mut seen = Seen::default();
    for name in [FIRST, SECOND_JOB, "report-29455923"] {
        started(cluster, name, &mut seen).await;
        finish(cluster.sandbox(), name, "Complete");
        let is_tidy = |sandbox: &Sandbox| {
            seen.see(sandbox);
            active(sandbox).is_empty() && names(sandbox) == [name]
        };
        cluster.eventually("the finished job is the only one", is_tidy).await;
    }
    assert_eq!(last_schedule(cluster.sandbox()), "2026-01-02T12:03:00Z");
    seen.once_each();
    seen
}

fn environment() -> kcm_testing::TestEnvironment {
    with(minutely().spec("successfulJobsHistoryLimit", json!(1)))
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        three_minutes(cluster).await;
    })
    .await;
    assert_eq!(writes, 11, "three creations, two deletions, and the status at each start and end");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_finishes_and_is_beyond_the_history_before_its_start_is_recorded_is_not_started_again() {
    let env = || with(minutely().spec("successfulJobsHistoryLimit", json!(0)));
    let scenario = async |cluster: &TestCluster| {
        let mut seen = Seen::default();
        // It completes as soon as it exists, also between the creation and the write of the status.
        for _ in 0..2 {
            cluster
                .eventually("a job exists", |sandbox| {
                    seen.see(sandbox);
                    names(sandbox).iter().any(|_| true)
                })
                .await;
            for name in names(cluster.sandbox()) {
                finish(cluster.sandbox(), &name, "Complete");
            }
            let is_gone = |sandbox: &Sandbox| {
                seen.see(sandbox);
                names(sandbox).is_empty() && active(sandbox).is_empty() && last_schedule(sandbox).is_string()
            };
            cluster.eventually("it is deleted", is_gone).await;
            cluster
                .consistently("it is not started again", 30 * SECOND, |sandbox| {
                    seen.see(sandbox);
                    names(sandbox).is_empty()
                })
                .await;
        }
        assert_eq!(seen.once_each(), [FIRST, SECOND_JOB]);
    };
    kill_after_each_write(env, scenario).await;
}

#[tokio::test(start_paused = true)]
async fn lost_responses_change_nothing() {
    for skipped in 0..8 {
        let cluster = environment().start().await;
        cluster.watches(&[CRON_JOBS, JOBS]).await;
        cluster.sandbox().faults().inject(Fault::on_writes().skip(skipped).times(1).lose_answer());
        let seen = three_minutes(&cluster).await;
        assert_eq!(seen.once_each().len(), 3, "without the answer to write {skipped}");
    }
}

#[tokio::test(start_paused = true)]
async fn late_watches_cost_starts_and_never_add_one() {
    for resource in [JOBS, CRON_JOBS] {
        let cluster = with(minutely()).allow_error("Loop is stalled").start().await;
        cluster.watches(&[CRON_JOBS, JOBS]).await;
        cluster.sandbox().faults().delay_events(&resource, Duration::from_secs(150));
        let mut seen = Seen::default();
        for _ in 0..100 {
            cluster.advance(6 * SECOND).await;
            seen.see(cluster.sandbox());
        }
        let names = seen.once_each();
        assert!((2..=10).contains(&names.len()), "{names:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_throttles_delays_a_start() {
    let cluster = environment().start().await;
    cluster.watches(&[CRON_JOBS, JOBS]).await;
    let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(15).fail(Status::too_many_requests(1));
    cluster.sandbox().faults().inject(busy);
    let mut seen = Seen::default();
    started(&cluster, FIRST, &mut seen).await;
    assert_eq!(seen.once_each(), [FIRST]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_an_hour_starts_no_job_twice() {
    for is_killed in [false, true] {
        let cluster = environment().start().await;
        let mut seen = three_minutes(&cluster).await;
        cluster.set_clock(SignedDuration::from_hours(-1));
        if is_killed {
            cluster.kill();
        }
        for _ in 0..59 {
            cluster.advance(MINUTE).await;
            seen.see(cluster.sandbox());
        }
        assert_eq!(seen.once_each().len(), 3, "all minutes of this hour had their start");
        started(&cluster, "report-29455924", &mut seen).await;
        assert_eq!(seen.once_each().len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_starts_the_most_recent_minute() {
    let cluster = environment().start().await;
    let mut seen = three_minutes(&cluster).await;
    cluster.set_clock(SignedDuration::from_hours(1));
    started(&cluster, "report-29455984", &mut seen).await;
    assert_eq!(seen.once_each().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_be_created_does_not_delay_the_next_start() {
    let cluster = with(cron_job("@every 40s")).start().await;
    // A missing permission is retried after a minute, which is 20 seconds after the next start.
    let refused = Status::forbidden(&JOBS, "report", "User \"u\" cannot create resource \"jobs\"");
    let refused = cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(JOBS).times(1).fail(refused));
    started(&cluster, FIRST, &mut Seen::default()).await;
    assert_eq!(refused.hits(), 1, "the start at 12:00:40");
    let late = cluster.sandbox().now().duration_since(now()).as_millis();
    assert!((80_100..80_300).contains(&late), "after {late} ms");
    drop(cluster.take_errors());
}

/// The number of events of the cron job with that reason.
fn events(cluster: &TestCluster, reason: &str) -> usize {
    let events = cluster.events_of("cronjob-controller");
    events.iter().filter(|event| event.contains(reason)).count()
}

#[tokio::test(start_paused = true)]
async fn an_old_job_that_cannot_be_deleted_delays_no_start() {
    let limited = minutely().spec("successfulJobsHistoryLimit", json!(0)).spec("startingDeadlineSeconds", json!(20));
    let cluster = with(limited).start().await;
    cluster.watches(&[CRON_JOBS, JOBS]).await;
    let mut seen = Seen::default();
    started(&cluster, FIRST, &mut seen).await;
    let refused = Status::new(422, "Invalid", "a webhook keeps it");
    let refused = Fault::on(Verb::Delete).resource(JOBS).name(FIRST).fail(refused);
    let refused = cluster.sandbox().faults().inject(refused);
    finish(cluster.sandbox(), FIRST, "Complete");
    for _ in 0..60 {
        cluster.advance(MINUTE).await;
        seen.see(cluster.sandbox());
        for name in names(cluster.sandbox()).iter().filter(|name| *name != FIRST) {
            finish(cluster.sandbox(), name, "Complete");
        }
    }
    cluster.settle().await;
    assert_eq!(seen.once_each().len(), 61, "a job of each minute");
    assert!(refused.hits() >= 60, "each reconcile of a start tries it: {}", refused.hits());
    assert_eq!(names(cluster.sandbox()).len(), 1, "all others are deleted: {:?}", names(cluster.sandbox()));
    assert!(events(&cluster, "FailedDelete") > 0);
    refused.remove();
    // The next start tries again.
    cluster.advance(2 * MINUTE).await;
    assert!(!names(cluster.sandbox()).iter().any(|name| name == FIRST));
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn old_jobs_are_deleted_although_a_quota_refuses_the_new_one() {
    let limited = minutely().spec("successfulJobsHistoryLimit", json!(1)).spec("failedJobsHistoryLimit", json!(1));
    let cluster = with(limited).start().await;
    cluster.watches(&[CRON_JOBS, JOBS]).await;
    let mut seen = Seen::default();
    for name in [FIRST, SECOND_JOB, "report-29455923", "report-29455924"] {
        started(&cluster, name, &mut seen).await;
    }
    let exceeded = Status::forbidden(&JOBS, "report", "exceeded quota: jobs, requested: count/jobs.batch=1");
    let exceeded = cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(JOBS).fail(exceeded));
    for (name, type_) in
        [(FIRST, "Complete"), (SECOND_JOB, "Complete"), ("report-29455923", "Failed"), ("report-29455924", "Failed")]
    {
        finish(cluster.sandbox(), name, type_);
    }
    cluster.advance(2 * MINUTE).await;
    assert!(exceeded.hits() > 0);
    assert_eq!(names(cluster.sandbox()), [SECOND_JOB, "report-29455924"], "one of each result is kept");
    assert!(active(cluster.sandbox()).is_empty());
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn a_success_ends_the_back_off_also_if_no_start_follows() {
    let cluster = with(minutely()).start().await;
    cluster.watches(&[CRON_JOBS, JOBS]).await;
    let mut seen = Seen::default();
    started(&cluster, FIRST, &mut seen).await;
    started(&cluster, SECOND_JOB, &mut seen).await;
    cluster.sandbox().patch(&CRON_JOBS, &key("report"), &json!({ "spec": { "suspend": true } })).unwrap();
    cluster.settle().await;
    let refusing = |times: usize| {
        let refused = Status::new(422, "Invalid", "a policy refuses it");
        cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(CRON_JOBS).times(times).fail(refused))
    };
    let refused = refusing(10);
    finish(cluster.sandbox(), FIRST, "Complete");
    let finished_at = Instant::now();
    cluster.eventually("the status has one job", |sandbox| active(sandbox) == [SECOND_JOB]).await;
    assert_eq!(refused.hits(), 10);
    assert!(finished_at.elapsed() > 2 * SECOND, "the back-off has grown: {:?}", finished_at.elapsed());
    let refused = refusing(1);
    finish(cluster.sandbox(), SECOND_JOB, "Complete");
    cluster.eventually("it is refused once more", |_| refused.hits() == 1).await;
    let refused_at = Instant::now();
    cluster.eventually("the status has none", |sandbox| active(sandbox).is_empty()).await;
    assert!(refused_at.elapsed() < SECOND, "the back-off after eleven failures is 5 s: {:?}", refused_at.elapsed());
    assert!(status(cluster.sandbox())["lastSuccessfulTime"].is_string());
    drop(cluster.take_errors());
}

/// As upstream since 1.37: 1.36 read the Job in the namespace of the template, which is empty.
#[tokio::test(start_paused = true)]
async fn a_job_that_exists_already_is_read_in_the_namespace_of_the_cron_job() {
    for namespace in [json!(null), json!("other")] {
        let mut cron_job = minutely();
        cron_job.0["spec"]["jobTemplate"]["metadata"]["namespace"] = namespace.clone();
        let env = with(cron_job).prepare(|sandbox| {
            let other = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "other" } });
            sandbox.create(&NAMESPACES, other).expect("it is valid");
        });
        let cluster = env.start().await;
        cluster.watches(&[CRON_JOBS, JOBS]).await;
        // The cache does not show the job, as after the creation by an earlier leader.
        cluster.sandbox().faults().hold_watches(&JOBS);
        let uid = cluster.sandbox().get(&CRON_JOBS, &key("report")).unwrap()["metadata"]["uid"].clone();
        let job = |namespace: &str| {
            let mut job = foreign(FIRST, uid.as_str());
            job["metadata"]["namespace"] = json!(namespace);
            cluster.sandbox().create(&JOBS, job).expect("it is valid")
        };
        let (own, other) = (job(NAMESPACE), job("other"));
        started(&cluster, FIRST, &mut Seen::default()).await;
        assert_eq!(status(cluster.sandbox())["active"][0]["uid"], own["metadata"]["uid"], "{namespace}");
        let gets = cluster.requests_of("cronjob-controller").into_iter().filter(|request| request.method == "GET");
        let paths: Vec<String> = gets.map(|request| request.path).collect();
        let own_path = format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{FIRST}");
        assert!(!paths.is_empty() && paths.iter().all(|path| *path == own_path), "{namespace}: {paths:?}");
        let other_key = ObjectKey::namespaced("other", FIRST);
        assert_eq!(cluster.sandbox().get(&JOBS, &other_key), Some(other), "{namespace}");
    }
}

/// As upstream since 1.37: 1.36 found its jobs by the name of their owner, of whatever kind and uid.
#[tokio::test(start_paused = true)]
async fn jobs_of_another_owner_of_the_same_name_are_no_history_and_not_active() {
    let limited = minutely().spec("successfulJobsHistoryLimit", json!(0)).spec("concurrencyPolicy", json!("Forbid"));
    let cluster = with(limited).start().await;
    cluster.watches(&[CRON_JOBS, JOBS]).await;
    let uid = cluster.sandbox().get(&CRON_JOBS, &key("report")).unwrap()["metadata"]["uid"].clone();
    let mut of_other_kind = foreign("of-other-kind", uid.as_str());
    of_other_kind["metadata"]["ownerReferences"][0]["apiVersion"] = json!("example.com/v1");
    of_other_kind["metadata"]["ownerReferences"][0]["kind"] = json!("Report");
    for job in [foreign("of-earlier", Some("earlier")), foreign("of-earlier-active", Some("earlier")), of_other_kind] {
        cluster.sandbox().create(&JOBS, job).expect("it is valid");
    }
    for name in ["of-earlier", "of-other-kind"] {
        finish(cluster.sandbox(), name, "Complete");
    }
    let mut seen = Seen::default();
    started(&cluster, FIRST, &mut seen).await;
    finish(cluster.sandbox(), FIRST, "Complete");
    started(&cluster, SECOND_JOB, &mut seen).await;
    cluster.settle().await;
    assert_eq!(names(cluster.sandbox()), ["of-earlier", "of-earlier-active", "of-other-kind", SECOND_JOB]);
    assert_eq!(events(&cluster, "JobAlreadyActive") + events(&cluster, "UnexpectedJob"), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_while_an_active_job_cannot_be_read() {
    let cluster = with(minutely().spec("concurrencyPolicy", json!("Replace"))).start().await;
    cluster.watches(&[CRON_JOBS, JOBS]).await;
    let mut seen = Seen::default();
    started(&cluster, FIRST, &mut seen).await;
    let refused = Status::new(400, "BadRequest", "request is invalid");
    let refused = cluster.sandbox().faults().inject(Fault::on(Verb::Get).resource(JOBS).fail(refused));
    cluster.sandbox().delete_now(&JOBS, &key(FIRST)).unwrap();
    // The finalizer of a deletion without a policy, for the garbage collector, which does not run here.
    cluster.sandbox().patch(&JOBS, &key(FIRST), &json!({ "metadata": { "finalizers": null } })).unwrap();
    cluster.advance(3 * MINUTE).await;
    assert!(refused.hits() > 0);
    assert_eq!((names(cluster.sandbox()), active(cluster.sandbox())), (vec![], vec![FIRST.to_owned()]));
    refused.remove();
    cluster.eventually("the minute that is due is started", |sandbox| names(sandbox).len() == 1).await;
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn the_last_success_is_kept_whatever_the_history_limit_is() {
    for limit in [json!(0), json!(10), json!(null)] {
        let cluster = with(minutely().spec("successfulJobsHistoryLimit", limit.clone())).start().await;
        cluster.watches(&[CRON_JOBS, JOBS]).await;
        started(&cluster, FIRST, &mut Seen::default()).await;
        finish(cluster.sandbox(), FIRST, "Complete");
        cluster.settle().await;
        assert_eq!(status(cluster.sandbox())["lastSuccessfulTime"], "2026-01-02T12:01:00Z", "{limit}");
        assert_eq!(names(cluster.sandbox()).is_empty(), limit == 0, "{limit}");
    }
}
