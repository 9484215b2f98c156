//! Cron jobs that are due in one minute.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use kcm_e2e_harness::clock;
use kube::api::WatchEvent;
use serde_json::{Value, json};

use super::objects::METADATA;
use super::size::Size;
use super::testbed::Testbed;

/// What the managers run: nothing runs the jobs.
pub(super) const CONTROLLERS: &str = "cronjob";

const CRON_JOBS: &str = "/apis/batch/v1/namespaces/bench/cronjobs";
const JOBS: &str = "/apis/batch/v1/namespaces/bench/jobs";

/// How long the cron jobs may take until they exist and the manager is idle.
const PREPARATION: SignedDuration = SignedDuration::from_secs(40);
/// The measurement begins so long before the minute.
const BEFORE: SignedDuration = SignedDuration::from_secs(1);

/// Cron jobs that are made before a minute in which all are due; each job is timed from that minute.
pub(super) async fn due_at_once(testbed: &mut Testbed, _size: Size) -> Result<()> {
    let count = testbed.scaled(200);
    let minute = minute_after(clock::now() + PREPARATION);
    let schedule = minute.strftime("%-M %-H * * *").to_string();
    testbed
        .phase("made", async |it| {
            it.make_namespace("bench").await?;
            it.many(count, async |number| it.post(CRON_JOBS, &cron_job(number, &schedule)).await.map(drop)).await
        })
        .await?;
    let wait = Duration::try_from((minute - BEFORE).duration_since(clock::now()));
    tokio::time::sleep(wait.context("the cron jobs were due before they were made")?).await;
    let latencies = RefCell::new(Vec::new());
    testbed
        .phase("started", async |it| {
            ensure!(it.count(JOBS).await? == 0, "jobs were started too early");
            it.watch_until(JOBS, METADATA, |event| {
                if let WatchEvent::Added(_) = event {
                    let latency = clock::now().duration_since(minute);
                    latencies.borrow_mut().push(Duration::try_from(latency).unwrap_or_default());
                }
                latencies.borrow().len() == count
            })
            .await
        })
        .await?;
    testbed.latencies(&latencies.into_inner());
    Ok(())
}

/// The first full minute at or after a time.
fn minute_after(time: Timestamp) -> Timestamp {
    let beyond = time.as_second().rem_euclid(60);
    let whole = time.as_second() - beyond;
    Timestamp::from_second(if time.as_second() == whole && time.subsec_nanosecond() == 0 { whole } else { whole + 60 })
        .unwrap_or(time)
}

fn cron_job(number: usize, schedule: &str) -> Value {
    let containers = json!([{ "name": "main", "image": "example/main:1" }]);
    let template = json!({ "spec": { "restartPolicy": "Never", "containers": containers } });
    json!({
        "metadata": { "name": format!("report-{number}") },
        "spec": { "schedule": schedule, "timeZone": "Etc/UTC", "jobTemplate": { "spec": { "template": template } } },
    })
}

#[cfg(test)]
mod tests {
    use super::minute_after;

    #[test]
    fn a_minute_begins_at_its_first_second() {
        for (time, minute) in [("12:00:00", "12:00:00"), ("12:00:00.5", "12:01:00"), ("12:59:59", "13:00:00")] {
            let at = |time: &str| format!("2026-01-02T{time}Z").parse().expect("it is a time");
            assert_eq!(minute_after(at(time)), at(minute), "{time}");
        }
    }
}
