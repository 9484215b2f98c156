//! Explains the plan of a reconcile to operators.

use super::plan::{IdleReason, InvalidTemplate, Plan, Step};

impl Plan {
    /// Explains the plan for an object, called `noun`, that has `active` pods of `wanted` ones.
    pub(super) fn explain(&self, noun: &str, wanted: i32, active: usize) -> String {
        let counts = format!("{wanted} are wanted and {active} are active");
        match self {
            Self::Idle(IdleReason::Enough) => format!("creates and deletes no pod: {counts}"),
            Self::Idle(IdleReason::OwnerTerminating) => {
                format!("creates and deletes no pod, as the {noun} is being deleted")
            }
            Self::Scale(Step::CreatePods { count }) => format!("creates {count} pods: {counts}"),
            Self::Scale(Step::RejectTemplate(InvalidTemplate::NoLabels)) => {
                format!("creates no pod, as the template has no labels: {counts}")
            }
            Self::Scale(Step::DeletePods { victims, age_ratios: _ }) => {
                format!("deletes {} pods: {counts}", victims.len())
            }
        }
    }
}
