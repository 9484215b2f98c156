mod apply;
mod event_mapping;
mod plan;

use std::sync::Arc;

use kcm_framework::api::views::{Pod, PodGroupMembership};
use kcm_framework::api::{Need, Needs, PartReader, View as _};
use serde_json::{Value, json};

use crate::podgroup_protection::view::PodGroup;

fn membership() -> PartReader<PodGroupMembership> {
    let needs: Needs = [Need::part::<PodGroupMembership>()].into_iter().collect();
    needs.reader().expect("the part is needed")
}

/// A pod of that uid, in that group unless it is empty.
fn pod(uid: &str, group: &str, phase: &str) -> Arc<Pod> {
    let group = if group.is_empty() { Value::Null } else { json!({ "podGroupName": group }) };
    let pod = json!({
        "metadata": { "namespace": "shop", "name": "a", "uid": uid },
        "spec": { "schedulingGroup": group },
        "status": { "phase": phase },
    });
    Arc::new(Pod::decode(&pod.to_string()).unwrap())
}

fn group(finalizers: &[&str], is_terminating: bool) -> Arc<PodGroup> {
    let deleted = if is_terminating { json!("2026-01-02T12:00:00Z") } else { Value::Null };
    let group = json!({
        "metadata": { "namespace": "shop", "name": "g", "finalizers": finalizers, "deletionTimestamp": deleted },
        "spec": { "schedulingPolicy": { "basic": {} } },
    });
    Arc::new(PodGroup::decode(&group.to_string()).unwrap())
}
