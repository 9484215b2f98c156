//! Proportional scaling: a change of `spec.replicas` during a rollout keeps the proportions of the replica sets.

use super::{Limits, Scale, ScaleReason, SetCount, size, total_desired};

/// Whether `spec.replicas` changed since the active replica sets were last scaled.
///
/// # Upstream
/// `isScalingEvent`. A replica set without the annotation does not count.
pub(crate) fn is_scaling_event<'a, 's: 'a>(sets: impl IntoIterator<Item = &'a SetCount<'s>>, replicas: i32) -> bool {
    sets.into_iter()
        .filter(|set| set.is_active())
        .any(|set| set.desired_annotation.is_some_and(|desired| desired != replicas))
}

/// Scales all replica sets after `spec.replicas` changed, or while the deployment is paused.
///
/// With at most one active replica set, that one gets all replicas; without any, the new one, or else the latest. If the
/// new replica set is saturated, old ones are scaled to 0, the newest first. Otherwise, and only in a rolling update, each
/// active replica set gets its proportion, and the largest the remainder of rounding. `reported` is the `status.replicas`
/// of the deployment.
///
/// # Guarantees
/// With proportions, the sum afterwards is [`Limits::max_total`], or 0 for a deployment of 0. A replica set without
/// replicas gets none.
///
/// # Upstream
/// `scale`. With more replicas than the annotations allow, as after an adoption, the largest replica set may have fewer
/// than must be removed from it. Upstream stops at 0 and leaves too many; here the next in size loses the rest.
pub(crate) fn plan(new: Option<&SetCount<'_>>, old: &[SetCount<'_>], limits: &Limits, reported: i32) -> Vec<Scale> {
    let active: Vec<_> = old.iter().chain(new).copied().filter(SetCount::is_active).collect();
    let whole = |set: &SetCount<'_>, reason| {
        if set.desired == limits.replicas { Vec::new() } else { vec![set.resize(limits.replicas, reason)] }
    };
    match active.as_slice() {
        [] => {
            let latest = new.or_else(|| old.iter().max_by(|a, b| a.by_age(b)));
            latest.map_or_else(Vec::new, |set| whole(set, ScaleReason::Latest))
        }
        [only] => whole(only, ScaleReason::OnlyActive),
        _ if new.is_some_and(|new| is_saturated(new, limits)) => {
            let mut gone: Vec<_> = old.iter().filter(|set| set.is_active()).collect();
            gone.sort_by(|a, b| b.by_age(a));
            gone.iter().map(|set| set.resize(0, ScaleReason::Saturated)).collect()
        }
        _ if limits.rolling => shares(active, limits, reported),
        _ => Vec::new(),
    }
}

/// Whether the replica set has all replicas, also by its annotation, and all are available.
fn is_saturated(new: &SetCount<'_>, limits: &Limits) -> bool {
    new.desired == limits.replicas
        && new.available == limits.replicas
        && new.desired_annotation == Some(limits.replicas)
}

/// Adds its [`share`] to each replica set, one after the other, and never more than the missing replicas in all.
///
/// From 10 replicas with a surge of 3 to 50 with a surge of 6, and replica sets of 8 and 5: 43 are missing. The larger
/// gets `round(8 × 56 ÷ 13) − 8 = 26`, the other `round(5 × 56 ÷ 13) − 5 = 17`, and no remainder is left: 34 and 22.
fn shares(mut active: Vec<SetCount<'_>>, limits: &Limits, reported: i32) -> Vec<Scale> {
    let allowed = if limits.replicas > 0 { i64::from(limits.max_total()) } else { 0 };
    let missing = allowed - total_desired(&active);
    // The largest first. Of equal ones the newest is scaled up first, and the oldest is scaled down first.
    active.sort_by(|a, b| {
        let age = a.by_age(b);
        b.desired.cmp(&a.desired).then(if missing < 0 { age } else { age.reverse() })
    });

    let mut left = missing;
    let mut sizes = Vec::with_capacity(active.len());
    for set in &active {
        let share = match left {
            0 => 0,
            _ if missing > 0 => share(set, limits, reported).min(left),
            _ => share(set, limits, reported).max(left),
        };
        sizes.push(i64::from(set.desired) + share);
        left -= share;
    }
    // The remainder of rounding goes to the largest.
    for count in &mut sizes {
        let leftover = left.max(-*count);
        *count += leftover;
        left -= leftover;
    }
    let is_current = |set: &SetCount<'_>| {
        set.desired_annotation == Some(limits.replicas) && set.max_annotation == Some(limits.max_total())
    };
    active
        .iter()
        .zip(sizes)
        .map(|(set, count)| set.resize(size(count), ScaleReason::Share))
        .zip(&active)
        .filter(|(scale, set)| scale.from != scale.to || !is_current(set))
        .map(|(scale, _)| scale)
        .collect()
}

/// `round(desired × max_total ÷ max_total before) − desired`: the change of the replicas of the replica set.
///
/// For a replica set of 50 in a deployment that had at most 110 and may now have 130: `round(50 × 130 ÷ 110) − 50 = 9`.
///
/// The earlier maximum is an annotation of the replica set. If that is missing, 0 or not a number, `status.replicas` of the
/// deployment is used, and if that is 0 too, the replica set is not scaled.
///
/// # Upstream
/// `getReplicaSetFraction`, where `desired × max_total` is cut to 32 bits.
fn share(set: &SetCount<'_>, limits: &Limits, reported: i32) -> i64 {
    let desired = i64::from(set.desired);
    if limits.replicas == 0 {
        return -desired;
    }
    let before = set.max_annotation.filter(|&max| max != 0).unwrap_or(reported);
    if before == 0 {
        return 0;
    }
    let (product, before) = (desired * i64::from(limits.max_total()), i64::from(before));
    // Halves are rounded up. Twice the product of two positive 32-bit numbers and one more of them still fit.
    (2 * product + before).div_euclid(2 * before) - desired
}
