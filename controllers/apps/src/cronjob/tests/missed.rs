//! Missed starts, and the next one.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{CronJobBuilder, cron_job, schedule, time};
use crate::cronjob::missed::{Missed, NeverStarts, missed_starts, next_start};

/// A Thursday.
const HOUR: &str = "2016-05-19T10:00:00Z";

fn minutes(minutes: i64) -> Timestamp {
    time(HOUR) + SignedDuration::from_mins(minutes)
}

fn created(text: &str, minutes_after: i64) -> CronJobBuilder {
    cron_job(text).created_at(&minutes(minutes_after).to_string())
}

fn last(cron_job: CronJobBuilder, minutes_after: i64) -> CronJobBuilder {
    cron_job.last_schedule(&minutes(minutes_after).to_string())
}

fn deadline(cron_job: CronJobBuilder, seconds: i64) -> CronJobBuilder {
    cron_job.spec("startingDeadlineSeconds", json!(seconds))
}

#[test]
fn the_most_recent_start_since_the_last_one_is_found() {
    let few = |latest: i64| Ok(Missed::Some { latest: Some(minutes(latest)), are_many: false });
    let none = Ok(Missed::None);
    let years = 10 * 365 * 24 * 60;
    for (name, cron_job, now, expected) in [
        ("before the first start", created("0 * * * *", 0), 30, none),
        ("with a deadline of 300 years", deadline(created("0 * * * *", 0), 9_467_280_000), 61, few(60)),
        ("with the longest deadline", deadline(created("0 * * * *", 0), i64::MAX), 61, few(60)),
        ("after the first start", created("0 * * * *", 0), 61, few(60)),
        ("at the first start", created("0 * * * *", 0), 60, few(60)),
        ("five were missed", created("0 * * * *", 0), 301, few(300)),
        ("the last start counts, not the creation", last(created("0 * * * *", 0), 60), 90, none),
        ("work days", last(created("30 6-16/4 * * 1-5", 0), 30), 24 * 60 + 31, few(24 * 60 + 30)),
        ("over a weekend", last(created("30 6-16/4 * * 1-5", 0), 30), 96 * 60 + 31, few(96 * 60 + 30)),
        (
            "the estimate begins after the last start",
            last(created("30 10,11,12 * * 1-5", 0), 30),
            30 * 60 + 30,
            Ok(Missed::Some { latest: None, are_many: false }),
        ),
        (
            "every hour for a week",
            last(created("@every 1h", -59), 1),
            7 * 24 * 60,
            Ok(Missed::Some { latest: Some(minutes(6 * 24 * 60 + 23 * 60 + 1)), are_many: true }),
        ),
        ("a hundred", created("* * * * *", 0), 100, few(100)),
        (
            "a hundred and one",
            created("* * * * *", 0),
            101,
            Ok(Missed::Some { latest: Some(minutes(101)), are_many: true }),
        ),
        (
            "years of minutes",
            created("* * * * *", 0),
            years,
            Ok(Missed::Some { latest: Some(minutes(years)), are_many: true }),
        ),
        ("the clock was set back", last(created("0 * * * *", 0), 60), 5, none),
        ("never", created("59 23 31 2 *", 0), 60, Err(NeverStarts)),
        ("within the deadline", deadline(last(created("*/5 * * * *", 0), 30), 60), 31, none),
        ("beyond the deadline", deadline(last(created("*/5 * * * *", 0), 30), 60), 32, none),
        ("only those within the deadline count", deadline(created("* * * * *", 0), 600), years, few(years)),
    ] {
        let (cron_job, now) = (cron_job.build(), minutes(now));
        let found = missed_starts(&cron_job, &schedule(&cron_job.schedule), now);
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn the_next_start_is_the_first_after_the_most_recent_one() {
    for (name, cron_job, now, expected) in [
        ("work days", last(created("30 6-16/4 * * 1-5", 0), 30), 24 * 60 + 31, Some(28 * 60 + 30)),
        (
            "a start that the estimate does not find",
            last(created("30 10,11,12 * * 1-5", 0), 30),
            1830,
            Some(96 * 60 + 30),
        ),
        ("once a week, two missed", last(created("0 12 * * 4", 0), 120), 19 * 24 * 60 + 90, Some(21 * 24 * 60 + 120)),
        ("never started", created("0 12 * * 5", 0), 6 * 60, Some(26 * 60)),
        ("the deadline does not count", deadline(created("0 * * * *", 0), 1), 90, Some(120)),
        ("the clock was set back", last(created("0 * * * *", 0), 60), 5, Some(120)),
        ("every 90 minutes", last(created("@every 90m", 0), 60), 70, Some(150)),
        ("no start", created("0 0 31 2 *", 0), 60, None),
    ] {
        let cron_job = cron_job.build();
        let found = next_start(&cron_job, &schedule(&cron_job.schedule), minutes(now));
        assert_eq!(found, expected.map(minutes), "{name}");
    }
}
