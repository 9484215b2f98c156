//! Live reads of Nodes before evictions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::Session;
use kcm_framework::api::InternedStr;
use kcm_framework::api::views::Node;
use kcm_framework::client::ApiError;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Time for which a live read counts, so that the Pods of a Node share one.
const FRESH: Duration = Duration::from_secs(1);

/// A live read of a Node. Workers that need the same Node wait for one request.
type Slot = tokio::sync::Mutex<Option<(Instant, Option<Arc<Node>>)>>;

/// The Nodes that were read from the API server within the last second.
#[derive(Default)]
pub(super) struct LiveNodes(Mutex<HashMap<InternedStr, Arc<Slot>>>);

impl LiveNodes {
    /// Returns the live Node. `None` if it does not exist, or was recreated under the same name.
    pub(super) async fn read(&self, session: &Session, cached: &Node) -> Result<Option<Arc<Node>>, ApiError> {
        let slot = self.slot(cached.metadata.key.name());
        let mut read = slot.lock().await;
        let is_fresh = |at: Instant| at.elapsed() < FRESH;
        let node = match &*read {
            Some((at, node)) if is_fresh(*at) => node.clone(),
            Some(_) | None => {
                let node = session.live::<Node>(&cached.metadata.key).await?.map(Arc::new);
                *read = Some((Instant::now(), node.clone()));
                node
            }
        };
        Ok(node.filter(|node| node.metadata.uid == cached.metadata.uid))
    }

    fn slot(&self, name: &str) -> Arc<Slot> {
        let mut slots = self.0.lock();
        if let Some(slot) = slots.get(name) {
            return Arc::clone(slot);
        }
        // A slot that is locked is in use.
        slots.retain(|_, slot| {
            let is_old = |read: &Option<(Instant, _)>| read.as_ref().is_none_or(|(at, _)| at.elapsed() >= FRESH);
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|read| !is_old(&read))
        });
        Arc::clone(slots.entry(name.into()).or_default())
    }
}
