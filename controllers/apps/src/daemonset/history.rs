//! The revisions of a daemon set: which one is current, and which ones are deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::api::views::{ControllerRevision, Pod};

use crate::shared::revisions::{self, POD_REVISION, RevisionData};

/// The revisions that a daemon set controls, and what changes among them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct History {
    /// The revision of the present template.
    pub(super) current: Current,
    /// The revisions of other templates, from the oldest to the last.
    pub(super) old: Vec<Arc<ControllerRevision>>,
    /// The revisions without the label of their hash.
    pub(super) unlabelled: Vec<Arc<ControllerRevision>>,
}

/// The revision of the present template.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Current {
    /// It is created, under this number.
    Create {
        /// The number.
        number: i64,
    },
    /// It exists.
    Keep {
        /// The last revision of the template.
        revision: Arc<ControllerRevision>,
        /// Its number, where it changes: that of a rollback is higher than all others.
        renumber: Option<i64>,
        /// Other revisions of the same template, which are deleted.
        duplicates: Vec<Arc<ControllerRevision>>,
    },
}

impl History {
    /// Decides which of the revisions that a set controls is current.
    ///
    /// # Upstream
    /// `constructHistory`.
    pub(super) fn of(mut revisions: Vec<Arc<ControllerRevision>>, data: &RevisionData) -> Self {
        revisions::sort(&mut revisions);
        let unlabelled =
            revisions.iter().filter(|it| !it.metadata.labels.contains_key(POD_REVISION)).cloned().collect();
        let (mut same, old): (Vec<_>, Vec<_>) = revisions.into_iter().partition(|revision| data.is_of(revision));
        let number = revisions::next_revision(&old);
        let current = match same.pop() {
            None => Current::Create { number },
            Some(revision) => {
                let renumber = (revision.revision < number).then_some(number);
                Current::Keep { revision, renumber, duplicates: same }
            }
        };
        Self { current, old, unlabelled }
    }

    /// The old revisions that exceed the history limit, the oldest first. A revision that a pod has is kept.
    ///
    /// # Upstream
    /// `cleanupHistory`.
    pub(super) fn exceeding(&self, limit: i32, pods: &[Arc<Pod>]) -> Vec<Arc<ControllerRevision>> {
        let live: BTreeSet<&str> = pods.iter().filter_map(|pod| pod.metadata.labels.get(POD_REVISION)).collect();
        let count = self.old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        let is_live = |revision: &ControllerRevision| live.contains(hash_of(revision));
        revisions::oldest_unused(&self.old, is_live, count).cloned().collect()
    }
}

/// The hash of a revision: its label, and its name until it has one.
pub(super) fn hash_of(revision: &ControllerRevision) -> &str {
    revision.metadata.labels.get(POD_REVISION).unwrap_or(revision.metadata.key.name())
}

/// The pods that have the hash of a duplicate, and get that of the revision that is kept.
pub(super) fn pods_of_duplicates<'a>(
    duplicates: &'a [Arc<ControllerRevision>],
    pods: &'a [Arc<Pod>],
) -> impl Iterator<Item = &'a Arc<Pod>> {
    let hashes: BTreeSet<&str> = duplicates.iter().map(|revision| hash_of(revision)).collect();
    pods.iter().filter(move |pod| pod.metadata.labels.get(POD_REVISION).is_some_and(|hash| hashes.contains(hash)))
}
