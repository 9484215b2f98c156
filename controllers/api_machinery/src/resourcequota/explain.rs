//! Explanations of plans.

use super::plan::{Action, Plan};

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(&self) -> String {
        let unavailable: Vec<String> =
            self.unavailable.iter().map(|(evaluator, reason)| format!("{evaluator}: {reason}")).collect();
        let action = match &self.action {
            Action::Wait(_) => "waits for the first list of a kind that it counts",
            Action::Keep => "leaves the status, which is up to date",
            Action::Update(_) => "updates the status, as limits or usage have changed",
        };
        if unavailable.is_empty() {
            action.to_owned()
        } else {
            format!("{action}; not counted now: {}", unavailable.join(", "))
        }
    }
}
