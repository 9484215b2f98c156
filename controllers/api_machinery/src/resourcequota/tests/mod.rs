mod apply;
mod event_mapping;
mod invariants;
mod kinds;
mod plan;
mod pods;
mod properties;
mod resource_claims;
mod services;
mod simulation;
mod volume_claims;

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{ChargedPod, Pod, ResourceQuota};
use kcm_framework::api::{Need, Needs, PartReader, View};
use serde_json::{Value, json};

use super::evaluator::Evaluator;
use super::evaluator::resource_claims::DeviceClasses;
use super::observe::{Content, Observed};
use super::plan::{Action, Plan, Rules};
use super::settings::Gates;

const GATES: Gates = Gates {
    dra_extended_resource: true,
    in_place_resize: true,
    pod_level_resources: true,
    pod_level_qos_fix: true,
    recover_volume_expansion: true,
    volume_attributes_class: true,
};

fn now() -> Timestamp {
    "2026-01-02T12:00:00Z".parse().expect("it is a time")
}

fn reader() -> PartReader<ChargedPod> {
    [Need::part::<ChargedPod>()].into_iter().collect::<Needs>().reader().expect("it is declared")
}

fn decode<V: View>(object: &Value) -> Arc<V> {
    Arc::new(V::decode(&object.to_string()).expect("the case must be valid"))
}

/// A pod with these fields of spec and status.
fn pod(name: &str, spec: &Value, status: &Value) -> Arc<Pod> {
    decode(&json!({ "metadata": { "namespace": "shop", "name": name }, "spec": spec, "status": status }))
}

/// A quota with this spec and status.
fn quota(spec: &Value, status: &Value) -> Arc<ResourceQuota> {
    decode(&json!({ "metadata": { "namespace": "shop", "name": "quota" }, "spec": spec, "status": status }))
}

/// Limits of so many constraints.
fn hard(constraints: &[&str]) -> Value {
    constraints
        .iter()
        .map(|constraint| ((*constraint).to_owned(), json!("100")))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn plan_of(quota: &ResourceQuota, observed: &Observed, gates: Gates) -> Plan {
    super::plan::plan(quota, observed, Rules { gates, pods: reader(), now: now() })
}

/// The usage that is written for a new quota over the objects of one evaluator, as `NAME=QUANTITY`, sorted by name.
fn used(constraints: &[&str], mut spec: Value, evaluator: Evaluator, content: Content, gates: Gates) -> Vec<String> {
    spec["hard"] = hard(constraints);
    let observed = Observed { content: vec![(evaluator, content)], classes: DeviceClasses::default() };
    written(&plan_of(&quota(&spec, &Value::Null), &observed, gates))
}

/// The usage that a plan writes.
fn written(plan: &Plan) -> Vec<String> {
    match &plan.action {
        Action::Update(used) => used.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect(),
        action @ (Action::Keep | Action::Wait(_)) => panic!("it writes nothing: {action:?}"),
    }
}
