//! Which occurrence becomes which event: one row per rule of client-go's correlation.

#![expect(clippy::unwrap_used, reason = "a test fails where its helper does")]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kcm_api::{Resource, ResourceVersion, Uid};
use kcm_framework::events::{CoreEvent, Correlator, Decision, EventType, ObjectReference, Occurrence};
use serde_json::json;

const REPLICA_SETS: Resource = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");

fn start() -> Timestamp {
    "2026-01-02T03:04:05.5Z".parse().unwrap()
}

fn web() -> ObjectReference {
    ObjectReference {
        api_version: REPLICA_SETS.api_version(),
        kind: "ReplicaSet".to_owned(),
        namespace: "a".to_owned(),
        name: "web".to_owned(),
        uid: Uid::from("u"),
        resource_version: ResourceVersion::from("5"),
        field_path: String::new(),
    }
}

fn created(message: impl Into<String>, seconds: i64) -> Occurrence {
    Occurrence {
        component: "replicaset-controller".into(),
        regarding: web(),
        event_type: EventType::Normal,
        reason: "SuccessfulCreate".into(),
        message: message.into(),
        at: start() + SignedDuration::from_secs(seconds),
    }
}

/// The time since the start, of a clock that agrees with the wall clock.
fn since_start(occurrence: &Occurrence) -> Duration {
    occurrence.at.duration_since(start()).unsigned_abs()
}

