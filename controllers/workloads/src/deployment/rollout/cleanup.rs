//! Which old sets are deleted, so that only so many are kept to roll back to.

use super::SetCount;

/// The indices of the old sets to delete: of all but the latest `limit` those that can go.
///
/// The latest are those of the highest revision; where revisions are equal, the newest. A set that cannot go, because
/// it has or wants replicas or its status is behind, counts among the oldest and is not replaced by another one. No
/// limit, or the largest number, keeps all.
///
/// # Upstream
/// `cleanupDeployment`. A revision that is no number is taken for none, where upstream compares ages in a way that is
/// no order.
pub(crate) fn plan(old: &[SetCount<'_>], limit: Option<i32>) -> Vec<usize> {
    let Some(limit) = limit.filter(|&limit| limit != i32::MAX) else { return Vec::new() };
    let mut kept: Vec<_> = old.iter().filter(|set| !set.terminating).collect();
    kept.sort_by(|a, b| a.revision.cmp(&b.revision).then_with(|| a.by_age(b)));
    let excess = kept.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    kept.iter().take(excess).filter(|set| can_go(set)).map(|set| set.index).collect()
}

fn can_go(set: &SetCount<'_>) -> bool {
    set.desired == 0 && set.actual == 0 && set.observed
}
