//! Proportional scaling: a change of the deployment's size must not hasten a rollout.

use super::{Limits, Scale, SetCount, Why, size, total_desired};

/// Whether the deployment's size has changed since its active sets were last scaled.
///
/// # Upstream
/// `isScalingEvent`. A set without the annotation says nothing.
pub(crate) fn is_scaling_event<'a, 's: 'a>(sets: impl IntoIterator<Item = &'a SetCount<'s>>, replicas: i32) -> bool {
    sets.into_iter()
        .filter(|set| set.is_active())
        .any(|set| set.desired_annotation.is_some_and(|desired| desired != replicas))
}

/// The sizes of all sets after the deployment's size has changed, or while it is paused.
///
/// With at most one active set, that one (or else the new, or else the latest) gets all. Where the new set already has
/// and serves all, old ones get nothing, the newest first. Otherwise, and only in a rolling update, each active set gets its share, and
/// the largest what is left over by rounding. `reported` is the deployment's `status.replicas`.
///
/// # Guarantees
/// With shares, all sets together have [`Limits::max_total`] afterwards, or 0 with a deployment of 0. A set without
/// replicas gets none.
///
/// # Upstream
/// `scale`. Where there are more replicas than the annotations allow, as after an adoption, the largest set may not have
/// as many as it should give up: upstream stops at 0 and leaves too many; here the next in size gives up the rest.
pub(crate) fn plan(new: Option<&SetCount<'_>>, old: &[SetCount<'_>], limits: &Limits, reported: i32) -> Vec<Scale> {
    let active: Vec<_> = old.iter().chain(new).copied().filter(SetCount::is_active).collect();
    let whole = |set: &SetCount<'_>, why| {
        if set.desired == limits.replicas { Vec::new() } else { vec![set.resize(limits.replicas, why)] }
    };
    match active.as_slice() {
        [] => {
            let latest = new.or_else(|| old.iter().max_by(|a, b| a.by_age(b)));
            latest.map_or_else(Vec::new, |set| whole(set, Why::Latest))
        }
        [only] => whole(only, Why::OnlyActive),
        _ if new.is_some_and(|new| is_saturated(new, limits)) => {
            let mut gone: Vec<_> = old.iter().filter(|set| set.is_active()).collect();
            gone.sort_by(|a, b| b.by_age(a));
            gone.iter().map(|set| set.resize(0, Why::Saturated)).collect()
        }
        _ if limits.rolling => shares(active, limits, reported),
        _ => Vec::new(),
    }
}

/// Whether the set has all replicas, knows that these are all, and all are available.
fn is_saturated(new: &SetCount<'_>, limits: &Limits) -> bool {
    new.desired == limits.replicas
        && new.available == limits.replicas
        && new.desired_annotation == Some(limits.replicas)
}

/// Gives each set its [`share`], one after the other and never more than what is to be given in all.
///
/// From 10 replicas with a surge of 3 to 50 with a surge of 6, and sets of 8 and 5: 43 are to be given. The larger
/// gets `round(8 × 56 ÷ 13) − 8 = 26`, the other `round(5 × 56 ÷ 13) − 5 = 17`, and nothing is left over: 34 and 22.
fn shares(mut active: Vec<SetCount<'_>>, limits: &Limits, reported: i32) -> Vec<Scale> {
    let allowed = if limits.replicas > 0 { i64::from(limits.max_total()) } else { 0 };
    let missing = allowed - total_desired(&active);
    // The largest first. Of equal ones the newest grows first, and the oldest shrinks first.
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
    // What rounding leaves over goes to the largest.
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
        .map(|(set, count)| set.resize(size(count), Why::Share))
        .zip(&active)
        .filter(|(scale, set)| scale.from != scale.to || !is_current(set))
        .map(|(scale, _)| scale)
        .collect()
}

/// `round(desired × max_total ÷ max_total before) − desired`: what the set gains, or loses if negative.
///
/// With a set of 50 in a deployment that had at most 110 and may now have 130: `round(50 × 130 ÷ 110) − 50 = 9`.
///
/// What there was at most is in the set's annotation; where that is missing, 0 or no number, the deployment's reported
/// replicas stand in, and where there are none either, the set stays as it is.
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
    // Halves go up. Twice the product of two positive 32-bit numbers and one more of them still fit.
    (2 * product + before).div_euclid(2 * before) - desired
}
