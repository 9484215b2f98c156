//! The decision of a sync.

use serde_json::json;

use super::fixtures::{now, seconds};
use crate::horizontal_pod_autoscaler::conditions::{Conditions, SCALED_TO_ZERO};
use crate::horizontal_pod_autoscaler::evaluate::{Evaluation, Failure};
use crate::horizontal_pod_autoscaler::events::AutoscalerEvent;
use crate::horizontal_pod_autoscaler::history::History;
use crate::horizontal_pod_autoscaler::normalize::Bounds;
use crate::horizontal_pod_autoscaler::plan::{
    Approach, Decision, Plan, Planned, Zero, after_rescale, plan_by_metrics, plan_without_metrics,
};

const NO_ZERO: Zero = Zero { gate: false, measurable: false, scaled: false };

fn planned(current: i32, min: i32, max: i32, zero: Zero) -> Planned<'static> {
    let bounds = Bounds { current, min, max };
    Planned { bounds, zero, behavior: None, window: seconds(300), now: now() }
}

fn proposes(replicas: Option<i32>, failures: usize) -> Evaluation {
    let failure = Failure {
        reason: "FailedGetResourceMetric",
        message: "no metrics".into(),
        error: "failed: no metrics".into(),
        is_spec: false,
    };
    Evaluation {
        proposed: replicas.map(|replicas| (replicas, "cpu resource".to_owned())),
        statuses: vec![json!({ "type": "" })],
        failures: vec![failure; failures],
        computed: Vec::new(),
    }
}

fn conditions(plan: &Plan) -> Vec<String> {
    let condition =
        |it: &kcm_framework::api::Condition| format!("{} {:?} {}: {}", it.type_, it.status, it.reason, it.message);
    plan.conditions.0.iter().map(condition).collect()
}

fn rescale(to: i32, reason: &str) -> Decision {
    Decision::Rescale { to, reason: reason.to_owned() }
}

#[test]
fn bounds_go_before_metrics_and_no_replicas_before_bounds() {
    let zero = |gate, measurable, scaled| Zero { gate, measurable, scaled };
    for (name, current, min, zero, expected) in [
        ("above the most", 11, 1, NO_ZERO, Approach::AboveMax),
        ("at the most", 10, 1, NO_ZERO, Approach::Metrics),
        ("below the least", 1, 2, NO_ZERO, Approach::BelowMin),
        ("no replicas, by a person", 0, 1, NO_ZERO, Approach::Disabled),
        ("no replicas, by a person, with the gate", 0, 0, zero(true, true, false), Approach::Disabled),
        ("no replicas, by the autoscaler", 0, 0, zero(true, true, true), Approach::Metrics),
        ("no metric that is measurable without pods", 0, 0, zero(true, false, true), Approach::Disabled),
        ("the least has been raised", 0, 2, zero(true, false, true), Approach::Metrics),
    ] {
        assert_eq!(Approach::of(Bounds { current, min, max: 10 }, zero), expected, "{name}");
    }
}

#[test]
fn without_metrics_the_nearest_bound_is_set_or_nothing() {
    let above = plan_without_metrics(planned(11, 1, 10, NO_ZERO), Approach::AboveMax, Conditions::default());
    assert_eq!(above.decision, rescale(10, "Current number of replicas above Spec.MaxReplicas"));
    let below = plan_without_metrics(planned(1, 2, 10, NO_ZERO), Approach::BelowMin, Conditions::default());
    assert_eq!(below.decision, rescale(2, "Current number of replicas below Spec.MinReplicas"));
    assert!(below.conditions.0.is_empty() && below.events.is_empty());

    let mut before = Conditions::default();
    before.set(SCALED_TO_ZERO, true, "ScaledToZero", "x", now());
    let disabled = plan_without_metrics(planned(0, 1, 10, NO_ZERO), Approach::Disabled, before.clone());
    assert_eq!(disabled.decision, Decision::Keep);
    let message =
        "ScalingActive False ScalingDisabled: scaling is disabled since the replica count of the target is zero";
    assert_eq!(conditions(&disabled), [message], "without the gate the condition of the gate goes");
    let gated = planned(0, 1, 10, Zero { gate: true, ..NO_ZERO });
    assert_eq!(plan_without_metrics(gated, Approach::Disabled, before).conditions.0.len(), 2);
}

