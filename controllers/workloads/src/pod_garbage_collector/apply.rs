//! The requests of a round: live looks at nodes, patches of statuses, deletions.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::stream;
use kcm_api::views::{Node, Pod, PodDisruption};
use kcm_api::{InternedStr, KnownView as _, ObjectKey, PartReader, PartialObjectMeta};
use kcm_framework::Session;
use kcm_framework::client::{ApiError, DeleteOptions, Patch, Payload, Subresource};

use super::failed_status::failed_status;
use super::metrics::Metrics;
use super::plan::Removal;

/// How many pods are deleted at once.
const CONCURRENT_DELETIONS: usize = 16;

/// Those of `nodes` that the API server does not have.
///
/// A node that cannot be read is taken for one that exists.
pub(super) async fn gone_nodes(session: &Session, nodes: Vec<InternedStr>) -> BTreeSet<InternedStr> {
    let mut gone = BTreeSet::new();
    for node in nodes {
        let key = ObjectKey::cluster_scoped(&*node);
        match session.api().get::<PartialObjectMeta>(const { &Node::RESOURCE }, &key).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {
                gone.insert(node);
            }
            Err(error) => {
                let cause = error.message();
                tracing::warn!(node = &*node, %error, cause, "Cannot look up the node; its pods are kept");
            }
        }
    }
    gone
}

/// Deletes pods.
pub(super) struct PodRemover<'a> {
    pub(super) session: &'a Session,
    pub(super) metrics: &'a Metrics,
    pub(super) disruptions: PartReader<PodDisruption>,
}

impl PodRemover<'_> {
    /// Deletes the pods, several at a time. A failure is logged and counted, and holds up no other pod; the next round
    /// tries again.
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
        let (key, uid) = (&pod.metadata.key, &pod.metadata.uid);
        if let Some(patch) = failed_status(pod, self.disruptions.of(pod), *reason, self.session.now()) {
            let patch = Patch::Strategic(Payload::json(&patch));
            match self.session.raw_patch(&Pod::RESOURCE, key, Subresource::Status, patch).await {
                Ok(_) => {}
                Err(error) if error.is_not_found() || is_of_another_uid(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::of_uid(uid.clone()) };
        match self.session.raw_delete(&Pod::RESOURCE, key, uid, &options).await {
            Ok(_) => Ok(()),
            Err(error) if is_of_another_uid(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether the pod was recreated under the same name. A patch with another uid changes an immutable field; a deletion with
/// one is a conflict.
fn is_of_another_uid(error: &ApiError) -> bool {
    error.is_conflict() || error.is_invalid() && error.message().contains("metadata.uid: ")
}
