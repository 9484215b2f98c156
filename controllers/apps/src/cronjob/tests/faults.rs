//! At most one job for each minute, whatever fails.

use std::time::Duration;

use jiff::SignedDuration;
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, kill_after_each_write};
use serde_json::json;

use super::apply::{
    CRON_JOBS, FIRST, JOBS, MINUTE, SECOND, SECOND_JOB, Seen, active, finish, last_schedule, minutely, names, started,
    with,
};
use super::cron_job;
use crate::tests::cluster::now;

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
