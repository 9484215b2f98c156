//! The plan of a reconcile in words, for people who ask why.

use super::plan::{IdleReason, InvalidTemplate, Plan, Step};

impl Plan {
    /// What is planned for an object, called `noun`, that wants so many pods and has so many `active` ones, and why.
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
