//! The plan for a budget: its status, and when it has to be computed again.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::{Pod, PodDisruptionBudgetStatus, PodDisruptionBudgetView};
use kcm_framework::api::{IntOrPercent, InvalidPercent, Rounding, Uid};

/// How long a pod whose eviction was admitted may take to be deleted. After it the pod counts again.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// How many pods of a budget there should be, and how many have to be healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// How many pods there should be.
    pub(super) expected: i32,
    /// How many of them have to be healthy.
    pub(super) healthy: i32,
}

/// The plan for a budget.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// The status, with the conditions that it has.
    pub(super) status: PodDisruptionBudgetStatus,
    /// The pods that were not deleted although their eviction was admitted.
    pub(super) not_deleted: Vec<Arc<Pod>>,
    /// When the next admitted eviction times out.
    pub(super) recheck_at: Option<Timestamp>,
}

/// Whether a budget is relative to the replicas of the controllers of its pods.
///
/// A number in `minAvailable` is relative to nothing: the pods that there are count as expected.
pub(super) const fn counts_replicas(budget: &PodDisruptionBudgetView) -> bool {
    match (&budget.max_unavailable, &budget.min_available) {
        (None, Some(IntOrPercent::Int(_)) | None) => false,
        (Some(_), _) | (None, Some(IntOrPercent::Percent(_) | IntOrPercent::Invalid(_))) => true,
    }
}

/// What a budget wants of `pods` pods, whose controllers should have so many `replicas` each.
///
/// For example, `maxUnavailable: 30%` of two controllers with 3 and 4 replicas: of 7 pods 3 may be unavailable, as 2.1 is
/// rounded up, so that 4 have to be healthy.
pub(super) fn wanted(
    budget: &PodDisruptionBudgetView,
    pods: usize,
    replicas: &BTreeMap<Uid, i32>,
) -> Result<Wanted, InvalidPercent> {
    let sum: i64 = replicas.values().copied().map(i64::from).sum();
    let of_controllers = i32::try_from(sum).unwrap_or(i32::MAX);
    match (&budget.max_unavailable, &budget.min_available) {
        (Some(unavailable), _) => {
            let unavailable = unavailable.of(of_controllers, Rounding::Up)?;
            Ok(Wanted { expected: of_controllers, healthy: of_controllers.saturating_sub(unavailable).max(0) })
        }
        (None, Some(IntOrPercent::Int(healthy))) => Ok(Wanted { expected: count(pods), healthy: *healthy }),
        (None, Some(available @ (IntOrPercent::Percent(_) | IntOrPercent::Invalid(_)))) => {
            Ok(Wanted { expected: of_controllers, healthy: available.of(of_controllers, Rounding::Up)? })
        }
        (None, None) => Ok(Wanted { expected: 0, healthy: 0 }),
    }
}

/// Plans for a budget of that `generation` and its pods at `now`.
///
/// A pod whose eviction was admitted does not count as healthy until it is deleted, or two minutes are over: the API
/// server has admitted its eviction already, and the cache may show the deletion later than the budget.
///
/// Without any expected pod nothing may be evicted, so that the first pods are safe before they are counted.
pub(super) fn plan(
    present: &PodDisruptionBudgetStatus,
    generation: i64,
    pods: &[Arc<Pod>],
    wanted: Wanted,
    now: Timestamp,
) -> Plan {
    let mut status = present.clone();
    status.disrupted_pods.clear();
    let (mut healthy, mut not_deleted, mut recheck_at) = (0_usize, Vec::new(), None::<Timestamp>);
    for pod in pods.iter().filter(|pod| !pod.metadata.is_terminating()) {
        let name = pod.metadata.key.name();
        if let Some((name, since)) = present.disrupted_pods.get_key_value(name) {
            let until = since.unwrap_or(Timestamp::MIN).saturating_add(DELETION_TIMEOUT);
            let until = until.expect("a duration without months adds to any time");
            if until > now {
                status.disrupted_pods.insert(name.clone(), *since);
                recheck_at = Some(recheck_at.map_or(until, |earlier| earlier.min(until)));
                continue;
            }
            not_deleted.push(Arc::clone(pod));
        }
        healthy += usize::from(pod.is_ready());
    }
    status.current_healthy = count(healthy);
    status.desired_healthy = wanted.healthy;
    status.expected_pods = wanted.expected;
    let allowed = status.current_healthy.saturating_sub(wanted.healthy).max(0);
    status.disruptions_allowed = if wanted.expected > 0 { allowed } else { 0 };
    status.observed_generation = generation;
    Plan { status, not_deleted, recheck_at }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
