//! From what the metrics recommend to what is set: stabilization, the rate of change, and the bounds. Pure.

use jiff::{SignedDuration, Timestamp};

use super::conditions::{Able, Limited};
use super::history::{Change, History, changed_within, seconds_before};
use super::spec::{Behavior, PolicyType, ScalingRules, SelectPolicy};

/// The replicas and the bounds of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) current: i32,
    pub(super) min: i32,
    pub(super) max: i32,
}

/// The replicas that are set, and why they are not those that are recommended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Normalized {
    pub(super) replicas: i32,
    pub(super) able: Able,
    pub(super) limited: Limited,
    pub(super) is_limited: bool,
}

/// Normalizes a recommendation, and remembers it.
pub(super) fn normalize(
    recommended: i32,
    bounds: Bounds,
    behavior: Option<&Behavior>,
    window: SignedDuration,
    history: &mut History,
    now: Timestamp,
) -> Normalized {
    let (stabilized, replicas, limited, able) = match behavior {
        None => {
            let stabilized = stabilize(recommended, window, history, now);
            let (replicas, limited) = limit(stabilized, bounds);
            (stabilized, replicas, limited, Able::ScaleDownStabilized)
        }
        Some(behavior) => {
            let window = i32::try_from(window.as_secs()).unwrap_or(i32::MAX);
            let stabilized = stabilize_by(behavior, recommended, bounds.current, window, history, now);
            let (replicas, limited) = limit_by(behavior, stabilized, bounds, history, now);
            let is_up = recommended >= bounds.current;
            (stabilized, replicas, limited, if is_up { Able::ScaleUpStabilized } else { Able::ScaleDownStabilized })
        }
    };
    let able = if stabilized == recommended { Able::ReadyForNewScale } else { able };
    Normalized { replicas, able, limited, is_limited: replicas != stabilized }
}

/// The highest recommendation of the window, which includes its begin.
fn stabilize(recommended: i32, window: SignedDuration, history: &mut History, now: Timestamp) -> i32 {
    let cutoff = now.checked_sub(window).unwrap_or(Timestamp::MIN);
    let recent = history.recommendations.iter().filter(|earlier| earlier.at >= cutoff);
    let highest = recent.map(|earlier| earlier.replicas).fold(recommended, i32::max);
    history.recommend(recommended, now, |at| at < cutoff);
    highest
}

/// The replicas there are, moved into the range between the lowest recommendation of the window for scaling up and the
/// highest of that for scaling down. The windows do not include their begin.
fn stabilize_by(
    behavior: &Behavior,
    recommended: i32,
    current: i32,
    window: i32,
    history: &mut History,
    now: Timestamp,
) -> i32 {
    let up = seconds_before(now, behavior.up.stabilization_window.unwrap_or(0));
    let down = seconds_before(now, behavior.down.stabilization_window.unwrap_or(window));
    let within = |cutoff| {
        let recent = history.recommendations.iter().filter(move |earlier| earlier.at > cutoff);
        recent.map(|earlier| earlier.replicas)
    };
    let (lowest, highest) = (within(up).fold(recommended, i32::min), within(down).fold(recommended, i32::max));
    history.recommend(recommended, now, |at| at < up && at < down);
    current.max(lowest).min(highest)
}

/// The bounds without a behavior: no more than twice as many at once, or four.
fn limit(wanted: i32, bounds: Bounds) -> (i32, Limited) {
    let fastest = bounds.current.saturating_mul(2).max(4);
    let (most, limited) =
        if bounds.max > fastest { (fastest, Limited::ScaleUpLimit) } else { (bounds.max, Limited::TooManyReplicas) };
    if wanted < bounds.min {
        (bounds.min, Limited::TooFewReplicas)
    } else if wanted > most {
        (most, limited)
    } else {
        (wanted, Limited::DesiredWithinRange)
    }
}

fn limit_by(behavior: &Behavior, wanted: i32, bounds: Bounds, history: &History, now: Timestamp) -> (i32, Limited) {
    let Bounds { current, min, max } = bounds;
    if wanted > current {
        let fastest = most_by(&behavior.up, current, history, now).max(current);
        let (most, limited) =
            if max > fastest { (fastest, Limited::ScaleUpLimit) } else { (max, Limited::TooManyReplicas) };
        if wanted > most {
            return (most, limited);
        }
    } else if wanted < current {
        let fastest = least_by(&behavior.down, current, history, now).min(current);
        let (least, limited) =
            if min < fastest { (fastest, Limited::ScaleDownLimit) } else { (min, Limited::TooFewReplicas) };
        if wanted < least {
            return (least, limited);
        }
    }
    (wanted, Limited::DesiredWithinRange)
}

/// The most replicas that the policies for scaling up allow.
fn most_by(rules: &ScalingRules, current: i32, history: &History, now: Timestamp) -> i32 {
    let proposed = rules.policies.iter().map(|policy| {
        let start = at_start(current, history, policy.period_seconds, now);
        match policy.r#type {
            PolicyType::Pods => start.saturating_add(policy.value),
            // Rounded up, as a change below one replica would never scale.
            PolicyType::Percent => ceil(f64::from(start) * (1.0 + f64::from(policy.value) / 100.0)),
            PolicyType::Other => 0,
        }
    });
    match rules.select {
        SelectPolicy::Disabled => current,
        SelectPolicy::Min => proposed.fold(i32::MAX, i32::min),
        SelectPolicy::Max => proposed.fold(i32::MIN, i32::max),
    }
}

/// The fewest replicas that the policies for scaling down allow.
fn least_by(rules: &ScalingRules, current: i32, history: &History, now: Timestamp) -> i32 {
    let proposed = rules.policies.iter().map(|policy| {
        let start = at_start(current, history, policy.period_seconds, now);
        match policy.r#type {
            PolicyType::Pods => start.saturating_sub(policy.value),
            PolicyType::Percent => floor(f64::from(start) * (1.0 - f64::from(policy.value) / 100.0)),
            PolicyType::Other => 0,
        }
    });
    match rules.select {
        SelectPolicy::Disabled => current,
        SelectPolicy::Min => proposed.fold(i32::MIN, i32::max),
        SelectPolicy::Max => proposed.fold(i32::MAX, i32::min),
    }
}

/// How many replicas there were before what was scaled in a period.
fn at_start(current: i32, history: &History, seconds: i32, now: Timestamp) -> i32 {
    let within = |changes: &[Change]| changed_within(changes, seconds, now);
    current.saturating_sub(within(&history.ups)).saturating_add(within(&history.downs))
}

#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
fn ceil(replicas: f64) -> i32 {
    replicas.ceil() as i32
}

/// Towards zero, as upstream converts.
#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
fn floor(replicas: f64) -> i32 {
    replicas as i32
}
