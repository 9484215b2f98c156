//! Event mapping: the services that a change of endpoints enqueues.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Endpoints;
use kcm_framework::informers::Change;

/// A deletion enqueues the service, which creates the endpoints again. As upstream, other changes enqueue nothing.
pub(super) fn keys_for_endpoints(change: &Change<Endpoints>) -> Option<ObjectKey> {
    match change {
        Change::Deleted { last, .. } => Some(last.metadata.key.clone()),
        Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } => None,
    }
}
