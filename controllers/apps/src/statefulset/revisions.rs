//! The revisions of a stateful set: which one its template has, and which one pods below the partition have.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_framework::api::views::{ControllerRevision, StatefulSet};
use kcm_framework::ownership::Owner;

use crate::shared::revisions::{NewRevision, REVISION_HASH, RevisionData, next_revision, oldest_unused, revision_hash};

/// What has to be done for the template of a stateful set to have a revision.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum UpdateRevision {
    /// Nothing: the last revision is that of the template.
    Last(Arc<ControllerRevision>),
    /// The template has an earlier revision, which becomes the last: a rollback.
    Renumber {
        /// The revision.
        revision: Arc<ControllerRevision>,
        /// Its new number.
        number: i64,
    },
    /// No revision has the template.
    Create {
        /// The number of the new revision.
        number: i64,
    },
}

/// Finds the revision of the template whose data is `data` among the sorted revisions of the stateful set.
///
/// With `semantic`, the last revision also has the template if it has it after the defaults of today; an earlier release
/// may not have known them, and a new revision would restart every pod.
///
/// # Upstream
/// `getStatefulSetRevisions`.
pub(super) fn update_revision(
    revisions: &[Arc<ControllerRevision>],
    data: &RevisionData,
    semantic: bool,
) -> UpdateRevision {
    let number = next_revision(revisions);
    let Some(last) = revisions.last() else { return UpdateRevision::Create { number } };
    if data.is_of(last) {
        return UpdateRevision::Last(Arc::clone(last));
    }
    if let Some(equal) = revisions.iter().rev().find(|revision| data.is_of(revision)) {
        return UpdateRevision::Renumber { revision: Arc::clone(equal), number };
    }
    let same_meaning = || {
        RevisionData::of_revision(last)
            .and_then(|recorded| recorded.with_defaults())
            .is_some_and(|after| after == *data)
    };
    if semantic && same_meaning() { UpdateRevision::Last(Arc::clone(last)) } else { UpdateRevision::Create { number } }
}

/// A revision that pods are created from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Revision {
    /// The name, which is the label of its pods.
    pub(super) name: String,
    /// The data, which has the template of its pods.
    pub(super) data: RevisionData,
}

impl Revision {
    /// An existing revision; absent if it has no data, which the API server rejects.
    pub(super) fn of(revision: &ControllerRevision) -> Option<Self> {
        Some(Self { name: revision.metadata.key.name().to_owned(), data: RevisionData::of_revision(revision)? })
    }
}

/// The two revisions of a rollout. They are the same at its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Revisions {
    /// That of the pods below the partition, and of those that are not yet replaced.
    pub(super) current: Revision,
    /// That of the template.
    pub(super) update: Revision,
    /// How often the name of a revision was taken.
    pub(super) collision_count: i32,
}

impl Revisions {
    /// Those that the status names, without their data, for a stateful set that creates no pods.
    pub(super) fn of_status(set: &StatefulSet) -> Self {
        let status = &set.status;
        let named = |name: &str| Revision { name: name.to_owned(), data: RevisionData::empty() };
        Self {
            current: named(&status.current_revision),
            update: named(&status.update_revision),
            collision_count: status.collision_count.unwrap_or(0),
        }
    }

    /// The revisions of a stateful set whose template has the revision `update`.
    ///
    /// The current revision is that of the status, or `update` if there is none.
    pub(super) fn new(
        set: &StatefulSet,
        revisions: &[Arc<ControllerRevision>],
        update: Revision,
        collision_count: i32,
    ) -> Self {
        let named = |revision: &&Arc<ControllerRevision>| set.status.current_revision == revision.metadata.key.name();
        let current = revisions.iter().find(named).and_then(|revision| Revision::of(revision));
        Self { current: current.unwrap_or_else(|| update.clone()), update, collision_count }
    }
}

/// The name, labels and number of a new revision.
///
/// The label has the hash for the collision count of the status, also after collisions, as upstream.
pub(super) fn new_revision<'a>(
    set: &'a StatefulSet,
    data: &'a RevisionData,
    name: &'a str,
    hash: &'a str,
    number: i64,
) -> NewRevision<'a> {
    let labels: BTreeMap<_, _> = set.template_labels.iter().chain([(REVISION_HASH, hash)]).collect();
    let annotations = set.raw(&["metadata", "annotations"]);
    NewRevision { owner: Owner::of(set), name, labels, annotations, data, revision: number }
}

/// The hash of the data, for a collision count of the stateful set.
pub(super) fn hash(data: &RevisionData, collision_count: i32) -> String {
    revision_hash(data, Some(collision_count))
}

/// The revisions beyond the history limit, oldest first. Those that a pod has, and the current and the update revision,
/// do not count.
pub(super) fn beyond_history_limit<'a>(
    set: &StatefulSet,
    revisions: &'a [Arc<ControllerRevision>],
    is_live: impl Fn(&ControllerRevision) -> bool + 'a,
) -> Vec<&'a Arc<ControllerRevision>> {
    let unused = revisions.iter().filter(|revision| !is_live(revision)).count();
    // A negative limit keeps all.
    let surplus = usize::try_from(set.revision_history_limit).map_or(0, |limit| unused.saturating_sub(limit));
    oldest_unused(revisions, is_live, surplus).collect()
}
