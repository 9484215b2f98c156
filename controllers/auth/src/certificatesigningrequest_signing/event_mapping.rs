//! Event mapping: the requests that a signer signs.

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::Change;

use super::plan::{Plan, plan};
use super::signer::Signer;
use crate::shared::signing_request::SigningRequest;

/// Enqueues a request that the signer is to sign.
pub(super) fn keys_for_request(change: &Change<SigningRequest>, signer: Signer) -> Option<ObjectKey> {
    match change {
        Change::Added(request) | Change::Updated { new: request, .. } => {
            (plan(request, signer) == Plan::Sign).then(|| request.metadata.key.clone())
        }
        Change::Undecodable { .. } | Change::Deleted { .. } => None,
    }
}
