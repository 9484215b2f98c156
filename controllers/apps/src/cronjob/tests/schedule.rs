//! Schedules, compared with the answers of the Go library.

use jiff::{Timestamp, Unit};

use super::zones;
use crate::cronjob::schedule::Schedule;

/// Schedule, start of the search and seconds from there to three starts; or schedule, `error` and message.
///
/// Printed by `e2e/cron-schedules`, with `robfig/cron` v3.0.1 and the time zones of Go 1.26.
const TABLE: &str = include_str!("schedules.tsv");

#[test]
fn starts_and_errors_are_those_of_the_go_library() {
    let zones = zones();
    let (mut starts, mut errors, mut different) = (0, 0, Vec::new());
    for line in TABLE.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[schedule, from, expected] = &columns[..] else { panic!("{line:?} has other columns") };
        let parsed = Schedule::parse(schedule, &zones);
        let found = if from == "error" {
            errors += 1;
            parsed.map_or_else(|error| error.to_string(), |parsed| format!("{parsed:?}"))
        } else {
            starts += 1;
            let from = Timestamp::from_second(from.parse().unwrap()).unwrap();
            match parsed {
                Ok(parsed) => seconds_to_starts(&parsed, from, expected.split(' ').count()),
                Err(error) => error.to_string(),
            }
        };
        if found != expected {
            different.push(format!("{line:?}, here {found}"));
        }
    }
    assert!(different.is_empty(), "{} differ: {different:#?}", different.len());
    assert!(starts > 1000 && errors > 20, "{starts} and {errors}");
}

fn seconds_to_starts(schedule: &Schedule, from: Timestamp, count: usize) -> String {
    let mut at = Some(from);
    let mut found = Vec::new();
    for _ in 0..count {
        at = at.and_then(|at| schedule.next(at));
        found.push(at.map_or("never".to_owned(), |at| at.duration_since(from).as_secs().to_string()));
    }
    found.join(" ")
}

#[test]
fn starts_are_at_whole_seconds_whenever_the_search_begins() {
    for (schedule, from, expected) in [
        ("* * * * *", "2026-01-02T12:00:59.999Z", "2026-01-02T12:01:00Z"),
        ("* * * * *", "2026-01-02T12:01:00Z", "2026-01-02T12:02:00Z"),
        ("* * * * *", "2026-01-02T12:00:00.001Z", "2026-01-02T12:01:00Z"),
        ("@every 1m30s", "2026-01-02T12:00:00.999Z", "2026-01-02T12:01:30Z"),
        ("* * * * *", "1969-12-31T23:58:59.5Z", "1969-12-31T23:59:00Z"),
    ] {
        let next = super::schedule(schedule).next(super::time(from));
        assert_eq!(next, Some(super::time(expected)), "{schedule} from {from}");
    }
}

#[test]
fn schedules_at_the_end_of_the_calendar_have_no_start() {
    for schedule in ["* * * * *", "0 0 1 1 *", "@every 1000000h"] {
        let last = Timestamp::MAX.round(Unit::Second).unwrap_or(Timestamp::MAX);
        assert_eq!(super::schedule(schedule).next(last), None, "{schedule}");
    }
}

#[test]
fn without_a_time_zone_the_schedule_is_in_the_local_one() {
    let tokyo = kcm_tokyo();
    let zones = crate::cronjob::schedule::TimeZones::new(tokyo);
    let from = super::time("2026-01-02T00:00:00Z");
    for (schedule, expected) in [
        ("0 12 * * *", "2026-01-02T03:00:00Z"),
        ("TZ=Local 0 12 * * *", "2026-01-02T03:00:00Z"),
        ("TZ=UTC 0 12 * * *", "2026-01-02T12:00:00Z"),
        ("CRON_TZ= 0 12 * * *", "2026-01-02T12:00:00Z"),
    ] {
        let next = Schedule::parse(schedule, &zones).unwrap().next(from);
        assert_eq!(next, Some(super::time(expected)), "{schedule}");
    }
}

fn kcm_tokyo() -> jiff::tz::TimeZone {
    zones().load("Asia/Tokyo").expect("the database has it")
}
