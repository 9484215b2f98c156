//! The conditions of a terminating namespace.

use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::{Condition, ConditionStatus};

use super::{CONFIG_MAPS, DEPLOYMENTS, listing};
use crate::namespace::conditions::changed_conditions;
use crate::namespace::content::{ResourceResult, Round};
use crate::namespace::observe::PODS;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Type, status, reason and message of the conditions after a round.
fn of(round: &Round) -> Vec<(String, ConditionStatus, String, String)> {
    let changed = changed_conditions(&[], round, "shop", at(1));
    changed
        .into_iter()
        .map(|it| (it.type_.to_string(), it.status, it.reason.to_string(), it.message.to_string()))
        .collect()
}

fn expected(rows: &[(&str, ConditionStatus, &str, &str); 5]) -> Vec<(String, ConditionStatus, String, String)> {
    let text =
        |row: &(&str, ConditionStatus, &str, &str)| (row.0.to_owned(), row.1, row.2.to_owned(), row.3.to_owned());
    rows.iter().map(text).collect()
}

#[test]
fn nothing_remains() {
    use ConditionStatus::False;
    assert_eq!(
        of(&Round::default()),
        expected(&[
            (
                "NamespaceDeletionDiscoveryFailure",
                False,
                "ResourcesDiscovered",
                "All resources successfully discovered"
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                False,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed"
            ),
            (
                "NamespaceDeletionContentFailure",
                False,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization"
            ),
            ("NamespaceContentRemaining", False, "ContentRemoved", "All content successfully removed"),
            (
                "NamespaceFinalizersRemaining",
                False,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished"
            ),
        ])
    );
}

#[test]
fn everything_is_in_the_way() {
    use ConditionStatus::{False, True};
    let result =
        |resource, objects: &[(&str, &[&str])]| ResourceResult::after(resource, &listing(objects), Duration::ZERO);
    let round = Round {
        discovery_failure: Some("Discovery failed".to_owned()),
        results: vec![
            result(PODS, &[("a", &["b/z", "a/y"]), ("b", &["b/z"])]),
            result(DEPLOYMENTS, &[("a", &[])]),
            result(CONFIG_MAPS, &[("a", &["b/z"])]),
        ],
    };
    assert_eq!(
        of(&round),
        expected(&[
            ("NamespaceDeletionDiscoveryFailure", True, "DiscoveryFailed", "Discovery failed"),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                False,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed"
            ),
            (
                "NamespaceDeletionContentFailure",
                True,
                "ContentDeletionFailed",
                "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop for \
                 gvr: apps/v1, Resource=deployments"
            ),
            (
                "NamespaceContentRemaining",
                True,
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 1 resource instances, deployments.apps has 1 resource \
                 instances, pods. has 2 resource instances"
            ),
            (
                "NamespaceFinalizersRemaining",
                True,
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: a/y in 1 resource instances, b/z in 3 resource \
                 instances"
            ),
        ])
    );
}

#[test]
fn pods_that_remain_are_named_without_the_words_of_the_error() {
    let pods = ResourceResult::after(PODS, &listing(&[("a-", &[])]), Duration::ZERO);
    let round = Round { discovery_failure: None, results: vec![pods] };
    let (_, status, reason, message) = &of(&round)[2];
    assert_eq!((*status, &**reason), (ConditionStatus::True, "ContentDeletionFailed"));
    let expected = "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop \
                    for gvr: /v1, Resource=pods";
    assert_eq!(message, expected);
}

#[test]
fn only_conditions_that_change_are_written_and_the_time_is_that_of_the_status() {
    let held = |count: usize| {
        let objects: Vec<(&str, &[&str])> = (0..count).map(|_| ("a", &["a/b"][..])).collect();
        Round {
            discovery_failure: None,
            results: vec![ResourceResult::after(CONFIG_MAPS, &listing(&objects), Duration::ZERO)],
        }
    };
    let mut current = changed_conditions(&[], &held(2), "shop", at(1));
    assert_eq!(current.len(), 5);
    assert_eq!(changed_conditions(&current, &held(2), "shop", at(2)), []);

    let changed = changed_conditions(&current, &held(1), "shop", at(3));
    let times = |changed: &[Condition]| -> Vec<(String, i64)> {
        let time = |it: &Condition| it.last_transition_time.map_or(0, Timestamp::as_second);
        changed.iter().map(|it| (it.type_.to_string(), time(it))).collect()
    };
    let both = |second| {
        [("NamespaceContentRemaining".to_owned(), second), ("NamespaceFinalizersRemaining".to_owned(), second)]
    };
    assert_eq!(times(&changed), both(1), "only the message changes");
    for new in changed {
        current.retain(|old| old.type_ != new.type_);
        current.push(new);
    }
    assert_eq!(times(&changed_conditions(&current, &held(0), "shop", at(4))), both(4));
}

/// Other conditions stay as they are, and an earlier failure does not stay.
#[test]
fn conditions_of_others_keep_their_place_and_a_failure_is_replaced() {
    let condition = |type_: &str, status, reason: &str| Condition {
        type_: type_.into(),
        status,
        reason: reason.into(),
        last_transition_time: Some(at(1)),
        ..Condition::default()
    };
    let discovery = |status, reason| condition("NamespaceDeletionDiscoveryFailure", status, reason);
    let failed = Round { discovery_failure: Some("no".to_owned()), results: Vec::new() };
    for (name, current, round, expected) in [
        ("nothing before", vec![], Round::default(), ("False", "ResourcesDiscovered", 9)),
        (
            "another order",
            vec![condition("Other", ConditionStatus::True, "x"), discovery(ConditionStatus::True, "DiscoveryFailed")],
            Round::default(),
            ("False", "ResourcesDiscovered", 9),
        ),
        (
            "overwritten with a failure",
            vec![discovery(ConditionStatus::False, "ResourcesDiscovered")],
            failed,
            ("True", "DiscoveryFailed", 9),
        ),
    ] {
        let changed = changed_conditions(&current, &round, "shop", at(9));
        assert!(changed.iter().all(|condition| &*condition.type_ != "Other"), "{name}");
        let found = &changed[0];
        assert_eq!(&*found.type_, "NamespaceDeletionDiscoveryFailure", "{name}");
        let time = found.last_transition_time.map_or(0, Timestamp::as_second);
        assert_eq!((&*format!("{:?}", found.status), &*found.reason, time), expected, "{name}");
    }
}
