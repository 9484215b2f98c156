//! The requests of a round: live reads of Nodes, patches of statuses, deletions.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::stream;
use kcm_framework::api::views::{Node, PodDisruption};
use kcm_framework::api::{InternedStr, ObjectKey, PartReader};
use kcm_framework::client::{ApiError, Patch, Payload, ResponseExt as _};
use kcm_framework::{Delete, Session};

use super::failed_status::failed_status;
use super::metrics::Metrics;
use super::plan::Removal;

/// The number of Pods that are deleted at the same time.
const CONCURRENT_DELETIONS: usize = 16;

/// Returns those of `nodes` that do not exist.
///
/// A Node that cannot be read counts as existing.
pub(super) async fn gone_nodes(session: &Session, nodes: Vec<InternedStr>) -> BTreeSet<InternedStr> {
    let mut gone = BTreeSet::new();
    for node in nodes {
        let key = ObjectKey::cluster_scoped(&*node);
        match session.live_meta::<Node>(&key).await {
            Ok(Some(_)) => {}
            Ok(None) => drop(gone.insert(node)),
            Err(error) => {
                let cause = error.message();
                tracing::warn!(node = &*node, %error, cause, "Cannot look up the node; its pods are kept");
            }
        }
    }
    gone
}

/// Deletes Pods.
pub(super) struct PodRemover<'a> {
    pub(super) session: &'a Session,
    pub(super) metrics: &'a Metrics,
    pub(super) disruptions: PartReader<PodDisruption>,
}

impl PodRemover<'_> {
    /// Deletes the Pods, several at a time. A failure is logged and counted, and does not stop other deletions; the next
    /// round tries again.
    pub(super) async fn remove_all(&self, removals: &[Removal]) {
        let calls: Vec<_> = removals.iter().map(|removal| self.remove(removal)).collect();
        stream::iter(calls).buffer_unordered(CONCURRENT_DELETIONS).collect::<()>().await;
    }

    async fn remove(&self, removal: &Removal) {
        let Removal { pod, reason } = removal;
        let (key, reason) = (&pod.metadata.key, reason.as_str());
        tracing::info!(pod = %key, reason, "Deleting pod");
        let removed = self.try_remove(removal).await;
        if let Err(error) = &removed {
            let cause = error.message();
            tracing::warn!(pod = %key, reason, %error, cause, "Cannot delete pod");
        }
        self.metrics.deleted(removal, removed.is_err());
    }

    async fn try_remove(&self, Removal { pod, reason }: &Removal) -> Result<(), ApiError> {
        if let Some(patch) = failed_status(pod, self.disruptions.of(pod), *reason, self.session.now()) {
            let patch = Patch::Strategic(Payload::json(&patch));
            let patched = self.session.patch_status(&**pod, patch).await;
            // A Pod that is being updated is looked at again in the next round.
            let is_changed = |error: &ApiError| error.is_not_found() || error.is_conflict() || error.is_other_object();
            if patched.ignore(is_changed)?.is_none() {
                return Ok(());
            }
        }
        let deletion = self.session.delete(&**pod, Delete::default().grace_period(0)).await;
        deletion.ignore(ApiError::is_other_object)?;
        Ok(())
    }
}