/// The treatment of the last of some occurrences.
#[derive(Debug, PartialEq)]
enum Last {
    New(&'static str),
    Counted(u32, &'static str),
    Dropped,
}

fn check(name: &str, occurrences: impl IntoIterator<Item = Occurrence>, expected: &Last) {
    let mut correlator = Correlator::default();
    let last = occurrences.into_iter().map(|occurrence| correlator.decide(&occurrence, since_start(&occurrence)));
    let last = last.last().unwrap();
    let held = match (&last, expected) {
        (Decision::Create(event), Last::New(message)) => event.message == *message && event.count == 1,
        (Decision::Repeat(event), Last::Counted(count, message)) => event.message == *message && event.count == *count,
        (Decision::Drop, Last::Dropped) => true,
        (Decision::Create(_) | Decision::Repeat(_) | Decision::Drop, _) => false,
    };
    assert!(held, "{name}: {last:?} is not {expected:?}");
}

fn distinct(count: usize, every: i64) -> impl Iterator<Item = Occurrence> {
    (1..).take(count).scan(0, move |at, number| {
        let occurrence = created(format!("pod {number}"), *at);
        *at += every;
        Some(occurrence)
    })
}

#[test]
fn equal_events_are_counted() {
    check("the first is new", [created("x", 0)], &Last::New("x"));
    check("the second counts", [created("x", 0), created("x", 1)], &Last::Counted(2, "x"));
    check("and is never gathered", (0..11).map(|at| created("x", at)), &Last::Counted(11, "x"));
}

#[test]
fn another_object_type_reason_or_field_is_counted_apart() {
    let other = |change: fn(&mut Occurrence)| {
        let mut other = created("x", 1);
        change(&mut other);
        [created("x", 0), other]
    };
    check("uid", other(|other| other.regarding.uid = Uid::from("v")), &Last::New("x"));
    check("type", other(|other| other.event_type = EventType::Warning), &Last::New("x"));
    check("reason", other(|other| other.reason = "SuccessfulDelete".into()), &Last::New("x"));
    check("field", other(|other| other.regarding.field_path = "spec".to_owned()), &Last::New("x"));
    check("component", other(|other| other.component = "job-controller".into()), &Last::New("x"));
    let version = other(|other| other.regarding.resource_version = ResourceVersion::from("6"));
    check("but not another version of the object", version, &Last::Counted(2, "x"));
}

#[test]
fn ten_similar_events_within_ten_minutes_become_one() {
    check("the ninth stands alone", distinct(9, 1), &Last::New("pod 9"));
    check("the tenth stands for all", distinct(10, 1), &Last::New("(combined from similar events): pod 10"));
    check("the next counts", distinct(12, 1), &Last::Counted(3, "(combined from similar events): pod 12"));
    let far_apart = distinct(9, 600).chain([created("late", 8 * 600 + 601)]);
    check("a pause of more than ten minutes starts over", far_apart, &Last::New("late"));
    let near = distinct(9, 600).chain([created("near", 9 * 600)]);
    check("ten minutes are not too long", near, &Last::New("(combined from similar events): near"));
}

#[test]
fn a_source_says_twenty_five_things_about_an_object_and_then_one_in_five_minutes() {
    let burst = || (0..25).map(|_| created("x", 0));
    check("the burst passes", burst(), &Last::Counted(25, "x"));
    check("the next does not", burst().chain([created("x", 0)]), &Last::Dropped);
    check("nor just before five minutes", burst().chain([created("x", 299)]), &Last::Dropped);
    let dropped_counts = burst().chain([created("x", 0), created("x", 300)]);
    check("what was dropped was counted", dropped_counts, &Last::Counted(27, "x"));
    let mut warning = created("y", 0);
    warning.event_type = EventType::Warning;
    check("the other type has its own budget", burst().chain([warning]), &Last::New("y"));
    let others = (0..60).map(|number| {
        let mut other = created("x", 0);
        other.regarding.name = format!("web-{number}");
        other
    });
    check("and so has every object", others, &Last::New("x"));
}

fn decide(correlator: &mut Correlator, occurrence: &Occurrence) -> CoreEvent {
    match correlator.decide(occurrence, since_start(occurrence)) {
        Decision::Create(event) | Decision::Repeat(event) => event,
        Decision::Drop => panic!("dropped"),
    }
}

#[test]
fn an_event_is_written_as_client_go_writes_it() {
    let event = decide(&mut Correlator::default(), &created("Created pod: web-x", 0));
    let nanos = start().as_nanosecond();
    assert_eq!(
        serde_json::to_value(&event).unwrap(),
        json!({
            "kind": "Event", "apiVersion": "v1",
            "metadata": {"name": format!("web.{nanos:x}"), "namespace": "a"},
            "involvedObject": {
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "a", "name": "web",
                "uid": "u", "resourceVersion": "5",
            },
            "reason": "SuccessfulCreate", "message": "Created pod: web-x", "type": "Normal", "count": 1,
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z",
            "source": {"component": "replicaset-controller"},
            "reportingComponent": "replicaset-controller", "reportingInstance": "",
        })
    );
}

#[test]
fn a_repetition_keeps_name_and_first_time_and_patches_the_rest() {
    let mut correlator = Correlator::default();
    let first = decide(&mut correlator, &created("x", 0));
    let second = decide(&mut correlator, &created("x", 60));
    assert_eq!(second.metadata, first.metadata);
    assert_eq!(second.first_timestamp.as_second(), first.first_timestamp.as_second());
    assert_eq!(
        serde_json::to_value(second.repetition()).unwrap(),
        json!({"count": 2, "lastTimestamp": "2026-01-02T03:05:05Z", "message": "x"})
    );
}

/// As in a virtual machine whose clock was wrong by an hour when it started.
#[test]
fn a_wall_clock_that_is_set_back_drops_no_event_and_dates_none_wrong() {
    const HOUR: i64 = 3600;
    let mut correlator = Correlator::default();
    let mut names = std::collections::BTreeSet::new();
    let first = decide(&mut correlator, &created("x", 0));
    names.insert(first.metadata.name.clone());
    for _ in 1..25 {
        decide(&mut correlator, &created("x", 0));
    }
    // An hour later all tokens have accrued, even though the clock was set back.
    let set_back = created("y", -HOUR);
    let Decision::Create(event) = correlator.decide(&set_back, Duration::from_hours(1)) else { panic!("dropped") };
    assert_eq!((event.first_timestamp, event.last_timestamp), (set_back.at, set_back.at));
    assert!(names.insert(event.metadata.name.clone()), "{names:?}");

    let repeated = created("y", -HOUR + 1);
    let Decision::Repeat(repetition) = correlator.decide(&repeated, Duration::from_hours(2)) else { panic!("dropped") };
    assert_eq!(repetition.metadata, event.metadata);
    assert_eq!(repetition.first_timestamp.as_second(), event.first_timestamp.as_second());
    assert_eq!(repetition.last_timestamp, repeated.at);

    // Similar events are gathered within ten minutes of elapsed time.
    for number in 0..20 {
        let other = created(format!("pod {number}"), -HOUR - number);
        let after = Duration::from_hours(3 + number.unsigned_abs());
        let decided = correlator.decide(&other, after);
        let Decision::Create(event) = decided else { panic!("{decided:?}") };
        assert!(names.insert(event.metadata.name), "two events share a name");
        assert_eq!(event.message, format!("pod {number}"));
    }
}

#[test]
fn names_are_unique_and_valid_whatever_the_object_is_called() {
    let mut correlator = Correlator::default();
    let one = decide(&mut correlator, &created("x", 0)).metadata.name;
    let two = decide(&mut correlator, &created("y", 0)).metadata.name;
    assert_ne!(one, two, "though at the same time");

    let mut role = created("x", 1);
    role.regarding.name = "system:node".to_owned();
    role.regarding.namespace.clear();
    let event = decide(&mut correlator, &role);
    assert!(event.metadata.name.chars().all(|c| c.is_ascii_hexdigit() || c == '.'), "{}", event.metadata.name);
    assert_eq!(event.metadata.namespace, "default");

    role.regarding.resource_version = ResourceVersion::from("6");
    let repeated = decide(&mut correlator, &role);
    assert_eq!((repeated.count, repeated.metadata), (2, event.metadata), "the object has changed, the event has not");
}
