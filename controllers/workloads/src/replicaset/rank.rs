//! Which pods go first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::views::{Pod, PodPhase};
use kcm_api::{InternedStr, ObjectKey, Uid};

use super::settings::Settings;

/// Says how dear a pod is: of two pods the one with the lower cost goes first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// How many active pods of related replica sets each node has; those without a node count together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Occupancy(BTreeMap<Option<InternedStr>, usize>);

impl Occupancy {
    /// Counts the active ones among `pods`, each of which is to be given once.
    pub(super) fn of<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> Self {
        let mut on_node = BTreeMap::new();
        for pod in pods.into_iter().filter(|pod| pod.is_active()) {
            *on_node.entry(pod.node_name.clone()).or_default() += 1;
        }
        Self(on_node)
    }

    fn beside(&self, pod: &Pod) -> usize {
        self.0.get(&pod.node_name).copied().unwrap_or(0)
    }
}

/// The place of a pod in the order of deletion: fields compare from top to bottom, the lesser pod goes first.
///
/// # Upstream
/// The rules of `controller.ActivePodsWithRanks`, in their order. There a uid decides between two pods of one age
/// class as soon as their ages differ, but later rules decide if the ages are equal; that is no order (three pods
/// can go before each other in a circle), and what `sort.Sort` makes of it depends on where it begins. Here pods of
/// one age class are equal in that rule, later rules decide, and the uid only at the end: every result of ours is
/// one that upstream's rules allow between any two pods that differ in an earlier rule, and it is always the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    assigned: bool,
    phase: Phase,
    ready: bool,
    cost: i32,
    beside: Reverse<usize>,
    ready_for: Age,
    restarts: Reverse<i32>,
    sidecar_restarts: Reverse<i32>,
    created: Age,
    uid: &'a Uid,
    // Only pods without a uid come this far, which the API server does not make.
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
/// Two pods of 2 and 3 hours are equally old, one of 1 minute is younger: newer pods go first, but which of many
/// old ones goes is left to chance, so that deletions spread over failure domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Unknown,
    Unborn,
    PowerOfTwo(u32),
}

impl Age {
    fn at(now: Timestamp, since: Option<Timestamp>) -> Self {
        let Some(since) = since else { return Self::Unknown };
        match u128::try_from(now.duration_since(since).as_nanos()) {
            Ok(age) => age.checked_ilog2().map_or(Self::Unborn, Self::PowerOfTwo),
            Err(_) => Self::Unborn,
        }
    }
}

impl<'a> Place<'a> {
    fn of(pod: &'a Pod, occupancy: &Occupancy, settings: Settings, now: Timestamp) -> Self {
        Self {
            assigned: pod.node_name.is_some(),
            phase: match pod.phase {
                PodPhase::Running => Phase::Running,
                PodPhase::Unknown => Phase::Unknown,
                // Upstream looks phases up in a map, and one that is not there is as pending.
                PodPhase::Pending | PodPhase::Succeeded | PodPhase::Failed | PodPhase::Other | _ => Phase::Pending,
            },
            ready: pod.is_ready(),
            cost: if settings.pod_deletion_cost { deletion_cost(pod) } else { 0 },
            beside: Reverse(occupancy.beside(pod)),
            // The same for all pods that are not ready, so that it decides only between ready ones.
            ready_for: Age::at(now, pod.ready_since()),
            restarts: Reverse(pod.restarts),
            sidecar_restarts: Reverse(pod.sidecar_restarts),
            created: Age::at(now, pod.metadata.creation_timestamp),
            uid: &pod.metadata.uid,
            key: &pod.metadata.key,
        }
    }
}

/// The cost of deleting a pod; 0 where none is given or it is not well formed.
///
/// # Upstream
/// `helper.GetDeletionCostFromPodAnnotations`: no plus sign and no leading zero, but a minus sign excuses the latter.
fn deletion_cost(pod: &Pod) -> i32 {
    let Some(text) = pod.metadata.annotations.get(DELETION_COST) else { return 0 };
    match text.as_bytes() {
        [b'0'] | [b'-' | b'1'..=b'9', ..] => text.parse().unwrap_or(0),
        _ => 0,
    }
}

/// The pods in the order in which they are to be deleted, the first to go in front.
///
/// # Guarantees
/// A total order: the result does not depend on the order in which the pods are given.
pub(super) fn rank(pods: &[Arc<Pod>], occupancy: &Occupancy, settings: Settings, now: Timestamp) -> Vec<Arc<Pod>> {
    let mut places: Vec<_> = pods.iter().map(|pod| (Place::of(pod, occupancy, settings, now), pod)).collect();
    places.sort_by(|(a, _), (b, _)| a.cmp(b));
    places.into_iter().map(|(_, pod)| Arc::clone(pod)).collect()
}

/// How many times as old as the youngest ready pod of `ranked` each ready one of its first `going` is.
///
/// # Upstream
/// What `replicaset_controller_sorting_deletion_age_ratio` observes: whole numbers. Where the youngest pod is not a
/// millisecond old there is nothing to divide by, and nothing is observed; upstream panics.
pub(super) fn age_ratios(ranked: &[Arc<Pod>], going: usize, now: Timestamp) -> Vec<i64> {
    let age = |pod: &Arc<Pod>| {
        let created = pod.metadata.creation_timestamp.filter(|_| pod.is_ready())?;
        i64::try_from(now.duration_since(created).as_millis()).ok()
    };
    let Some(youngest) = ranked.iter().filter_map(age).min() else { return Vec::new() };
    ranked.iter().take(going).filter_map(age).filter_map(|age| age.checked_div(youngest)).collect()
}
