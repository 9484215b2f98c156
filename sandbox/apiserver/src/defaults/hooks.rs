//! What admission is configured by.

use serde_json::{Value, json};

use super::items;
use crate::json::{at, set_default};

pub(super) fn webhooks(configuration: &mut Value, mutating: bool) {
    for hook in items(configuration, &["webhooks"]) {
        set_default(hook, &["failurePolicy"], "Fail");
        set_default(hook, &["timeoutSeconds"], 10);
        if mutating {
            set_default(hook, &["reinvocationPolicy"], "Never");
        }
        matching(hook);
        items(hook, &["rules"]).for_each(|rule| set_default(rule, &["scope"], "*"));
        if at(hook, &["clientConfig", "service"]).is_some() {
            set_default(hook, &["clientConfig", "service", "port"], 443);
        }
    }
}

pub(super) fn admission_policy(policy: &mut Value, plural: &str) {
    let Some(spec) = policy.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let constraints = if plural.ends_with("bindings") { "matchResources" } else { "matchConstraints" };
    if constraints == "matchConstraints" {
        set_default(spec, &["failurePolicy"], "Fail");
    }
    if let Some(constraints) = spec.get_mut(constraints).filter(|constraints| constraints.is_object()) {
        matching(constraints);
        for rules in ["resourceRules", "excludeResourceRules"] {
            items(constraints, &[rules]).for_each(|rule| set_default(rule, &["scope"], "*"));
        }
    }
}

fn matching(holder: &mut Value) {
    set_default(holder, &["matchPolicy"], "Equivalent");
    set_default(holder, &["namespaceSelector"], json!({}));
    set_default(holder, &["objectSelector"], json!({}));
}
