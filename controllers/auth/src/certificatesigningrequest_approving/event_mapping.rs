//! Event mapping: the requests that may be approved.

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::Change;

use super::plan::{KUBELET_CLIENT, is_decided};
use crate::shared::signing_request::SigningRequest;

/// Enqueues a request of kubelets that has no decision.
pub(super) fn keys_for_request(change: &Change<SigningRequest>) -> Option<ObjectKey> {
    let request = match change {
        Change::Added(request) | Change::Updated { new: request, .. } => request,
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    let is_concerned = request.signer_name == *KUBELET_CLIENT && !is_decided(request);
    is_concerned.then(|| request.metadata.key.clone())
}