#[test]
fn metrics_scale_within_the_bounds_and_say_why() {
    for (name, current, proposed, expected) in [
        ("up", 3, 5, rescale(5, "cpu resource above target")),
        ("down", 5, 3, rescale(3, "All metrics below target")),
        ("no change", 5, 5, Decision::Keep),
        ("a flood", 5, i32::MAX, rescale(10, "cpu resource above target")),
        ("less than nothing", 5, i32::MIN, rescale(2, "All metrics below target")),
        ("limited to as many", 10, 50, Decision::Keep),
    ] {
        let planned = planned(current, 2, 10, NO_ZERO);
        let plan =
            plan_by_metrics(planned, proposes(Some(proposed), 0), Conditions::default(), &mut History::default());
        assert_eq!(plan.decision, expected, "{name}");
        let active = "ScalingActive True ValidMetricFound: the HPA was able to successfully calculate a replica count from cpu resource";
        assert_eq!(conditions(&plan)[0], active, "{name}");
        assert!(plan.events.is_empty() && plan.error.is_none(), "{name}");
    }
}

#[test]
fn all_conditions_of_a_sync_are_upstreams() {
    let mut history = History::default();
    history.begin(8, now() - seconds(60));
    let plan = plan_by_metrics(planned(8, 2, 10, NO_ZERO), proposes(Some(1), 0), Conditions::default(), &mut history);
    assert_eq!(plan.decision, Decision::Keep);
    assert_eq!(
        conditions(&plan)[1..],
        [
            "AbleToScale True ScaleDownStabilized: recent recommendations were higher than current one, applying the highest recent recommendation",
            "ScalingLimited False DesiredWithinRange: the desired count is within the acceptable range",
        ]
    );
    let limited = plan_by_metrics(
        planned(4, 2, 10, NO_ZERO),
        proposes(Some(50), 0),
        Conditions::default(),
        &mut History::default(),
    );
    assert_eq!(
        conditions(&limited)[1..],
        [
            "AbleToScale True ReadyForNewScale: recommended size matches current size",
            "ScalingLimited True ScaleUpLimit: the desired replica count is increasing faster than the maximum scale rate",
        ]
    );
}

#[test]
fn without_a_proposal_nothing_is_scaled_and_the_first_failure_is_the_condition() {
    let plan =
        plan_by_metrics(planned(4, 2, 10, NO_ZERO), proposes(None, 2), Conditions::default(), &mut History::default());
    assert_eq!(plan.decision, Decision::Unknown);
    let message =
        "ScalingActive False FailedGetResourceMetric: the HPA was unable to compute the replica count: no metrics";
    assert_eq!(conditions(&plan), [message]);
    let failed = || AutoscalerEvent::FailedMetric("FailedGetResourceMetric", "no metrics".to_owned());
    let all = "invalid metrics (2 invalid out of 1), first error is: failed: no metrics".to_owned();
    assert_eq!(plan.events, [failed(), failed(), AutoscalerEvent::FailedComputeMetricsReplicas(all.clone())]);
    assert_eq!(plan.error, Some(all));
}

#[test]
fn a_failure_beside_a_proposal_is_reported_and_does_not_keep_from_scaling_up() {
    let plan = plan_by_metrics(
        planned(4, 2, 10, NO_ZERO),
        proposes(Some(6), 1),
        Conditions::default(),
        &mut History::default(),
    );
    assert_eq!(plan.decision, rescale(6, "cpu resource above target"));
    assert_eq!(plan.events.len(), 1);
    assert!(plan.error.is_some());
}

