//! The requests: taints and labels of Nodes, conditions of Nodes and Pods, live reads of leases.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kcm_framework::Session;
use kcm_framework::api::views::{Lease, Node, NodeHealth, Pod};
use kcm_framework::api::{KnownView as _, ObjectKey, View as _};
use kcm_framework::client::{ApiError, ListQuery, Patch, Payload};
use serde_json::json;

use super::status::{not_ready_status, unknown_status};
use super::taints::Changes;

/// Namespace of the leases that kubelets renew.
pub(super) const LEASES: &str = "kube-node-lease";

/// Number of silent Nodes up to which their leases are read one by one, and not all at once.
const FEW: usize = 8;

/// Number of leases in a page of a list.
const PAGE: u32 = 500;

/// Changes taints and labels. The list of taints is written as a whole, so that the patch carries the version.
pub(super) async fn change_node(session: &Session, node: &Node, changes: &Changes) -> Result<(), ApiError> {
    let mut patch = json!({});
    if !changes.labels.is_empty() {
        patch["metadata"]["labels"] = json!(changes.labels);
    }
    if let Some(taints) = &changes.taints {
        patch["metadata"]["resourceVersion"] = json!(node.metadata.resource_version);
        patch["spec"]["taints"] = if taints.is_empty() { json!(null) } else { json!(taints) };
    }
    session.merge_patch(node, patch).await.map(drop)
}

/// Makes the conditions of a silent Node unknown. The version makes a kubelet win that has reported meanwhile.
pub(super) async fn mark_unknown(
    session: &Session,
    node: &Node,
    health: &NodeHealth,
    now: Timestamp,
) -> Result<(), ApiError> {
    let patch = Patch::Strategic(Payload::json(&unknown_status(node, health, now)));
    session.patch_status(node, patch).await.map(drop)
}

/// Makes a Pod not ready.
pub(super) async fn mark_not_ready(session: &Session, pod: &Pod) -> Result<(), ApiError> {
    let patch = Patch::Strategic(Payload::json(&not_ready_status(pod, session.now())));
    session.patch_status(pod, patch).await.map(drop)
}

/// Reads the leases of Nodes from the API server, and returns when each was renewed.
pub(super) async fn live_leases(
    session: &Session,
    nodes: &[ObjectKey],
) -> Result<BTreeMap<ObjectKey, Option<Timestamp>>, ApiError> {
    let mut renewed = BTreeMap::new();
    if nodes.len() <= FEW {
        for node in nodes {
            let lease = session.live::<Lease>(&ObjectKey::namespaced(LEASES, node.name())).await?;
            renewed.insert(node.clone(), lease.and_then(|lease| lease.renew_time));
        }
        return Ok(renewed);
    }
    let mut options = ListQuery { limit: Some(PAGE), ..ListQuery::default() };
    loop {
        let page = session.api().list(const { &Lease::RESOURCE }, Some(LEASES), &options).await?;
        // A lease that cannot be decoded counts as not renewed, as in the cache.
        for lease in page.items.iter().filter_map(|item| Lease::decode(item.get()).ok()) {
            renewed.insert(ObjectKey::cluster_scoped(lease.metadata.key.name()), lease.renew_time);
        }
        options.continue_token = page.continue_token;
        if options.continue_token.is_none() {
            return Ok(renewed);
        }
    }
}
