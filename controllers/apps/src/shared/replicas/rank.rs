//! The order in which pods are deleted.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{Pod, PodPhase};
use kcm_framework::api::{InternedStr, ObjectKey, Uid};

use super::gates::Gates;

/// The cost of the deletion of a pod: of two pods the one with the lower cost is deleted first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The number of active pods of related objects on each node; pods without a node count together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Occupancy(BTreeMap<Option<InternedStr>, usize>);

impl Occupancy {
    /// Counts the active pods of `pods`, which must be distinct.
    pub(super) fn of<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> Self {
        let mut on_node = BTreeMap::new();
        for pod in pods.into_iter().filter(|pod| pod.is_active()) {
            *on_node.entry(pod.node_name.clone()).or_default() += 1;
        }
        Self(on_node)
    }

    fn colocated(&self, pod: &Pod) -> usize {
        self.0.get(&pod.node_name).copied().unwrap_or(0)
    }
}

/// The rank of a pod for deletion. Fields compare from top to bottom; the lowest rank is deleted first.
///
/// # Upstream
/// The rules of `controller.ActivePodsWithRanks`, in their order. There the uid decides between two pods of one age class
/// if their ages differ, and later rules decide if the ages are equal. That is not an order (three pods can precede each
/// other in a circle), and the result of `sort.Sort` depends on the input order. Here pods of one age class are equal in
/// that rule, later rules decide, and the uid decides last. Every result is one that the rules of upstream allow for any
/// two pods that differ in an earlier rule, and it does not depend on the input order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct DeletionRank<'a> {
    assigned: bool,
    phase: Phase,
    ready: bool,
    cost: i32,
    colocated: Reverse<usize>,
    ready_for: Age,
    restarts: Reverse<i32>,
    sidecar_restarts: Reverse<i32>,
    created: Age,
    uid: &'a Uid,
    // Decides only between pods without a uid, which the API server does not create.
    key: &'a ObjectKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Pending,
    Unknown,
    Running,
}

/// An age to the nearest lower power of two nanoseconds.
///
/// Two pods of 2 and 3 hours are equally old, one of 1 minute is younger. Newer pods are deleted first; among old ones the
/// uid decides, so that deletions spread over failure domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Unknown,
    Zero,
    PowerOfTwo(u32),
}

impl Age {
    fn at(now: Timestamp, since: Option<Timestamp>) -> Self {
        let Some(since) = since else { return Self::Unknown };
        match u128::try_from(now.duration_since(since).as_nanos()) {
            Ok(age) => age.checked_ilog2().map_or(Self::Zero, Self::PowerOfTwo),
            Err(_) => Self::Zero,
        }
    }
}

impl<'a> DeletionRank<'a> {
    fn of(pod: &'a Pod, occupancy: &Occupancy, gates: Gates, now: Timestamp) -> Self {
        Self {
            assigned: pod.node_name.is_some(),
            phase: match pod.phase {
                PodPhase::Running => Phase::Running,
                PodPhase::Unknown => Phase::Unknown,
                // Upstream ranks unknown phases as pending.
                PodPhase::Pending | PodPhase::Succeeded | PodPhase::Failed | PodPhase::Other | _ => Phase::Pending,
            },
            ready: pod.is_ready(),
            cost: if gates.pod_deletion_cost { deletion_cost(pod) } else { 0 },
            colocated: Reverse(occupancy.colocated(pod)),
            // The same for all pods that are not ready: decides between ready ones only.
            ready_for: Age::at(now, pod.ready_since()),
            restarts: Reverse(pod.restarts),
            sidecar_restarts: Reverse(pod.sidecar_restarts),
            created: Age::at(now, pod.metadata.creation_timestamp),
            uid: &pod.metadata.uid,
            key: &pod.metadata.key,
        }
    }
}

/// The deletion cost of a pod; 0 without the annotation, or if it is malformed.
///
/// # Upstream
/// `helper.GetDeletionCostFromPodAnnotations`: no plus sign, and no leading zero except after a minus sign.
fn deletion_cost(pod: &Pod) -> i32 {
    let Some(text) = pod.metadata.annotations.get(DELETION_COST) else { return 0 };
    match text.as_bytes() {
        [b'0'] | [b'-' | b'1'..=b'9', ..] => text.parse().unwrap_or(0),
        _ => 0,
    }
}

/// The pods in the order of their deletion.
///
/// # Guarantees
/// A total order: the result does not depend on the input order.
pub(super) fn rank(pods: &[Arc<Pod>], occupancy: &Occupancy, gates: Gates, now: Timestamp) -> Vec<Arc<Pod>> {
    let mut ranked: Vec<_> = pods.iter().map(|pod| (DeletionRank::of(pod, occupancy, gates, now), pod)).collect();
    ranked.sort_by(|(a, _), (b, _)| a.cmp(b));
    ranked.into_iter().map(|(_, pod)| Arc::clone(pod)).collect()
}

/// The age of each ready pod among the first `going` of `ranked`, divided by that of the youngest ready pod of `ranked`.
///
/// # Upstream
/// The observations of `replicaset_controller_sorting_deletion_age_ratio`, which are whole numbers. If the youngest pod is
/// less than a millisecond old, nothing is observed; upstream divides by zero and panics.
pub(super) fn age_ratios(ranked: &[Arc<Pod>], going: usize, now: Timestamp) -> Vec<i64> {
    let age = |pod: &Arc<Pod>| {
        let created = pod.metadata.creation_timestamp.filter(|_| pod.is_ready())?;
        i64::try_from(now.duration_since(created).as_millis()).ok()
    };
    let Some(youngest) = ranked.iter().filter_map(age).min() else { return Vec::new() };
    ranked.iter().take(going).filter_map(age).filter_map(|age| age.checked_div(youngest)).collect()
}
