//! Explains the plan of a reconcile to operators.

use super::plan::{Plan, Step, SyncAction};
use super::replica_sets::Edit;
use super::rollback::Rollback;
use super::rollout::ScaleReason;

impl Plan {
    /// Explains the plan for a Deployment that wants `replicas`: a sentence for the action, and one for each step that
    /// writes.
    pub(super) fn explain(&self, replicas: i32) -> String {
        let steps: Vec<String> = self.steps.iter().filter_map(Step::explain).collect();
        let counts = self.status_update.as_ref().map(|update| {
            let status = &update.status;
            format!(
                " ({replicas} wanted, {} exist, {} of the new template, {} available)",
                status.replicas, status.updated_replicas, status.available_replicas
            )
        });
        let (action, counts) = (self.action.explain(), counts.unwrap_or_default());
        if steps.is_empty() {
            return format!("{action}{counts}: no replica set changes");
        }
        format!("{action}{counts}: {}", steps.join("; "))
    }
}

impl SyncAction {
    const fn explain(self) -> &'static str {
        match self {
            Self::SelectsEverything => "does nothing, as the selector is empty and would select all pods",
            Self::Terminating => "updates the status only, as the deployment is being deleted",
            Self::Paused => "rolls nothing out, as the deployment is paused",
            Self::RollBack => "rolls back, as an annotation requests it",
            Self::Scale => "scales, as spec.replicas changed since the replica sets were scaled",
            Self::Recreate => "rolls out by the strategy Recreate",
            Self::RollingUpdate => "rolls out by the strategy RollingUpdate",
        }
    }
}

impl Step {
    fn explain(&self) -> Option<String> {
        Some(match self {
            Self::RecordEvent(_) => return None,
            Self::Create(set) => {
                format!("creates replica set {} with {} replicas, as none has the template", set.name, set.replicas)
            }
            Self::Edit(edit) => edit.explain(),
            Self::Delete(set) => {
                format!("deletes replica set {}, as it exceeds spec.revisionHistoryLimit", set.metadata.key.name())
            }
            Self::RollBack { rollback, revision: _ } => match rollback {
                Rollback::To { set, revision } => {
                    format!("takes the template of revision {revision}, {}", set.metadata.key.name())
                }
                Rollback::NoLastRevision => "removes the request, as there is no earlier revision".to_owned(),
                Rollback::NoSuchRevision => "removes the request, as the revision does not exist".to_owned(),
                Rollback::TemplateUnchanged => "removes the request, as the revision has this template".to_owned(),
            },
        })
    }
}

impl Edit {
    fn explain(&self) -> String {
        let name = self.set.metadata.key.name();
        if !self.is_scale() {
            return format!("updates the annotations of replica set {name}");
        }
        let reasons: Vec<&str> = self.reasons.iter().map(|reason| reason.explain()).collect();
        format!(
            "scales replica set {name} from {} to {}, as {}",
            self.set.replicas,
            self.replicas,
            reasons.join(" and ")
        )
    }
}

impl ScaleReason {
    const fn explain(self) -> &'static str {
        match self {
            Self::TooLarge => "it has more replicas than the deployment",
            Self::Surge => "maxSurge leaves room for new pods",
            Self::Unavailable => "its unavailable pods do not count for availability",
            Self::Spare => "more pods are available than maxUnavailable requires",
            Self::Recreate => "a recreation scales old replica sets to 0 first",
            Self::OldGone => "no old pod runs any more",
            Self::OnlyActive => "it is the only replica set with replicas",
            Self::Latest => "no replica set has replicas, and it is the latest",
            Self::Saturated => "the new replica set has all replicas, and all are available",
            Self::Share => "it gets its proportion of spec.replicas",
        }
    }
}
