//! The status that is written.

use serde_json::{Value, json};

use super::{budget_json, view_of};
use crate::disruption::status::{AllowedReason, fail_safe, is_written, with_status};
use crate::tests::cluster::now;
use crate::tests::fixtures::ago;

fn condition(status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": "DisruptionAllowed", "status": status, "reason": reason, "message": message, "observedGeneration": 1,
        "lastTransitionTime": "2026-01-02T11:00:00Z",
    })
}

/// A budget that allows one disruption, and has conditions and a field that this version does not know.
fn written(conditions: &Value) -> Value {
    let mut budget = budget_json("web", json!({ "minAvailable": 1 }));
    budget["status"] = json!({
        "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
        "disruptedPods": { "a": "2026-01-02T11:59:00Z" }, "future": true, "conditions": conditions,
    });
    budget
}

#[test]
fn a_status_is_written_where_any_field_or_the_condition_differs() {
    let allowed = || json!([condition("True", "SufficientPods", "")]);
    for (name, conditions, change, expected) in [
        ("as it is", allowed(), None, true),
        ("another message, which is not compared", json!([condition("True", "SufficientPods", "x")]), None, true),
        ("another reason", json!([condition("True", "Other", "")]), None, false),
        ("another status", json!([condition("False", "SufficientPods", "")]), None, false),
        ("no condition", json!([]), None, false),
        ("healthy pods", allowed(), Some("healthy"), false),
        ("generation", allowed(), Some("generation"), false),
        ("disrupted pods", allowed(), Some("disrupted"), false),
    ] {
        let budget = view_of(&written(&conditions));
        let mut status = budget.status.clone();
        match change {
            Some("healthy") => status.current_healthy += 1,
            Some("generation") => status.observed_generation += 1,
            Some("disrupted") => status.disrupted_pods.clear(),
            Some(other) => panic!("no such change: {other}"),
            None => {}
        }
        assert_eq!(is_written(&budget, &status, &AllowedReason::SufficientPods), expected, "{name}");
    }
}

#[test]
fn conditions_of_others_and_unknown_fields_survive_in_their_order() {
    let other =
        json!({ "type": "Other", "status": "True", "reason": "R", "message": "", "lastTransitionTime": ago(9) });
    let conditions = json!([condition("True", "SufficientPods", ""), other]);
    let budget = view_of(&written(&conditions));
    let mut status = budget.status.clone();
    status.disruptions_allowed = 0;
    status.current_healthy = 1;
    status.observed_generation = 2;
    status.disrupted_pods.clear();
    let document = with_status(&budget, &status, &AllowedReason::of(&status), now()).unwrap();
    let written: Value = serde_json::from_str(document.as_str()).unwrap();
    let expected = json!({
        "observedGeneration": 2, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 2,
        "future": true,
        "conditions": [
            {
                "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "observedGeneration": 2,
                "lastTransitionTime": "2026-01-02T12:00:00Z",
            },
            other,
        ],
    });
    assert_eq!(written["status"], expected);
    assert_eq!(written["spec"], budget_json("web", json!({ "minAvailable": 1 }))["spec"]);
}

#[test]
fn the_transition_time_stays_where_the_status_does() {
    let budget = view_of(&written(&json!([condition("False", "InsufficientPods", "")])));
    let reason = AllowedReason::SyncFailed { message: "no".to_owned() };
    let status = fail_safe(&budget.status);
    assert!(!is_written(&budget, &status, &reason));
    let document = with_status(&budget, &status, &reason, now()).unwrap();
    let written = view_of(&serde_json::from_str(document.as_str()).unwrap());
    assert!(is_written(&written, &fail_safe(&written.status), &reason), "so that it is written once");
    let written: Value = serde_json::from_str(document.as_str()).unwrap();
    let mut expected = condition("False", "SyncFailed", "no");
    expected["observedGeneration"] = json!(1);
    assert_eq!(written["status"]["conditions"], json!([expected]));
    assert_eq!(
        (&written["status"]["disruptionsAllowed"], &written["status"]["currentHealthy"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(written["status"]["disruptedPods"], json!({ "a": "2026-01-02T11:59:00Z" }));
}