#[test]
fn an_autoscaler_that_scaled_to_zero_returns_and_says_so() {
    let zero = Zero { gate: true, measurable: true, scaled: true };
    let raised = planned(0, 2, 10, zero);
    let plan = plan_by_metrics(raised, proposes(Some(0), 0), Conditions::default(), &mut History::default());
    assert_eq!(plan.decision, rescale(2, ""), "the bounds bring it to the least");
    let back =
        plan_by_metrics(planned(0, 0, 10, zero), proposes(Some(3), 0), Conditions::default(), &mut History::default());
    assert_eq!(back.decision, rescale(3, "cpu resource above target"));

    let after = |current, min, to, zero| {
        let mut conditions = Conditions::default();
        after_rescale(&mut conditions, Bounds { current, min, max: 10 }, to, zero, now());
        conditions.0.iter().map(|it| format!("{} {:?} {}", it.type_, it.status, it.reason)).collect::<Vec<_>>()
    };
    let zeroed = Zero { scaled: false, ..zero };
    assert_eq!(after(3, 0, 0, zeroed), ["AbleToScale True SucceededRescale", "ScaledToZero True ScaledToZero"]);
    assert_eq!(after(0, 0, 3, zero), ["AbleToScale True SucceededRescale", "ScaledToZero False NotScaledToZero"]);
    assert_eq!(after(3, 1, 2, NO_ZERO), ["AbleToScale True SucceededRescale"]);
}

#[test]
fn a_condition_of_scaling_to_zero_ends_while_the_target_has_replicas() {
    let bounds = |current, min| Bounds { current, min, max: 10 };
    let zero = Zero { gate: true, measurable: true, scaled: true };
    for (name, zero, bounds, expected) in [
        ("replicas", zero, bounds(2, 0), "False NotScaledToZero"),
        ("replicas and another minimum", zero, bounds(2, 1), "False NotScaledToZero"),
        ("no replicas", zero, bounds(0, 0), "True ScaledToZero"),
        ("without the gate", Zero { gate: false, ..zero }, bounds(2, 0), "True ScaledToZero"),
    ] {
        let mut conditions = Conditions::default();
        conditions.set(SCALED_TO_ZERO, true, "ScaledToZero", "x", now());
        zero.settle(&mut conditions, bounds, now());
        let [condition] = &conditions.0[..] else { panic!("there is one") };
        assert_eq!(format!("{:?} {}", condition.status, condition.reason), expected, "{name}");
    }
    let mut none = Conditions::default();
    zero.settle(&mut none, bounds(2, 0), now());
    assert_eq!(none.0, [], "a condition that is not true is not added");
    for (name, zero, bounds, to, expected) in [
        ("to zero", zero, bounds(2, 0), 0, true),
        ("to one", zero, bounds(2, 0), 1, false),
        ("zero already", zero, bounds(0, 0), 0, false),
        ("to a maximum of zero", zero, bounds(2, 1), 0, false),
        ("by metrics of pods", Zero { measurable: false, ..zero }, bounds(2, 0), 0, false),
        ("without the gate", Zero { gate: false, ..zero }, bounds(2, 0), 0, false),
    ] {
        assert_eq!(zero.is_to_zero(bounds, to), expected, "{name}");
    }
}

#[test]
fn a_condition_of_scaling_to_zero_does_not_outlive_another_rescale() {
    let after = |gate| {
        let mut conditions = Conditions::default();
        conditions.set(SCALED_TO_ZERO, true, "ScaledToZero", "x", now());
        let zero = Zero { gate, measurable: true, scaled: false };
        after_rescale(&mut conditions, Bounds { current: 3, min: 0, max: 10 }, 5, zero, now());
        conditions.0.iter().map(|it| format!("{} {:?} {}", it.type_, it.status, it.reason)).collect::<Vec<_>>()
    };
    let rescaled = "AbleToScale True SucceededRescale";
    assert_eq!(after(true), ["ScaledToZero False NotScaledToZero", rescaled]);
    assert_eq!(after(false), [rescaled]);
}
