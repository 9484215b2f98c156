//! Live reads of nodes, which the detaches from one node share.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::client::ApiError;
use kcm_framework::{Session, SharedReads};
use tokio::time::Instant;

use super::view::LiveNode;

/// The live nodes of the last second, by name.
#[derive(Debug, Default)]
pub(super) struct LiveNodes(SharedReads<Box<str>, Option<Arc<LiveNode>>>);

/// Use of a volume on a node, as the API server shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The kubelet does not use the volume, or the node does not exist.
    None,
    /// The kubelet uses the volume.
    Mounted,
    /// The node reports the volume as attached, so that the kubelet may mount it at any time.
    Reported,
}

impl Use {
    pub(super) fn of(volume: &str, node: Option<&LiveNode>) -> Self {
        match node {
            Some(node) if node.in_use.iter().any(|name| name == volume) => Self::Mounted,
            Some(node) if node.attached.iter().any(|entry| entry.name == volume) => Self::Reported,
            Some(_) | None => Self::None,
        }
    }
}

impl LiveNodes {
    /// Reads the use of a volume. A read that was requested before `since` does not count.
    pub(super) async fn use_of(
        &self,
        volume: &str,
        node: &str,
        since: Option<Instant>,
        session: &Session,
    ) -> Result<Use, ApiError> {
        let read = async {
            let node = session.live::<LiveNode>(&ObjectKey::cluster_scoped(node)).await?;
            Ok(node.map(Arc::new))
        };
        let found = self.0.get(node, since, read).await?;
        Ok(Use::of(volume, found.as_deref()))
    }
}
