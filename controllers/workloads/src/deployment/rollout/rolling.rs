//! Rolling update: the new set grows by the surge, old ones shrink by what availability allows.

use super::{Limits, Scale, SetCount, Why, size, total_desired};

/// The next step of a rolling update: either the new set changes, or old ones shrink.
///
/// A set may shrink twice in one plan, first by what is unavailable and then by what is spare; the second starts from
/// the first's result.
///
/// # Guarantees
/// All sets together never grow beyond [`Limits::max_total`], and no plan takes what is available below
/// [`Limits::min_available`], whatever statuses are behind.
///
/// # Upstream
/// `rolloutRolling`. Where a status still counts available replicas that are on their way out, upstream may take them
/// for safe and let an old set shrink below availability; here they do not count.
pub(crate) fn plan(new: &SetCount<'_>, old: &[SetCount<'_>], limits: &Limits) -> Vec<Scale> {
    match resize_new(new, old, limits) {
        Some(scale) => vec![scale],
        None => shrink_old(new, old, limits),
    }
}

/// The size with which a new set is created.
pub(crate) fn first_size(old: &[SetCount<'_>], limits: &Limits) -> i32 {
    grown(0, old, limits)
}

fn resize_new(new: &SetCount<'_>, old: &[SetCount<'_>], limits: &Limits) -> Option<Scale> {
    if new.desired > limits.replicas {
        return Some(new.resize(limits.replicas, Why::TooLarge));
    }
    let to = grown(new.desired, old, limits);
    (to != new.desired).then(|| new.resize(to, Why::Surge))
}

/// `desired + min(max_total − all, replicas − desired)`, where nothing is taken back if there are too many.
///
/// With 10 replicas, a surge of 3, 8 old replicas and 3 new ones: `3 + min(13 − 11, 10 − 3) = 5`.
fn grown(desired: i32, old: &[SetCount<'_>], limits: &Limits) -> i32 {
    let desired = i64::from(desired);
    let room = i64::from(limits.max_total()) - desired - total_desired(old);
    let missing = i64::from(limits.replicas) - desired;
    size(desired + room.min(missing).max(0))
}

/// Takes `all − min_available − (unavailable of the new set)` from old sets: first what is unavailable, then the rest,
/// of the oldest first.
///
/// With 10 replicas of which 2 may be unavailable, a surge of 3, and 5 new pods that crash beside 8 old ones:
/// `13 − 8 − 5 = 0`, also when one of the old pods is lost. If that old set then becomes the new one again, it is
/// `13 − 8 − 1 = 4`: four of the crashing pods go. If a third template comes instead, it is `13 − 8 − 0 = 5`.
fn shrink_old(new: &SetCount<'_>, old: &[SetCount<'_>], limits: &Limits) -> Vec<Scale> {
    let all = total_desired(old) + i64::from(new.desired);
    let new_unavailable = i64::from(new.desired) - new.lasting();
    let mut budget = all - i64::from(limits.min_available()) - new_unavailable;

    let mut active: Vec<_> = old.iter().copied().filter(SetCount::is_active).collect();
    active.sort_by(SetCount::by_age);
    let mut scales = Vec::new();
    for set in &mut active {
        if budget <= 0 {
            return scales;
        }
        if set.available > set.desired {
            // Its status is behind its size. Upstream fails here, silently, and waits for the status.
            return scales;
        }
        let unavailable = i64::from(set.desired) - set.lasting();
        budget -= shrink(set, unavailable.min(budget), Why::Unavailable, &mut scales);
    }
    // With all that is unavailable gone, the budget is what is available beyond the minimum.
    for set in &mut active {
        budget -= shrink(set, budget.min(set.desired.into()), Why::Spare, &mut scales);
    }
    scales
}

fn shrink(set: &mut SetCount<'_>, by: i64, why: Why, scales: &mut Vec<Scale>) -> i64 {
    if by > 0 {
        let to = size(i64::from(set.desired) - by);
        scales.push(set.resize(to, why));
        set.desired = to;
    }
    by
}
