//! Rollback by the annotation that stands for a field of early versions of the API.
//!
//! `kubectl rollout undo` does not use it: it changes the template itself.

use std::sync::Arc;

use kcm_api::views::{Deployment, ReplicaSet};
use kcm_api::{Document, EditError, POD_TEMPLATE_HASH};

use super::annotations::{REVISION, ROLLBACK_TO, parse_revision, revision_of, rolled_back};
use super::events::Notice;
use super::replica_sets::{Sets, has_template_of};

/// What becomes of a request to roll back. In every case the request is cleared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rollback {
    /// The deployment gets the template, and the notes, of this replica set.
    To {
        /// The replica set.
        set: Arc<ReplicaSet>,
        /// Its revision.
        revision: i64,
    },
    /// There is no revision before the present one.
    NoLastRevision,
    /// There is no such revision.
    NoSuchRevision,
    /// The template is that of the revision already.
    TemplateUnchanged,
}

impl Rollback {
    /// Decides about the request for `revision`, where 0 stands for the last one before the present.
    ///
    /// `present` is the revision of the new replica set after it was renewed. A request may come in the same write as
    /// an earlier template: the replica set of that template is then the latest revision, not its old one.
    pub(super) fn decide(deployment: &Deployment, sets: &Sets, present: &str, revision: i64) -> Self {
        let old = sets.old.iter().filter_map(|set| Some((revision_of(&set.metadata)?, set)));
        let new = sets.new.iter().filter_map(|set| Some((parse_revision(present)?, set)));
        let revisions: Vec<_> = old.chain(new).collect();
        let revision = match revision {
            0 => match last_revision(&revisions) {
                0 => return Self::NoLastRevision,
                last => last,
            },
            asked => asked,
        };
        match revisions.into_iter().find(|(of_set, _)| *of_set == revision).map(|(_, set)| set) {
            None => Self::NoSuchRevision,
            Some(set) if has_template_of(deployment, set) => Self::TemplateUnchanged,
            Some(set) => Self::To { set: Arc::clone(set), revision },
        }
    }

    /// The whole deployment, to be put; `revision` is that of its new replica set.
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

    /// What people are told of it.
    pub(super) fn notice(&self, deployment: &Deployment) -> Notice {
        let name = || deployment.metadata.key.name().to_owned();
        match self {
            Self::To { revision, .. } => Notice::RolledBack { name: name(), revision: *revision },
            Self::NoLastRevision => Notice::NoLastRevision,
            Self::NoSuchRevision => Notice::NoSuchRevision,
            Self::TemplateUnchanged => Notice::TemplateUnchanged { name: name() },
        }
    }
}

/// The second highest revision, 0 where there is none. The highest twice is the second highest too.
fn last_revision(sets: &[(i64, &Arc<ReplicaSet>)]) -> i64 {
    let mut revisions: Vec<_> = sets.iter().map(|(revision, _)| *revision).collect();
    revisions.sort_unstable();
    revisions.iter().rev().nth(1).copied().unwrap_or(0).max(0)
}
