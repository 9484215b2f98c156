//! Clean-up: deletes old replica sets beyond `revisionHistoryLimit`.

use super::SetCount;

/// The indices of the old replica sets to delete: of all but the latest `limit`, those that can be deleted.
///
/// The latest have the highest revisions; of equal revisions, the newest. A replica set with replicas, or with a stale
/// status, is not deleted, and no other one is deleted in its place. Without a limit, or with the largest number, none is
/// deleted.
///
/// # Upstream
/// `cleanupDeployment`. A revision that is not a number counts as 0, where the comparison of upstream is not an order.
pub(crate) fn plan(old: &[SetCount<'_>], limit: Option<i32>) -> Vec<usize> {
    let Some(limit) = limit.filter(|&limit| limit != i32::MAX) else { return Vec::new() };
    let mut kept: Vec<_> = old.iter().filter(|set| !set.terminating).collect();
    kept.sort_by(|a, b| a.revision.cmp(&b.revision).then_with(|| a.by_age(b)));
    let excess = kept.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    kept.iter().take(excess).filter(|set| can_be_deleted(set)).map(|set| set.index).collect()
}

fn can_be_deleted(set: &SetCount<'_>) -> bool {
    set.desired == 0 && set.actual == 0 && set.observed
}
