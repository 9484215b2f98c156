mod apply;
mod event_mapping;
mod plan;

use std::sync::Arc;

use kcm_framework::api::View as _;
use serde_json::{Value, json};

use super::view::ClusterRole;

/// A role with labels and the verbs of its rules, one rule for each.
fn role(name: &str, labels: &Value, verbs: &[&str]) -> Value {
    let rules: Vec<Value> = verbs.iter().map(|verb| rule(verb)).collect();
    json!({ "metadata": { "name": name, "labels": labels }, "rules": rules })
}

fn rule(verb: &str) -> Value {
    json!({ "apiGroups": [""], "resources": ["pods"], "verbs": [verb] })
}

/// A role that aggregates those that any of the selectors selects.
fn aggregated(name: &str, selectors: &[Value], verbs: &[&str]) -> Value {
    let mut role = role(name, &json!({}), verbs);
    let selectors: Vec<Value> = selectors.iter().map(|labels| json!({ "matchLabels": labels })).collect();
    role["aggregationRule"] = json!({ "clusterRoleSelectors": selectors });
    role
}

fn view(role: &Value) -> Arc<ClusterRole> {
    Arc::new(ClusterRole::decode(&role.to_string()).expect("it is a cluster role"))
}
