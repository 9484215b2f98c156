//! Messages: selectors as Go prints them, events and plans.

use kcm_framework::events::{Event as _, EventText};
use serde_json::json;

use super::budget;
use crate::disruption::events::DisruptionEvent;
use crate::disruption::plan::{Wanted, plan};
use crate::disruption::selector_text::selector_text;
use crate::tests::cluster::{key, now};
use crate::tests::fixtures::{build, pod};

#[test]
fn a_selector_is_written_as_go_prints_it() {
    let both = json!({
        "matchLabels": { "b": "2", "a": "1" },
        "matchExpressions": [
            { "key": "tier", "operator": "In", "values": ["x", "y"] }, { "key": "old", "operator": "DoesNotExist" },
        ],
    });
    for (selector, expected) in [
        (json!(null), "nil"),
        (json!({}), "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}"),
        (
            both,
            "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{\
             LabelSelectorRequirement{Key:tier,Operator:In,Values:[x y],},\
             LabelSelectorRequirement{Key:old,Operator:DoesNotExist,Values:[],},},}",
        ),
    ] {
        assert_eq!(selector_text(Some(&selector.to_string())), expected);
    }
    assert_eq!(selector_text(None), "nil");
}

#[test]
fn events_have_the_messages_of_upstream() {
    let multiple = DisruptionEvent::MultiplePodDisruptionBudgets { pod: key("a"), budget: "web".to_owned() };
    for (event, reason, message) in [
        (DisruptionEvent::NoPods, "NoPods", "No matching pods found"),
        (DisruptionEvent::InvalidSelector { message: "x".to_owned() }, "NoPods", "Failed to get pods: x"),
        (
            DisruptionEvent::CalculateExpectedPodCountFailed { message: "x".to_owned() },
            "CalculateExpectedPodCountFailed",
            "Failed to calculate the number of expected pods: x",
        ),
        (
            DisruptionEvent::UnmanagedPods { selector: "x".to_owned() },
            "UnmanagedPods",
            "Pods selected by this PodDisruptionBudget (selector: x) were found to be unmanaged. As a result, the status \
             of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these \
             pods please set \".spec.minAvailable\" field of the PDB to an integer value.",
        ),
        (
            DisruptionEvent::NotDeleted { budget: key("web") },
            "NotDeleted",
            "Pod was expected by PDB shop/shop to be deleted but it wasn't",
        ),
        (
            multiple,
            "MultiplePodDisruptionBudgets",
            "Pod \"shop\"/\"a\" matches multiple PodDisruptionBudgets.  Chose \"web\" arbitrarily.",
        ),
    ] {
        let EventText { reason: named, message: said, .. } = event.text();
        assert_eq!((&*named, &*said), (reason, message));
    }
}

#[test]
fn a_plan_in_words_has_its_numbers() {
    let budget = budget("web", json!({ "minAvailable": 1 }));
    let pods = build(&[pod("a").ready(1), pod("b").ready(1)]);
    let planned = plan(&budget.status, 1, &pods, Wanted { expected: 2, healthy: 1 }, now());
    assert_eq!(planned.explain(), "allows 1 disruptions: 2 of 2 expected pods are healthy and 1 have to be");
}
