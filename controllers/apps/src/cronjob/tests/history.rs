//! Which finished jobs are deleted.

use serde_json::json;

use super::{JobBuilder, cron_job, job, observed};
use crate::cronjob::history::jobs_to_delete;

#[test]
fn the_oldest_finished_jobs_beyond_the_limits_are_deleted() {
    let limited = |completed: Option<i32>, failed: Option<i32>| {
        let cron_job = cron_job("* * * * *").spec("successfulJobsHistoryLimit", json!(completed));
        cron_job.spec("failedJobsHistoryLimit", json!(failed))
    };
    let done = |name: &str, started: i64| job(name).completed(1).started(started);
    let failed = |name: &str, started: i64| job(name).finished("Failed").started(started);
    let unstarted = |name: &str| job(name).completed(1).with("/status", "startTime", json!(null));
    let jobs = || vec![done("a", 10), done("b", 30), done("c", 20), failed("d", 40), failed("e", 50), job("f")];
    let ties: Vec<JobBuilder> = vec![done("b", 10), done("a", 10), unstarted("c"), unstarted("d")];
    let finalized = vec![done("a", 20).terminating(), done("b", 10)];
    for (name, cron_job, jobs, due, expected) in [
        ("none beyond", limited(Some(3), Some(2)), jobs(), None, &[][..]),
        ("one of each", limited(Some(2), Some(1)), jobs(), None, &["b", "e"]),
        ("all", limited(Some(0), Some(0)), jobs(), None, &["b", "c", "a", "e", "d"]),
        ("no limits", limited(None, None), jobs(), None, &[]),
        ("one limit", limited(None, Some(0)), jobs(), None, &["e", "d"]),
        ("by name where the times are equal, unstarted last", limited(Some(1), None), ties, None, &["a", "b", "c"]),
        ("not the one that is due", limited(Some(0), None), jobs(), Some("c"), &["b", "a"]),
        ("not one that is being deleted", limited(Some(0), None), finalized, None, &["b"]),
        ("a negative limit keeps none", limited(Some(-1), None), vec![done("a", 1)], None, &["a"]),
    ] {
        let observed = observed(&cron_job, &jobs);
        let found: Vec<&str> = jobs_to_delete(&observed, due).iter().map(|job| job.name()).collect();
        assert_eq!(found, expected, "{name}");
    }
}
