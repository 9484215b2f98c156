//! What is remembered of an autoscaler between its syncs: recommendations and changes. Pure.

use jiff::{SignedDuration, Timestamp};

use super::spec::{Behavior, ScalingRules};

/// What is remembered of one autoscaler.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct History {
    /// The recommendations, before stabilization.
    pub(super) recommendations: Vec<Recommendation>,
    /// How much was scaled up.
    pub(super) ups: Vec<Change>,
    /// How much was scaled down.
    pub(super) downs: Vec<Change>,
}

/// How many replicas were recommended, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recommendation {
    pub(super) replicas: i32,
    pub(super) at: Timestamp,
}

/// By how much was scaled, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) by: i32,
    pub(super) at: Timestamp,
}

/// The time so many seconds before.
pub(super) fn seconds_before(now: Timestamp, seconds: i32) -> Timestamp {
    now.checked_sub(SignedDuration::from_secs(seconds.into())).unwrap_or(Timestamp::MIN)
}

impl History {
    /// Remembers how many replicas there were at the first sync: nothing is scaled down at once.
    pub(super) fn begin(&mut self, replicas: i32, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommendations.push(Recommendation { replicas, at: now });
        }
    }

    /// Remembers a recommendation, in the place of the last that is out of date.
    pub(super) fn recommend(&mut self, replicas: i32, now: Timestamp, is_outdated: impl Fn(Timestamp) -> bool) {
        let recommendation = Recommendation { replicas, at: now };
        match self.recommendations.iter_mut().rfind(|earlier| is_outdated(earlier.at)) {
            Some(earlier) => *earlier = recommendation,
            None => self.recommendations.push(recommendation),
        }
    }

    /// Remembers that was scaled, which only the rules of a behavior ask for.
    pub(super) fn scaled(&mut self, behavior: Option<&Behavior>, from: i32, to: i32, now: Timestamp) {
        let Some(behavior) = behavior else { return };
        let (changes, rules): (_, &ScalingRules) =
            if to > from { (&mut self.ups, &behavior.up) } else { (&mut self.downs, &behavior.down) };
        let longest = rules.policies.iter().map(|policy| policy.period_seconds).fold(0, i32::max);
        let cutoff = seconds_before(now, longest);
        let change = Change { by: to.saturating_sub(from).saturating_abs(), at: now };
        match changes.iter_mut().rfind(|earlier| earlier.at < cutoff) {
            Some(earlier) => *earlier = change,
            None => changes.push(change),
        }
    }
}

/// By how much was scaled in a period.
pub(super) fn changed_within(changes: &[Change], seconds: i32, now: Timestamp) -> i32 {
    let cutoff = seconds_before(now, seconds);
    changes.iter().filter(|change| change.at > cutoff).fold(0, |sum, change| sum.saturating_add(change.by))
}
