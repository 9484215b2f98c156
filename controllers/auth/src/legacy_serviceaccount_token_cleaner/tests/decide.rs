//! The rules by date.

use jiff::civil::{Date, date};
use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::{Meta, PartialObjectMeta, Uid, View as _};
use serde_json::{Value, json};

use crate::legacy_serviceaccount_token_cleaner::decide::{
    Cutoff, Kept, Step, check_account, check_use, next_step, parse_day,
};

const YEAR: SignedDuration = SignedDuration::from_hours(8760);

fn at(time: &str) -> Timestamp {
    time.parse().expect("it is a time")
}

/// A round on the second of January 2026, with a period of a year.
fn cutoff() -> Cutoff {
    Cutoff::of(at("2026-01-02T12:00:00Z"), date(2020, 1, 1), YEAR).expect("it is tracked for long enough")
}

fn secret(created: &str, labels: &Value) -> Meta {
    let metadata = json!({ "name": "token", "creationTimestamp": created, "labels": labels });
    PartialObjectMeta::decode(&json!({ "metadata": metadata }).to_string()).unwrap().metadata
}

#[test]
fn nothing_happens_before_the_day_after_the_tracking_began_and_the_period() {
    for (name, now, since, period, expected) in [
        ("today", "2026-01-02T12:00:00Z", date(2026, 1, 2), SignedDuration::from_hours(1), false),
        ("a second before", "2026-01-03T00:59:59Z", date(2026, 1, 2), SignedDuration::from_hours(1), false),
        ("at that time", "2026-01-03T01:00:00Z", date(2026, 1, 2), SignedDuration::from_hours(1), true),
        ("a year less a second", "2026-12-31T23:59:59Z", date(2025, 12, 31), YEAR, false),
        ("a year", "2027-01-01T00:00:00Z", date(2025, 12, 31), YEAR, true),
        ("in the future", "2026-01-02T12:00:00Z", date(2030, 1, 1), YEAR, false),
        ("at the end of the calendar", "2026-01-02T12:00:00Z", date(9999, 12, 31), YEAR, false),
        ("a period of all times", "2026-01-02T12:00:00Z", date(2020, 1, 1), SignedDuration::MAX, false),
    ] {
        assert_eq!(Cutoff::of(at(now), since, period).is_some(), expected, "{name}");
    }
}

#[test]
fn a_secret_is_unused_that_is_old_and_was_not_used_within_the_period() {
    let used = |day: &str| json!({ "kubernetes.io/legacy-token-last-used": day });
    for (name, created, labels, expected) in [
        ("never used", "2025-01-02T11:59:59Z", json!({}), Ok(())),
        ("as old as the period", "2025-01-02T12:00:00Z", json!({}), Err(Kept::Young)),
        ("young", "2026-01-01T00:00:00Z", used("2019-01-01"), Err(Kept::Young)),
        ("used the day before the period", "2020-01-01T00:00:00Z", used("2025-01-01"), Ok(())),
        ("used on the first day of the period", "2020-01-01T00:00:00Z", used("2025-01-02"), Err(Kept::Used)),
        ("used today", "2020-01-01T00:00:00Z", used("2026-01-02"), Err(Kept::Used)),
        ("used in the future", "2020-01-01T00:00:00Z", used("2027-01-01"), Err(Kept::Used)),
        ("used on no day", "2020-01-01T00:00:00Z", used("lately"), Err(Kept::UnreadableDay)),
        ("used on an empty day", "2020-01-01T00:00:00Z", used(""), Err(Kept::UnreadableDay)),
        ("used on a day that there is not", "2020-01-01T00:00:00Z", used("2021-02-30"), Err(Kept::UnreadableDay)),
        ("used on a time of a day", "2020-01-01T00:00:00Z", used("2021-02-03T00-00-00Z"), Err(Kept::UnreadableDay)),
    ] {
        assert_eq!(check_use(&secret(created, &labels), &cutoff()), expected, "{name}");
    }
    let mut terminating = secret("2020-01-01T00:00:00Z", &json!({}));
    terminating.deletion_timestamp = Some(at("2026-01-01T00:00:00Z"));
    assert_eq!(check_use(&terminating, &cutoff()), Err(Kept::Terminating));
    let mut ageless = secret("2020-01-01T00:00:00Z", &json!({}));
    ageless.creation_timestamp = None;
    assert_eq!(check_use(&ageless, &cutoff()), Err(Kept::Young));
}

#[test]
fn a_secret_is_generated_that_its_account_references() {
    let (u, v, unset) = (Uid::from("u"), Uid::from("v"), Uid::default());
    for (name, named, account, expected) in [
        ("its account", &u, Some((&u, true)), Ok(())),
        ("no uid", &unset, Some((&u, true)), Ok(())),
        ("another account of the name", &u, Some((&v, true)), Err(Kept::NotGenerated)),
        ("no reference", &u, Some((&u, false)), Err(Kept::NotGenerated)),
        ("no account", &u, None, Err(Kept::NotGenerated)),
    ] {
        assert_eq!(check_account(named, account), expected, "{name}");
    }
}

#[test]
fn an_unused_secret_is_labelled_first_and_deleted_the_period_after() {
    let since = |day: &str| json!({ "kubernetes.io/legacy-token-invalid-since": day });
    for (name, labels, expected) in [
        ("no label", json!({}), Ok(Step::Invalidate)),
        ("a label that cannot be read", since("soon"), Ok(Step::Invalidate)),
        ("an empty label", since(""), Ok(Step::Invalidate)),
        ("today", since("2026-01-02"), Err(Kept::JustInvalid)),
        ("on the first day of the period", since("2025-01-02"), Err(Kept::JustInvalid)),
        ("the day before the period", since("2025-01-01"), Ok(Step::Delete)),
    ] {
        assert_eq!(next_step(&secret("2020-01-01T00:00:00Z", &labels), &cutoff()), expected, "{name}");
    }
}

#[test]
fn a_day_has_ten_characters() {
    let day: Option<Date> = Some(date(2026, 1, 2));
    for (text, expected) in [
        ("2026-01-02", day),
        ("20260102", None),
        ("2026-1-2", None),
        ("2026-13-01", None),
        ("+002026-01", None),
        ("2026-W01-5", None),
        ("２026-01-0", None),
    ] {
        assert_eq!(parse_day(text), expected, "{text}");
    }
    assert_eq!(cutoff().today.to_string(), "2026-01-02");
}
