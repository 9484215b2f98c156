//! Rolling update: the new replica set is scaled up as the surge allows, old ones are scaled down as availability allows.

use super::{Limits, Scale, ScaleReason, SetCount, size, total_desired};

/// The next step of a rolling update: either the new replica set is scaled, or old ones are scaled down.
///
/// An old replica set may be scaled down twice in one plan: first by its unavailable replicas, then by those that
/// availability does not need. The second scaling starts from the result of the first.
///
/// # Guarantees
/// The sum of replicas never grows beyond [`Limits::max_total`], and no plan takes the available replicas below
/// [`Limits::min_available`], even with a stale status.
///
/// # Upstream
/// `rolloutRolling`. A stale status may count available replicas that are being deleted. Upstream counts them and may
/// scale an old replica set down below availability; here they do not count.
pub(crate) fn plan(new: &SetCount<'_>, old: &[SetCount<'_>], limits: &Limits) -> Vec<Scale> {
    match resize_new(new, old, limits) {
        Some(scale) => vec![scale],
        None => shrink_old(new, old, limits),
    }
}

/// The replicas with which the new replica set is created.
pub(crate) fn first_size(old: &[SetCount<'_>], limits: &Limits) -> i32 {
    grown(0, old, limits)
}

fn resize_new(new: &SetCount<'_>, old: &[SetCount<'_>], limits: &Limits) -> Option<Scale> {
    if new.desired > limits.replicas {
        return Some(new.resize(limits.replicas, ScaleReason::TooLarge));
    }
    let to = grown(new.desired, old, limits);
    (to != new.desired).then(|| new.resize(to, ScaleReason::Surge))
}

/// `desired + min(max_total − all, replicas − desired)`, and at least `desired`.
///
/// With 10 replicas, a surge of 3, 8 old replicas and 3 new ones: `3 + min(13 − 11, 10 − 3) = 5`.
fn grown(desired: i32, old: &[SetCount<'_>], limits: &Limits) -> i32 {
    let desired = i64::from(desired);
    let room = i64::from(limits.max_total()) - desired - total_desired(old);
    let missing = i64::from(limits.replicas) - desired;
    size(desired + room.min(missing).max(0))
}

/// Takes `all − min_available − (unavailable of the new replica set)` from old replica sets: first unavailable replicas,
/// then available ones, each from the oldest replica set first.
///
/// With 10 replicas of which 2 may be unavailable, a surge of 3, and 5 new pods that crash beside 8 old ones:
/// `13 − 8 − 5 = 0`, also when one of the old pods is lost. If that old replica set then becomes the new one again, it is
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
            // The status is stale. Upstream fails here without an event, and waits for the status.
            return scales;
        }
        let unavailable = i64::from(set.desired) - set.lasting();
        budget -= shrink(set, unavailable.min(budget), ScaleReason::Unavailable, &mut scales);
    }
    // Without the unavailable replicas, the budget is the number of available replicas beyond the minimum.
    for set in &mut active {
        budget -= shrink(set, budget.min(set.desired.into()), ScaleReason::Spare, &mut scales);
    }
    scales
}

fn shrink(set: &mut SetCount<'_>, by: i64, reason: ScaleReason, scales: &mut Vec<Scale>) -> i64 {
    if by > 0 {
        let to = size(i64::from(set.desired) - by);
        scales.push(set.resize(to, reason));
        set.desired = to;
    }
    by
}
