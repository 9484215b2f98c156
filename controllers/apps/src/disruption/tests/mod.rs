mod apply;
mod controllers;
mod event_mapping;
mod explain;
mod invariants;
mod plan;
mod stale;
mod status;

use std::sync::Arc;

use kcm_framework::api::views::{PodDisruption, PodDisruptionBudget};
use kcm_framework::api::{Need, Needs, PartReader, View as _};
use serde_json::{Value, json};

use crate::tests::cluster::NAMESPACE;

/// A budget of that name and spec, which selects `app=web` where the spec does not say.
fn budget_json(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    if spec.get("selector").is_none() {
        spec["selector"] = json!({ "matchLabels": { "app": "web" } });
    }
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": spec,
    })
}

fn view_of(budget: &Value) -> Arc<PodDisruptionBudget> {
    Arc::new(PodDisruptionBudget::decode(&budget.to_string()).unwrap())
}

fn budget(name: &str, spec: Value) -> Arc<PodDisruptionBudget> {
    view_of(&budget_json(name, spec))
}

fn disruptions() -> PartReader<PodDisruption> {
    [Need::part::<PodDisruption>()].into_iter().collect::<Needs>().reader().unwrap()
}
