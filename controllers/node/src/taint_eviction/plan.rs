//! The plan for a Pod: whether and when the taints of its Node evict it. Pure.

use std::time::Duration;

use kcm_framework::api::scheduling::{ComparisonOperators, Taint, Toleration};
use tokio::time::Instant;

use crate::shared::{NOT_READY, UNREACHABLE};

/// An eviction that is due at a time.
///
/// Times are read from the timer and not from the wall clock, which may jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending {
    /// Time at which the Pod was first seen to tolerate its taints for a limited time.
    pub(super) start: Instant,
    /// Time for which the taints of the Node's health had been there at the start.
    pub(super) elapsed: Duration,
    /// Time of the eviction.
    pub(super) due: Instant,
}

impl Pending {
    const fn beginning(now: Instant) -> Self {
        Self { start: now, elapsed: Duration::ZERO, due: now }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// The Pod is not evicted.
    Stay(StayReason),
    /// The Pod is evicted later, unless something changes.
    Wait(Pending, WaitReason),
    /// The Pod is evicted now.
    Evict(Pending),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StayReason {
    /// The Node has no taint with the effect `NoExecute`.
    NoTaint,
    /// The Pod tolerates all taints for ever.
    ToleratedForEver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// The tolerated time is not over.
    Tolerated,
    /// The taint is one of the Node's health, and this process has not watched for long enough.
    RecentlyStarted,
}

/// The times at which a plan is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) now: Instant,
    /// Time before which taints of the Node's health evict nothing.
    pub(super) trusted_from: Instant,
}

/// Plans for a Pod with these tolerations on a Node with these taints.
///
/// For each taint the first toleration that tolerates it counts (upstream: `GetMatchingTolerations`), and the shortest
/// time of these. A pending eviction is never moved to an earlier time, as upstream; it moves to a later time if the
/// tolerated time grows. A taint that is not tolerated evicts at once.
///
/// Example: a Pod tolerates two taints for 30 s and 300 s from second 10. It is due at second 40. If the first taint is
/// removed at second 20, it is due at second 310.
pub(super) fn plan(
    taints: &[Taint],
    tolerations: &[Toleration],
    comparison: ComparisonOperators,
    pending: Option<Pending>,
    times: Times,
) -> Plan {
    let Times { now, trusted_from } = times;
    let mut evicting = taints.iter().filter(|taint| taint.evicts()).peekable();
    if evicting.peek().is_none() {
        return Plan::Stay(StayReason::NoTaint);
    }
    // Of the taints of health and of all others: the tolerated time.
    let (mut of_health, mut of_others) = (None, None);
    for taint in evicting {
        let tolerated = match tolerations.iter().find(|toleration| toleration.tolerates(taint, comparison)) {
            None => Some(Tolerated::NotAtAll),
            Some(toleration) => toleration.toleration_seconds.map(Tolerated::for_seconds),
        };
        let shortest = if is_of_health(taint) { &mut of_health } else { &mut of_others };
        *shortest = [*shortest, tolerated].into_iter().flatten().min();
    }
    if of_others == Some(Tolerated::NotAtAll) {
        // A failed eviction keeps the time from which it is overdue.
        return Plan::Evict(pending.filter(|pending| pending.due <= now).unwrap_or_else(|| Pending::beginning(now)));
    }
    let begun = pending.unwrap_or_else(|| Pending::beginning(now));
    let ends = |tolerated: Tolerated, elapsed: Duration| match tolerated {
        Tolerated::NotAtAll => Some(now),
        // A time beyond the clock never comes.
        Tolerated::For(time) => begun.start.checked_add(time.saturating_sub(elapsed)),
    };
    let of_others = of_others.and_then(|tolerated| ends(tolerated, Duration::ZERO));
    let unbounded = of_health.and_then(|tolerated| ends(tolerated, begun.elapsed));
    let of_health_due = unbounded.map(|ends| ends.max(trusted_from));
    let Some(due) = [of_others, of_health_due].into_iter().flatten().min() else {
        return Plan::Stay(StayReason::ToleratedForEver);
    };
    let is_untolerated = of_health == Some(Tolerated::NotAtAll);
    // The earlier time of a pending eviction counts only among times of tolerance.
    let due = pending.filter(|_| !is_untolerated).map_or(due, |pending| pending.due.max(due));
    let planned = Pending { due, ..begun };
    if due <= now {
        return Plan::Evict(planned);
    }
    let is_held_back = due == trusted_from && unbounded.is_some_and(|ends| ends < trusted_from);
    Plan::Wait(planned, if is_held_back { WaitReason::RecentlyStarted } else { WaitReason::Tolerated })
}

/// Time for which a taint is tolerated. In the order of the evictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tolerated {
    NotAtAll,
    For(Duration),
}

impl Tolerated {
    fn for_seconds(seconds: i64) -> Self {
        Self::For(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }
}

/// Returns `true` if the node lifecycle controller sets the taint, with the time at which it was added.
pub(super) fn is_of_health(taint: &Taint) -> bool {
    [NOT_READY, UNREACHABLE].contains(&&*taint.key)
}

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(self, now: Instant) -> String {
        let seconds = |pending: Pending| pending.due.saturating_duration_since(now).as_secs();
        match self {
            Self::Stay(StayReason::NoTaint) => "keeps the pod, whose node has no taint that evicts".to_owned(),
            Self::Stay(StayReason::ToleratedForEver) => {
                "keeps the pod, which tolerates the taints of its node for ever".to_owned()
            }
            Self::Wait(pending, WaitReason::Tolerated) => {
                format!("keeps the pod for {} s, for which it tolerates the taints of its node", seconds(pending))
            }
            Self::Wait(pending, WaitReason::RecentlyStarted) => format!(
                "keeps the pod for {} s, as nodes have not been watched for long enough to trust their taints",
                seconds(pending)
            ),
            Self::Evict(_) => "evicts the pod, which does not tolerate the taints of its node any longer".to_owned(),
        }
    }
}
