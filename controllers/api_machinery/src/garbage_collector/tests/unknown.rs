//! The decisions that wait for dependents that are not known.

use std::collections::BTreeMap;
use std::time::Duration;

use kcm_framework::api::{ObjectKey, Resource};
use tokio::time::Instant;

use super::fixtures::{MAPS, NODES, Object, identity, uid};
use crate::garbage_collector::monitors::never_discovered;
use crate::garbage_collector::unknown::{Decision, Gap, PATIENCE, Verdict, Waits, verdict};

/// Shorter than [`PATIENCE`].
const EARLY: Duration = Duration::from_secs(29);
const BOTH: [Decision; 2] = [Decision::EndForegroundDeletion, Decision::Orphan];

fn object(namespace: &str, owners: Option<&str>) -> Gap {
    let owners = owners.map(|owners| Object::parse(&format!("x<{owners}")).meta().owner_references.to_vec());
    Gap::Object { resource: MAPS, key: ObjectKey::namespaced(namespace, "x"), owners }
}

fn resource(resource: Resource, since: Duration) -> Gap {
    Gap::Resource { resource, since }
}

fn group(since: Duration) -> Gap {
    Gap::Group { group_version: "example.com/v1".to_owned(), since }
}

/// `wait`, `go on` or `known`, for a foreground deletion and for orphaning of `a`.
fn verdicts(gaps: &[Gap], namespace: &str, waited: Duration) -> [&'static str; 2] {
    BOTH.map(|decision| match verdict(gaps, &identity(namespace, "a"), decision, waited) {
        Verdict::Known => "known",
        Verdict::Wait(_) => "wait",
        Verdict::GoOn(_) => "go on",
    })
}

#[test]
fn a_decision_waits_as_long_as_an_error_costs_more_than_the_wait() {
    const NONE: Duration = Duration::ZERO;
    for (name, gaps, waited, expected) in [
        ("all is known", vec![], NONE, ["known", "known"]),
        ("nothing is discovered", vec![Gap::Undiscovered], 2 * PATIENCE, ["wait", "wait"]),
        ("a group at the start", vec![group(EARLY)], NONE, ["wait", "wait"]),
        ("a group for long", vec![group(PATIENCE)], NONE, ["go on", "go on"]),
        ("a kind that was found just now", vec![resource(MAPS, EARLY)], NONE, ["wait", "wait"]),
        ("a kind for long", vec![resource(MAPS, PATIENCE)], NONE, ["go on", "wait"]),
        ("a cluster-scoped kind", vec![resource(NODES, NONE)], NONE, ["known", "known"]),
        ("an object without readable metadata", vec![object("default", None)], EARLY, ["wait", "wait"]),
        ("and for long", vec![object("default", None)], PATIENCE, ["go on", "wait"]),
        ("in another namespace", vec![object("other", None)], NONE, ["known", "known"]),
        ("a dependent that blocks", vec![object("default", Some("a!"))], 9 * PATIENCE, ["wait", "wait"]),
        ("a dependent that does not block", vec![object("default", Some("a"))], NONE, ["known", "wait"]),
        ("a dependent of another owner", vec![object("default", Some("b!"))], NONE, ["known", "known"]),
        ("one of several holds", vec![group(PATIENCE), object("default", Some("a!"))], NONE, ["wait", "wait"]),
    ] {
        assert_eq!(verdicts(&gaps, "default", waited), expected, "{name}");
    }
}

#[test]
fn dependents_of_a_cluster_scoped_owner_may_be_everywhere() {
    for (name, gap, expected) in [
        ("a cluster-scoped kind", resource(NODES, Duration::ZERO), ["wait", "wait"]),
        ("a namespaced kind", resource(MAPS, Duration::ZERO), ["wait", "wait"]),
        ("an object without readable metadata", object("shop", None), ["wait", "wait"]),
    ] {
        assert_eq!(verdicts(&[gap], "", Duration::ZERO), expected, "{name}");
    }
}

#[test]
fn the_reason_names_the_gap() {
    let of = |gap: &Gap| match verdict(std::slice::from_ref(gap), &identity("default", "a"), Decision::Orphan, PATIENCE)
    {
        Verdict::Wait(reason) | Verdict::GoOn(reason) => reason,
        Verdict::Known => String::new(),
    };
    assert_eq!(of(&Gap::Undiscovered), "no resource is listed yet");
    assert_eq!(of(&group(PATIENCE)), "example.com/v1 has not been discovered");
    assert_eq!(of(&resource(MAPS, PATIENCE)), "configmaps cannot be listed");
    assert!(of(&object("default", None)).ends_with("cannot be decoded"), "{}", of(&object("default", None)));
}

#[test]
fn a_long_wait_is_reported_once_and_a_later_one_again() {
    let (waits, start) = (Waits::default(), Instant::now());
    let owner = uid("a");
    assert_eq!(waits.waited(&owner, start), Duration::ZERO);
    let due = |after: Duration| waits.wait(&owner, start + after);
    assert_eq!([due(Duration::ZERO), due(EARLY), due(PATIENCE), due(2 * PATIENCE)], [false, false, true, false]);
    assert_eq!(waits.waited(&owner, start + 2 * PATIENCE), 2 * PATIENCE);
    waits.end(&owner);
    assert_eq!([due(3 * PATIENCE), due(4 * PATIENCE)], [false, true]);
}

#[test]
fn a_version_of_a_group_was_never_discovered_if_no_resource_of_it_is_known() {
    const WIDGETS: Resource = Resource::namespaced("example.com", "v1", "widgets", "Widget");
    let known = [WIDGETS, MAPS];
    let broken: BTreeMap<String, String> = ["example.com/v1", "example.com/v2", "metrics.k8s.io/v1beta1", "/v1"]
        .map(|version| (version.to_owned(), "503".to_owned()))
        .into();
    let found: Vec<&str> = never_discovered(known.iter(), &broken).collect();
    assert_eq!(found, ["example.com/v2", "metrics.k8s.io/v1beta1"]);
}
