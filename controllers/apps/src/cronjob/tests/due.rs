//! Whether a start is due.

use serde_json::json;

use super::{cron_job, schedule, time, zones};
use crate::cronjob::due::{Due, NeverReason, due};
use crate::tests::cluster::now;

/// What is due, in a word and the seconds since when.
fn word(due: &Due) -> (&'static str, Option<i64>) {
    let since = |at| Some(now().duration_since(at).as_secs());
    match due {
        Due::Never(NeverReason::Terminating) => ("terminating", None),
        Due::Never(NeverReason::Suspended) => ("suspended", None),
        Due::Never(NeverReason::UnknownTimeZone { .. }) => ("unknown time zone", None),
        Due::Never(NeverReason::Unparseable { .. }) => ("unparseable", None),
        Due::Never(NeverReason::NeverStarts { .. }) => ("never starts", None),
        Due::NotYet(_) => ("not yet", None),
        Due::Now { at, .. } => ("now", since(*at)),
    }
}

#[test]
fn a_start_is_due_from_its_time_to_its_deadline() {
    let minutely = || cron_job("* * * * *").last_schedule("2026-01-02T11:59:00Z");
    let suspended = |cron_job: super::CronJobBuilder| cron_job.spec("suspend", json!(true));
    let late = |seconds: i64| cron_job("30 11 * * *").spec("startingDeadlineSeconds", json!(seconds));
    for (name, cron_job, expected) in [
        ("a minute after the last", minutely(), ("now", Some(0))),
        ("started", cron_job("* * * * *").last_schedule("2026-01-02T12:00:00Z"), ("not yet", None)),
        ("tomorrow", cron_job("0 1 * * *"), ("not yet", None)),
        ("never started", cron_job("30 11 * * *"), ("now", Some(1800))),
        ("suspended", suspended(minutely()), ("suspended", None)),
        ("being deleted", minutely().terminating(), ("terminating", None)),
        ("being deleted and suspended", suspended(minutely().terminating()), ("terminating", None)),
        ("unparseable", cron_job("60 * * * *"), ("unparseable", None)),
        ("suspended and unparseable", suspended(cron_job("60 * * * *")), ("suspended", None)),
        ("31 February", cron_job("0 0 31 2 *"), ("never starts", None)),
        ("unknown time zone", minutely().spec("timeZone", json!("Mars/Olympus")), ("unknown time zone", None)),
        (
            "suspended in an unknown time zone",
            suspended(minutely().spec("timeZone", json!("bad"))),
            ("unknown time zone", None),
        ),
        ("before the deadline", late(1801), ("now", Some(1800))),
        ("at the deadline the start does not count", late(1800), ("not yet", None)),
        ("in its time zone", cron_job("30 20 * * *").spec("timeZone", json!("Asia/Tokyo")), ("now", Some(1800))),
        ("in the time zone of the schedule", cron_job("TZ=Asia/Tokyo 30 20 * * *"), ("now", Some(1800))),
        (
            "the time zone of the schedule takes precedence",
            cron_job("TZ=Asia/Tokyo 30 20 * * *").spec("timeZone", json!("America/New_York")),
            ("now", Some(1800)),
        ),
        ("a time zone elsewhere in the schedule", cron_job("0 0 * * TZ=UTC"), ("unparseable", None)),
    ] {
        assert_eq!(word(&due(&cron_job.build(), &zones(), now())), expected, "{name}");
    }
}

#[test]
fn a_period_with_a_short_deadline_never_finds_its_start() {
    // As upstream: the period counts from the deadline on.
    let hourly =
        cron_job("@every 1h").last_schedule("2026-01-02T10:59:00Z").spec("startingDeadlineSeconds", json!(100));
    assert_eq!(word(&due(&hourly.build(), &zones(), now())), ("not yet", None));
}

#[test]
fn the_times_of_a_due_start_have_the_next_one() {
    let cron_job = cron_job("*/10 * * * *").created_at("2025-12-31T12:00:00Z").build();
    let Due::Now { at, timing } = due(&cron_job, &zones(), now()) else { panic!("it is due") };
    assert_eq!(at, now());
    assert_eq!(timing.next, Some(time("2026-01-02T12:10:00Z")));
    assert_eq!(timing.schedule, schedule("*/10 * * * *"));
    assert!(timing.missed_many);
}
