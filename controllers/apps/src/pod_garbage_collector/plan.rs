//! The plan of a round: which pods are deleted, and why.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{Node, Pod, PodDisruption, PodPhase};
use kcm_framework::api::{InternedStr, PartReader, Uid};

/// The taint of a node that an administrator has declared dead: nothing runs on it any more.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// `status.reason` of a pod that the kubelet evicted.
const EVICTED: &str = "Evicted";

/// The snapshot of a round.
#[derive(Debug)]
pub(super) struct Observed {
    /// The pods that a round [may delete](may_be_deleted), in no order.
    pub(super) pods: Vec<Arc<Pod>>,
    /// All nodes, in no order.
    pub(super) nodes: Vec<Arc<Node>>,
    /// The names of the nodes that cannot be decoded. They exist.
    pub(super) undecodable: BTreeSet<InternedStr>,
}

/// Why a pod is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// It is terminated, and one of the oldest of too many.
    Terminated,
    /// It is terminating on a node that is not ready and out of service.
    OutOfService,
    /// Its node does not exist.
    Orphaned,
    /// It is terminating and was never assigned to a node.
    Unscheduled,
}

impl Reason {
    /// The reason as metrics name it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::OutOfService => "out-of-service",
            Self::Orphaned => "orphaned",
            Self::Unscheduled => "unscheduled",
        }
    }
}

/// A pod to delete.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Removal {
    pub(super) pod: Arc<Pod>,
    pub(super) reason: Reason,
}

/// Returns true if a round may delete the pod: it is terminated or terminating, or its node is not in the cache. Most pods
/// are neither, and a round keeps none of them.
pub(super) fn may_be_deleted(pod: &Pod, is_known: impl Fn(&str) -> bool) -> bool {
    is_terminated(pod) || pod.metadata.is_terminating() || pod.node_name.as_ref().is_some_and(|node| !is_known(node))
}

/// The nodes that pods are assigned to and that are not in the cache.
pub(super) fn missing_nodes(observed: &Observed) -> BTreeSet<InternedStr> {
    let nodes = nodes_by_name(observed);
    let assigned = observed.pods.iter().filter_map(|pod| pod.node_name.as_ref());
    let is_missing = |node: &&InternedStr| !nodes.contains_key(&***node) && !observed.undecodable.contains(*node);
    assigned.filter(is_missing).cloned().collect()
}

/// Plans the deletions that need no live read: surplus terminated pods, of which at most `threshold` may exist (zero or
/// less: any number), and then terminating pods on nodes that are out of service.
///
/// # Guarantees
/// Each pod once, for the first reason that applies, in the order of [`Reason`]. Of the terminated pods the evicted ones
/// go first, then the oldest.
pub(super) fn plan_by_cache(
    observed: &Observed,
    threshold: i32,
    disruptions: PartReader<PodDisruption>,
) -> Vec<Removal> {
    let nodes = nodes_by_name(observed);
    let on_dead_node = |pod: &Pod| {
        let node = pod.node_name.as_ref().and_then(|node| nodes.get(&**node));
        pod.metadata.is_terminating() && node.is_some_and(|node| !node.is_ready && node.has_taint(OUT_OF_SERVICE))
    };
    let terminated = surplus_of_terminated(observed, threshold, disruptions);
    let mut removals: Vec<_> = terminated.into_iter().map(|pod| Removal { pod, reason: Reason::Terminated }).collect();
    let out_of_service = others(observed, &removals, Reason::OutOfService, on_dead_node, disruptions);
    removals.extend(out_of_service);
    removals
}

/// Plans the deletions that follow the live reads: pods of the nodes `gone`, which do not exist, and then terminating pods
/// without a node. Leaves out the pods that were `removed` before.
pub(super) fn plan_by_live_nodes(
    observed: &Observed,
    gone: &BTreeSet<InternedStr>,
    removed: &[Removal],
    disruptions: PartReader<PodDisruption>,
) -> Vec<Removal> {
    let is_orphaned = |pod: &Pod| pod.node_name.as_ref().is_some_and(|node| gone.contains(node));
    let is_unscheduled = |pod: &Pod| pod.metadata.is_terminating() && pod.node_name.is_none();
    let mut removals = others(observed, removed, Reason::Orphaned, is_orphaned, disruptions);
    removals.extend(others(observed, removed, Reason::Unscheduled, is_unscheduled, disruptions));
    removals
}

/// The pods that are meant and not removed for another reason, the oldest first.
fn others(
    observed: &Observed,
    removed: &[Removal],
    reason: Reason,
    is_meant: impl Fn(&Pod) -> bool,
    disruptions: PartReader<PodDisruption>,
) -> Vec<Removal> {
    let removed: BTreeSet<&Uid> = removed.iter().map(|removal| &removal.pod.metadata.uid).collect();
    let pods = observed.pods.iter().filter(|pod| is_meant(pod) && !removed.contains(&pod.metadata.uid));
    let mut pods: Vec<_> = pods.cloned().collect();
    pods.sort_by(|a, b| age_rank(a, disruptions).cmp(&age_rank(b, disruptions)));
    pods.into_iter().map(|pod| Removal { pod, reason }).collect()
}

fn nodes_by_name(observed: &Observed) -> BTreeMap<&str, &Node> {
    observed.nodes.iter().map(|node| (node.metadata.key.name(), &**node)).collect()
}

/// The terminated pods beyond the threshold.
fn surplus_of_terminated(observed: &Observed, threshold: i32, disruptions: PartReader<PodDisruption>) -> Vec<Arc<Pod>> {
    let Some(threshold) = usize::try_from(threshold).ok().filter(|threshold| *threshold > 0) else { return Vec::new() };
    let mut terminated: Vec<_> = observed.pods.iter().filter(|pod| is_terminated(pod)).cloned().collect();
    let surplus = terminated.len().saturating_sub(threshold);
    if surplus > 0 {
        terminated.sort_by(|a, b| age_rank(a, disruptions).cmp(&age_rank(b, disruptions)));
    }
    terminated.truncate(surplus);
    terminated
}

/// Whether a pod runs no more. Upstream counts an unknown phase, and none, as terminated.
fn is_terminated(pod: &Pod) -> bool {
    match pod.phase {
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => false,
        PodPhase::Succeeded | PodPhase::Failed | PodPhase::Other | _ => true,
    }
}

/// Evicted pods before others, older ones before younger ones; name and namespace decide last.
fn age_rank(
    pod: &Pod,
    disruptions: PartReader<PodDisruption>,
) -> (Reverse<bool>, Option<Timestamp>, &str, Option<&str>) {
    let is_evicted = pod.phase == PodPhase::Failed && &*disruptions.of(pod).reason == EVICTED;
    let key = &pod.metadata.key;
    (Reverse(is_evicted), pod.metadata.creation_timestamp, key.name(), key.namespace())
}
