//! Behavior, tolerance and metrics as a document has them, and the settings that they override.

use kcm_framework::config::GoDuration;
use serde_json::{Value, json};

use super::fixtures::{now, seconds};
use crate::horizontal_pod_autoscaler::calculator::Tolerances;
use crate::horizontal_pod_autoscaler::settings::{Gates, Settings};
use crate::horizontal_pod_autoscaler::spec::{Behavior, Policy, PolicyType, SelectPolicy, Spec};

fn behavior(behavior: &Value) -> Behavior {
    serde_json::from_value(behavior.clone()).expect("it is a behavior")
}

fn policy(r#type: PolicyType, value: i32, period_seconds: i32) -> Policy {
    Policy { r#type, value, period_seconds }
}

#[test]
fn what_a_behavior_leaves_out_is_as_the_api_server_defaults_it() {
    let up = vec![policy(PolicyType::Pods, 4, 15), policy(PolicyType::Percent, 100, 15)];
    let down = vec![policy(PolicyType::Percent, 100, 15)];
    for absent in [json!({}), json!({ "scaleUp": null, "scaleDown": {} }), json!({ "scaleUp": { "policies": null } })] {
        let found = behavior(&absent);
        assert_eq!((&found.up.policies, &found.down.policies), (&up, &down), "{absent}");
        assert_eq!((found.up.stabilization_window, found.down.stabilization_window), (Some(0), None), "{absent}");
        assert_eq!((found.up.select, found.down.select), (SelectPolicy::Max, SelectPolicy::Max), "{absent}");
        assert_eq!((found.up.tolerance, found.down.tolerance), (None, None), "{absent}");
    }
}

#[test]
fn what_a_behavior_sets_is_read() {
    let found = behavior(&json!({
        "scaleUp": {
            "stabilizationWindowSeconds": 30, "selectPolicy": "Min", "tolerance": "50m",
            "policies": [{ "type": "Percent", "value": 10, "periodSeconds": 60 }, { "type": "Later", "value": 1, "periodSeconds": 1 }],
        },
        "scaleDown": { "stabilizationWindowSeconds": 0, "selectPolicy": "Disabled", "tolerance": "0" },
    }));
    assert_eq!((found.up.stabilization_window, found.down.stabilization_window), (Some(30), Some(0)));
    assert_eq!((found.up.select, found.down.select), (SelectPolicy::Min, SelectPolicy::Disabled));
    assert_eq!((found.up.tolerance, found.down.tolerance), (Some(0.05), Some(0.0)));
    assert_eq!(found.up.policies, [policy(PolicyType::Percent, 10, 60), policy(PolicyType::Other, 1, 1)]);
}

#[test]
fn an_own_tolerance_counts_with_the_gate_in_its_direction_alone() {
    let settings = |configurable_tolerance| Settings {
        sync_period: GoDuration::from_secs(15),
        stabilization: GoDuration::from_secs(5 * 60),
        tolerance: 0.1,
        cpu_initialization: GoDuration::from_secs(4 * 60),
        readiness_delay: GoDuration::from_secs(30),
        gates: Gates {
            configurable_tolerance,
            generation: false,
            optimized_selector_store: false,
            scale_to_zero: false,
            pod_level_resources: false,
        },
    };
    let own = behavior(&json!({ "scaleUp": { "tolerance": "50m" } }));
    for (gate, behavior, tolerances) in [
        (true, Some(&own), Tolerances { down: 0.1, up: 0.05 }),
        (false, Some(&own), Tolerances { down: 0.1, up: 0.1 }),
        (true, None, Tolerances { down: 0.1, up: 0.1 }),
    ] {
        assert_eq!(settings(gate).rules(behavior, now()).tolerances, tolerances, "gate {gate}");
    }
    let rules = settings(false).rules(None, now()).initialization;
    assert_eq!((rules.cpu_period, rules.readiness_delay, rules.now), (seconds(240), seconds(30), now()));
    assert_eq!(settings(false).stabilization_window(), seconds(300));
}

#[test]
fn object_and_external_metrics_can_be_measured_without_pods() {
    let of = |types: &[&str]| {
        let metric = |type_: &&str| {
            let field = format!("{}{}", type_[..1].to_lowercase(), &type_[1..]);
            json!({ "type": type_, field: { "metric": { "name": "q" } } })
        };
        let metrics: Vec<Value> = types.iter().map(metric).collect();
        serde_json::from_value::<Spec>(json!({ "metrics": metrics })).expect("it is a spec").scales_from_zero()
    };
    for (types, expected) in [
        (&["Resource", "Pods", "ContainerResource"][..], false),
        (&["Resource", "Object"], true),
        (&["External"], true),
        (&[], false),
    ] {
        assert_eq!(of(types), expected, "{types:?}");
    }
    let null: Spec = serde_json::from_value(json!({ "metrics": null })).expect("it is a spec");
    assert!(!null.scales_from_zero());
}
