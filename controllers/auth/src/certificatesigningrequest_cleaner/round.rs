//! One pass over all requests.

use kcm_framework::Session;
use kcm_framework::client::ApiError;
use kcm_framework::informers::Informer;

use super::apply::delete;
use super::plan::reason;
use crate::shared::signing_request::SigningRequest;

/// Deletes the requests that nobody needs. An error of one request does not stop the pass; the first error is returned.
pub(super) async fn round(requests: &Informer<SigningRequest>, session: &Session) -> Result<(), ApiError> {
    let mut result = Ok(());
    for request in requests.list() {
        if request.metadata.is_terminating() {
            continue;
        }
        let Some(reason) = reason(&request, session.now()) else { continue };
        if let Err(error) = delete(&request, reason, session).await {
            let name = request.metadata.key.name();
            let chain = &error as &(dyn std::error::Error + 'static);
            tracing::warn!(error = chain, name, "Cannot delete a certificate signing request");
            result = result.and(Err(error));
        }
    }
    result
}
