//! The rules of `ResourceQuotas` for every history.

use kcm_simulation::rules::{Held, Story, check, holds, holds_at_rest, is_active, items, of, text};
use kcm_simulation::{Author, History, Invariant, Objects};
use kcm_testing::sandbox::{CONFIG_MAPS, PODS, RESOURCE_QUOTAS};
use serde_json::{Value, json};

use crate::tests::scenarios::{NAMESPACE, object};

const LOOPS: [&str; 2] = ["resourcequota_primary", "resourcequota_priority"];

/// The rules, for scenarios.
pub(super) const RULES: &[Invariant] = &[writes_statuses_only, counts_the_store_at_rest];

/// Returns `true` if a pod has not ended. A pod that terminates counts until it has.
fn counts(pod: &Value) -> bool {
    is_active(pod) || !["Succeeded", "Failed"].contains(&text(pod, "/status/phase"))
}

/// The naive sums: pods, their CPU in thousandths, and config maps.
fn used(objects: &Objects) -> Value {
    let cpu = |pod: &Value| {
        let of =
            |container: &Value| text(container, "/resources/requests/cpu").trim_end_matches('m').parse().unwrap_or(0);
        items(pod, "/spec/containers").iter().map(of).sum::<i64>()
    };
    let pods: Vec<&Value> = of(objects, &PODS).filter(|pod| counts(pod)).collect();
    let cpu: i64 = pods.iter().map(|pod| cpu(pod)).sum();
    json!({ "pods": pods.len(), "cpu": cpu, "maps": of(objects, &CONFIG_MAPS).count() })
}

/// `status.used` of a quota, as [`used`] has it.
fn reported(quota: &Value) -> Value {
    let count = |name: &str| text(quota, &format!("/status/used/{name}")).parse::<i64>().unwrap_or(-1);
    let cpu = text(quota, "/status/used/requests.cpu");
    let cpu = cpu.strip_suffix('m').map_or_else(|| cpu.parse::<i64>().map(|cpu| 1000 * cpu), str::parse);
    json!({ "pods": count("pods"), "cpu": cpu.unwrap_or(-1), "maps": count("configmaps") })
}

/// D14.1: at rest, the usage is the sum over the store, and the limits are the limits in the spec.
fn counts_the_store_at_rest(history: &History) -> Held {
    let end = history.end();
    for quota in of(&end, &RESOURCE_QUOTAS) {
        let has_limits = quota.pointer("/spec/hard") == quota.pointer("/status/hard");
        holds_at_rest(has_limits, "D14.1", "the limits of a quota are not reported", quota)?;
        holds_at_rest(reported(quota) == used(&end), "D14.1", "the usage is not the sum of the store", quota)?;
    }
    Ok(())
}

/// D14.2: only statuses of quotas are written.
fn writes_statuses_only(history: &History) -> Held {
    history.each(|at, change, _| match &change.author {
        Author::Loop { name, .. } if LOOPS.contains(&name.as_str()) => {
            let is_status = change.resource == RESOURCE_QUOTAS && change.subresource.as_deref() == Some("status");
            holds(is_status, "D14.2", "more than a status is written", at, change)
        }
        Author::Loop { .. } | Author::Cluster | Author::User => Ok(()),
    })
}

fn quota(pods: u32, cpu: &str) -> Value {
    let hard = json!({ "pods": "9" });
    json!({
        "metadata": { "namespace": NAMESPACE, "name": "quota", "uid": "u-quota" },
        "spec": { "hard": hard },
        "status": { "hard": hard, "used": { "pods": pods.to_string(), "requests.cpu": cpu, "configmaps": "0" } },
    })
}

#[test]
fn the_usage_is_the_sum_of_the_store() {
    let counted = |pods, cpu| {
        let story = Story::of([(PODS, object(&PODS, "a")), (PODS, object(&PODS, "b"))]);
        story.create(LOOPS[0], &RESOURCE_QUOTAS, quota(pods, cpu))
    };
    check("D14.1", counts_the_store_at_rest, counted(2, "1"), counted(1, "1"));
    check("D14.1", counts_the_store_at_rest, counted(2, "1000m"), counted(2, "500m"));
    let other = |quota: &mut Value| quota["spec"]["hard"]["pods"] = "1".into();
    let changed = counted(2, "1").edit("user", &RESOURCE_QUOTAS, "quota", other);
    check("D14.1", counts_the_store_at_rest, counted(2, "1"), changed);
}

#[test]
fn only_statuses_are_written() {
    let written = || {
        let story = Story::of([(RESOURCE_QUOTAS, quota(0, "0"))]);
        story.edit(LOOPS[1], &RESOURCE_QUOTAS, "quota", |quota| quota["status"]["used"]["pods"] = "1".into())
    };
    check("D14.2", writes_statuses_only, written().at_subresource("status"), written());
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
