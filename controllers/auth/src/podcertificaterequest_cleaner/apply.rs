//! One round over all requests.

use kcm_framework::Session;
use kcm_framework::client::ApiError;
use kcm_framework::informers::Informer;
use kcm_framework::{Delete, error_chain};

use super::plan::{PodCertificateRequest, is_old};

/// Deletes all old requests. A request that cannot be deleted stops no other; returns the first error.
pub(super) async fn round(session: &Session, requests: &Informer<PodCertificateRequest>) -> Result<(), ApiError> {
    let mut first = Ok(());
    for request in requests.list() {
        if !is_old(request.metadata.creation_timestamp, session.now()) {
            continue;
        }
        let key = &request.metadata.key;
        let as_judged = Delete::default().at_version(&request.metadata.resource_version);
        match session.delete(&*request, as_judged).await {
            Ok(_) => tracing::info!(request = %key, "Deleted an old pod certificate request"),
            // The request has changed since the cache showed it. The next round judges it again.
            Err(error) if error.is_conflict() => {
                tracing::debug!(request = %key, "Kept a pod certificate request that has changed");
                first = first.and(Err(error));
            }
            Err(error) => {
                let reason = error_chain(&error);
                tracing::warn!(error = reason, request = %key, "Cannot delete a pod certificate request");
                first = first.and(Err(error));
            }
        }
    }
    first
}
