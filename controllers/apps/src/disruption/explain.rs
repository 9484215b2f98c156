//! The explanation of a plan.

use super::plan::Plan;

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(&self) -> String {
        let status = &self.status;
        let counts = format!(
            "{} of {} expected pods are healthy and {} have to be",
            status.current_healthy, status.expected_pods, status.desired_healthy
        );
        let admitted = match status.disrupted_pods.len() {
            0 => String::new(),
            pods => format!("; {pods} more pods are about to be evicted"),
        };
        format!("allows {} disruptions: {counts}{admitted}", status.disruptions_allowed)
    }
}
