//! Event mapping.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::views::{Pod, PodDisruptionBudget};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::{budget, disruptions};
use crate::disruption::event_mapping::{BudgetLister, keys_for_pod, keys_for_review, label_keys, selector_key};
use crate::tests::cluster::{key, now};
use crate::tests::fixtures::{PodBuilder, ago, pod};

/// Budgets that are found by the keys of their index.
struct Budgets<'a>(&'a [Arc<PodDisruptionBudget>]);

impl BudgetLister for Budgets<'_> {
    fn for_each_candidate(&self, pod: &Pod, each: &mut dyn FnMut(&PodDisruptionBudget)) {
        let keys = label_keys(pod);
        let found = self.0.iter().filter(|budget| selector_key(budget).is_some_and(|key| keys.contains(&key)));
        found.for_each(|budget| each(budget));
    }
}

fn selecting(name: &str, selector: &Value) -> Arc<PodDisruptionBudget> {
    budget(name, json!({ "minAvailable": 1, "selector": selector }))
}

fn other(name: &str) -> PodBuilder {
    pod(name).labels(json!({ "app": "other" }))
}

fn added(pod: &PodBuilder) -> Change<Pod> {
    Change::Added(pod.build())
}

fn updated(old: &PodBuilder, new: &PodBuilder) -> Change<Pod> {
    Change::Updated { old: old.build(), new: new.build() }
}

fn deleted(pod: &PodBuilder) -> Change<Pod> {
    Change::Deleted { last: pod.build(), final_state_known: false }
}

#[test]
fn a_pod_enqueues_the_budgets_that_select_it_before_and_after_its_change() {
    let budgets = [
        selecting("web", &json!({ "matchLabels": { "app": "web" } })),
        selecting("other", &json!({ "matchLabels": { "app": "other" } })),
        selecting("all", &json!({})),
        selecting("none", &Value::Null),
        selecting("absent", &json!({ "matchExpressions": [{ "key": "app", "operator": "DoesNotExist" }] })),
        selecting("invalid", &json!({ "matchExpressions": [{ "key": "app", "operator": "Near" }] })),
    ];
    let web = || pod("a");
    for (name, change, expected) in [
        ("added", added(&web()), vec!["web", "all"]),
        ("deleted", deleted(&other("a")), vec!["other", "all"]),
        ("updated", updated(&web(), &web().ready(1)), vec!["web", "all"]),
        ("relabelled", updated(&web(), &other("a")), vec!["web", "other", "all"]),
        ("without labels", added(&web().labels(json!({}))), vec!["all", "absent"]),
        ("its label is removed", updated(&web(), &web().labels(json!({}))), vec!["web", "all", "absent"]),
    ] {
        let expected: BTreeSet<_> = expected.into_iter().map(key).collect();
        assert_eq!(keys_for_pod(&change, &Budgets(&budgets)), expected, "{name}");
    }
}

#[test]
fn a_pod_is_compared_with_the_budgets_of_its_labels_alone() {
    let of_label =
        |number: usize| selecting(&format!("of-{number}"), &json!({ "matchLabels": { "app": number.to_string() } }));
    let mut budgets: Vec<_> = (0..100).map(of_label).collect();
    budgets.push(selecting("all", &json!({})));
    budgets.push(selecting("none", &Value::Null));
    budgets.push(selecting("one of several", &json!({ "matchExpressions": [{ "key": "app", "operator": "Exists" }] })));
    let mut compared = Vec::new();
    let pod = pod("a").labels(json!({ "app": "7", "tier": "web" })).build();
    Budgets(&budgets).for_each_candidate(&pod, &mut |budget| compared.push(budget.metadata.key.name().to_owned()));
    assert_eq!(compared, ["of-7", "all", "one of several"]);
}

#[test]
fn a_pod_is_reviewed_where_several_budgets_select_it_and_when_its_condition_is_stale() {
    let web = || selecting("web", &json!({ "matchLabels": { "app": "web" } }));
    let (one, two) = ([web()], [web(), selecting("all", &json!({}))]);
    let condition = json!({ "type": "DisruptionTarget", "status": "True", "lastTransitionTime": ago(90) });
    let stale = pod("a").with("/status", "conditions", json!([condition]));
    for (name, change, budgets, expected) in [
        ("one budget", added(&pod("a")), &one[..], None),
        ("two budgets", added(&pod("a")), &two[..], Some(0)),
        ("two budgets, updated", updated(&pod("a"), &pod("a")), &two[..], Some(0)),
        ("two budgets, deleted", deleted(&pod("a")), &two[..], None),
        ("a condition that becomes stale", added(&stale), &one[..], Some(30)),
        ("the same, updated", updated(&pod("a"), &stale), &[][..], Some(30)),
        ("a deleted pod", deleted(&stale), &[][..], None),
    ] {
        let expected = expected.map(|seconds| Enqueue::after(key("a"), Duration::from_secs(seconds)));
        assert_eq!(keys_for_review(&change, &Budgets(budgets), disruptions(), now()), expected, "{name}");
    }
}
