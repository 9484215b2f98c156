//! Event mapping: the requests that a change enqueues.

use kcm_framework::api::{InternedStr, ObjectKey};
use kcm_framework::informers::Change;

use super::views::PoolStatusRequest;
use crate::shared::ResourceSlice;

/// Returns the driver of a request that waits for its status.
pub(super) fn pending_driver(request: &PoolStatusRequest) -> Option<InternedStr> {
    (!request.has_status).then(|| request.driver.clone())
}

/// A slice enqueues the requests for its driver that wait for their status.
pub(super) fn keys_for_slice(
    change: &Change<ResourceSlice>,
    pending: impl Fn(&InternedStr) -> Vec<ObjectKey>,
) -> Vec<ObjectKey> {
    match change {
        Change::Added(slice) | Change::Updated { old: _, new: slice } | Change::Deleted { last: slice, .. } => {
            pending(&slice.driver)
        }
        Change::Undecodable { .. } => Vec::new(),
    }
}
