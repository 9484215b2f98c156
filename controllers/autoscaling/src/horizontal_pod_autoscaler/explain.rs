//! Explanations of plans.

use super::conditions::SCALING_LIMITED;
use super::normalize::Bounds;
use super::plan::{Decision, Plan};

impl Plan {
    /// Explains the plan for a target with these replicas and bounds.
    pub(super) fn explain(&self, bounds: Bounds) -> String {
        let Bounds { current, min, max } = bounds;
        let counts = format!("{current} replicas, at least {min}, at most {max}");
        let limit = self.conditions.0.iter().find(|condition| *condition.type_ == *SCALING_LIMITED);
        let limit = limit.filter(|_| !self.computed.is_empty());
        let limit = limit.map(|condition| format!("; {}", condition.message)).unwrap_or_default();
        let error = self.error.as_ref().map(|error| format!("; {error}")).unwrap_or_default();
        match &self.decision {
            Decision::Unknown => format!("does not scale ({counts}), as the metrics propose nothing{error}"),
            Decision::Keep if current == 0 => format!("does not scale ({counts}), as the target has no replicas"),
            Decision::Keep => format!("keeps {current} replicas ({counts}){limit}{error}"),
            Decision::Rescale { to, reason } => {
                format!("scales to {to} replicas ({counts}): {reason}{limit}{error}")
            }
        }
    }
}
