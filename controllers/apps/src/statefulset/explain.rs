//! Explains the plan of a reconcile to operators.

use super::steps::{Deletion, Plan, Step, Wait};

impl Plan {
    /// Explains the plan, and what the `StatefulSet` waits for.
    pub(super) fn explain(&self) -> String {
        let steps: Vec<_> = self.phases.iter().flat_map(|phase| phase.pods.iter().flatten()).collect();
        let count = |of: &dyn Fn(&Step) -> bool| steps.iter().filter(|step| of(step)).count();
        let created = count(&|step| matches!(step, Step::Create { .. }));
        let repaired =
            count(&|step| matches!(step, Step::CreateClaims { .. } | Step::Update { .. } | Step::UpdateClaims { .. }));
        let deleted = |why| count(&move |step| matches!(step, Step::Delete { reason, .. } if *reason == why));
        let mut parts = Vec::new();
        for (count, what) in [
            (created, "creates {} pods"),
            (repaired, "repairs {} pods or their claims"),
            (deleted(Deletion::Finished), "deletes {} pods that have ended"),
            (deleted(Deletion::Surplus), "deletes {} surplus pods"),
            (deleted(Deletion::Outdated), "deletes {} pods of an earlier revision"),
        ] {
            if count > 0 {
                parts.push(what.replace("{}", &count.to_string()));
            }
        }
        let mut words = if parts.is_empty() { "changes no pod".to_owned() } else { parts.join(", ") };
        if let Some(wait) = &self.wait {
            words.push_str(": ");
            words.push_str(&wait.explain());
        }
        words
    }
}

impl Wait {
    fn explain(&self) -> String {
        match self {
            Self::SetTerminating => "the stateful set is being deleted".to_owned(),
            Self::Created { pod } => format!("{pod} has to become available before the next pod"),
            Self::Terminating { pod } => format!("{pod} is being deleted"),
            Self::NotReady { pod } => format!("{pod} does not run or is not ready"),
            Self::NotAvailable { pod } => format!("{pod} is not available"),
            Self::StaleClaim { pod } => format!("{pod} waits until a claim of an earlier pod of its name is deleted"),
            Self::Unavailable { pods } => format!("{pods} pods are not available, and no more may be"),
            Self::Recreation { pods } => {
                format!("{pods} pods of earlier revisions have to end before a pod is created")
            }
            Self::Deleted { pod } => format!("{pod} has to end before the next pod"),
        }
    }
}
