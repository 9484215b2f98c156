//! Rollbacks that are requested by an annotation, which replaces `spec.rollbackTo` of early versions of the API.
//!
//! `kubectl rollout undo` does not use the annotation: it changes the template.

use std::sync::Arc;

use kcm_framework::api::views::{Deployment, ReplicaSet};
use kcm_framework::api::{Document, EditError, POD_TEMPLATE_HASH};

use super::annotations::{REVISION, ROLLBACK_TO, parse_revision, revision_of, rolled_back};
use super::events::DeploymentEvent;
use super::replica_sets::{ReplicaSets, has_template_of};

/// The decision on a requested rollback. The request is removed in every case.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rollback {
    /// The deployment gets the template and the annotations of this replica set.
    To {
        /// The replica set.
        set: Arc<ReplicaSet>,
        /// Its revision.
        revision: i64,
    },
    /// The last revision is requested, and there is only one.
    NoLastRevision,
    /// No replica set has the requested revision.
    NoSuchRevision,
    /// The deployment has the template of the requested revision.
    TemplateUnchanged,
}

impl Rollback {
    /// Decides on the request for `revision`, where 0 is the last revision before the present one.
    ///
    /// `present` is the revision of the new replica set after this reconcile. With a request that comes in one write with
    /// an earlier template, the replica set of that template gets the highest revision first.
    pub(super) fn decide(deployment: &Deployment, sets: &ReplicaSets, present: &str, revision: i64) -> Self {
        let old = sets.old.iter().filter_map(|set| Some((revision_of(&set.metadata)?, set)));
        let new = sets.new.iter().filter_map(|set| Some((parse_revision(present)?, set)));
        let revisions: Vec<_> = old.chain(new).collect();
        let revision = match revision {
            0 => match last_revision(&revisions) {
                0 => return Self::NoLastRevision,
                last => last,
            },
            requested => requested,
        };
        match revisions.into_iter().find(|(of_set, _)| *of_set == revision).map(|(_, set)| set) {
            None => Self::NoSuchRevision,
            Some(set) if has_template_of(deployment, set) => Self::TemplateUnchanged,
            Some(set) => Self::To { set: Arc::clone(set), revision },
        }
    }

    /// The whole deployment after the rollback, with `revision`, that of its new replica set.
    pub(super) fn document(&self, deployment: &Deployment, revision: &str) -> Result<Document, EditError> {
        let mut document = deployment.document.clone();
        match self {
            Self::To { set, .. } => {
                let annotations = rolled_back(&deployment.document.annotations(), &set.document.annotations());
                document.set(&["metadata", "annotations"], &annotations)?;
                let template = set.raw(&["spec", "template"]).ok_or(EditError::EmptyPath)?;
                document.set(&["spec", "template"], template)?;
                document.remove(&["spec", "template", "metadata", "labels", POD_TEMPLATE_HASH])?;
            }
            Self::NoLastRevision | Self::NoSuchRevision | Self::TemplateUnchanged => {
                document.remove(&["metadata", "annotations", ROLLBACK_TO])?;
            }
        }
        if deployment.metadata.annotations.get(REVISION) != Some(revision) {
            document.set(&["metadata", "annotations", REVISION], revision)?;
        }
        Ok(document)
    }

    /// The event of the rollback.
    pub(super) fn event(&self, deployment: &Deployment) -> DeploymentEvent {
        let name = || deployment.metadata.key.name().to_owned();
        match self {
            Self::To { revision, .. } => DeploymentEvent::RolledBack { name: name(), revision: *revision },
            Self::NoLastRevision => DeploymentEvent::NoLastRevision,
            Self::NoSuchRevision => DeploymentEvent::NoSuchRevision,
            Self::TemplateUnchanged => DeploymentEvent::TemplateUnchanged { name: name() },
        }
    }
}

/// The second highest revision, 0 if there is none. A highest revision that occurs twice is also the second highest.
fn last_revision(sets: &[(i64, &Arc<ReplicaSet>)]) -> i64 {
    let mut revisions: Vec<_> = sets.iter().map(|(revision, _)| *revision).collect();
    revisions.sort_unstable();
    revisions.iter().rev().nth(1).copied().unwrap_or(0).max(0)
}
