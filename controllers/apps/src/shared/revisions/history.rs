//! The order of the revisions of an owner.

use std::sync::Arc;

use kcm_framework::api::views::ControllerRevision;

/// Sorts revisions from the oldest to the last: by number, then by age and name.
pub(crate) fn sort(revisions: &mut [Arc<ControllerRevision>]) {
    revisions.sort_unstable_by(|a, b| {
        let (a_meta, b_meta) = (&a.metadata, &b.metadata);
        let numbers = a.revision.cmp(&b.revision);
        numbers
            .then_with(|| a_meta.creation_timestamp.cmp(&b_meta.creation_timestamp))
            .then_with(|| a_meta.key.cmp(&b_meta.key))
    });
}

/// The number after those of all revisions; 1 for the first. Negative numbers count as 0.
pub(crate) fn next_revision(revisions: &[Arc<ControllerRevision>]) -> i64 {
    revisions.iter().map(|revision| revision.revision).max().unwrap_or(0).max(0).saturating_add(1)
}

/// The oldest `count` of sorted revisions that are not live: those that the history limit lets go.
pub(crate) fn oldest_unused<'a>(
    revisions: &'a [Arc<ControllerRevision>],
    is_live: impl Fn(&ControllerRevision) -> bool + 'a,
    count: usize,
) -> impl Iterator<Item = &'a Arc<ControllerRevision>> {
    revisions.iter().filter(move |revision| !is_live(revision)).take(count)
}
