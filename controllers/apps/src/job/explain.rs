//! The explanation of a plan.

use super::assess::Assessment;
use super::plan::Step;

impl Step<'_> {
    /// Explains the step to operators.
    pub(super) fn explain(&self, assessment: &Assessment<'_>) -> String {
        let active = assessment.active.len();
        let counts = |wanted: i32| format!("{wanted} are wanted and {active} are active");
        let what = match self {
            Self::DeleteActive(pods) => {
                let why = assessment.ending.as_ref();
                let (result, reason) = why.map_or(("", ""), |end| (end.result.final_condition(), &*end.reason));
                format!("deletes {} active pods, as the job becomes {result}: {reason}", pods.len())
            }
            Self::Suspend(pods) => format!("deletes {} active pods, as the job is suspended", pods.len()),
            Self::DeleteSurplus { pods, wanted } => format!("deletes {} pods: {}", pods.len(), counts(*wanted)),
            Self::Create { pods, wanted } => format!("creates {} pods: {}", pods.len(), counts(*wanted)),
            Self::BackOff { until } => format!("creates no pod until {until}, as pods have failed"),
            Self::Keep => "creates and deletes no pod: as many as wanted are active".to_owned(),
            Self::LeaveToDeletion => "creates and deletes no pod, as the job is being deleted".to_owned(),
        };
        let Assessment { succeeded, failed, .. } = assessment;
        format!("{what}; {succeeded} have succeeded and {failed} pods have failed")
    }
}
