//! Plans in words.

use serde_json::json;

use super::{CronJobBuilder, JobBuilder, cron_job, job, observed, zones};
use crate::cronjob::due::due;
use crate::cronjob::plan::plan;
use crate::tests::cluster::now;

#[test]
fn a_plan_in_words_says_why_no_job_starts_and_when_the_next_one_does() {
    let hourly = || cron_job("0 * * * *").last_schedule("2026-01-02T11:00:00Z");
    let active = |policy: &str| hourly().active(&["a"]).spec("concurrencyPolicy", json!(policy));
    let next = "the next start is at 2026-01-02T13:00:00Z";
    let now_due = "2026-01-02T12:00:00Z";
    let none: Vec<JobBuilder> = Vec::new();
    for (cron_job, jobs, expected) in [
        (hourly(), none.clone(), format!("starts job report-29455920, which was due at {now_due}; {next}")),
        (
            active("Replace"),
            none.clone(),
            format!("starts job report-29455920, which was due at {now_due}, in the place of a; {next}"),
        ),
        (
            active("Forbid"),
            none.clone(),
            format!("starts no job for {now_due}, as another is active and spec.concurrencyPolicy is Forbid; {next}"),
        ),
        (
            hourly(),
            vec![job("report-29455920")],
            format!("adds job report-29455920 to the status, which was created for {now_due} before; {next}"),
        ),
        (hourly().last_schedule(now_due), none.clone(), format!("starts no job, as none is due; {next}")),
        (hourly().spec("suspend", json!(true)), none.clone(), "starts no job until spec.suspend is removed".to_owned()),
        (hourly().terminating(), none.clone(), "starts no job, as the cron job is being deleted".to_owned()),
        (
            cron_job("60 * * * *"),
            none.clone(),
            "starts no job until spec.schedule \"60 * * * *\" is corrected: end of range (60) above maximum (59): 60"
                .to_owned(),
        ),
        (
            cron_job("0 0 31 2 *"),
            none.clone(),
            "starts no job until spec.schedule \"0 0 31 2 *\" is corrected, which has no start within five years"
                .to_owned(),
        ),
        (
            hourly().spec("timeZone", json!("Mars")),
            none,
            "starts no job until spec.timeZone \"Mars\" is corrected: unknown time zone Mars".to_owned(),
        ),
    ] {
        assert_eq!(explain(&cron_job, &jobs), expected);
    }
}

fn explain(cron_job: &CronJobBuilder, jobs: &[JobBuilder]) -> String {
    let observed = observed(cron_job, jobs);
    let due = due(&observed.cron_job, &zones(), now());
    plan(&observed, due, &[], &[]).explain(&observed.cron_job)
}
