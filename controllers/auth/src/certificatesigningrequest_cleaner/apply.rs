//! The requests to the API server.

use kcm_framework::client::{ApiError, ResponseExt as _};
use kcm_framework::{Delete, Session};

use super::plan::Reason;
use crate::shared::signing_request::SigningRequest;

/// Deletes a request as it was judged. It is no error if it was changed, deleted or recreated since: the next pass judges it.
pub(super) async fn delete(request: &SigningRequest, reason: Reason, session: &Session) -> Result<(), ApiError> {
    let as_judged = Delete::default().at_version(&request.metadata.resource_version);
    if session.delete(request, as_judged).await.ignore(ApiError::is_conflict)?.is_some() {
        let name = request.metadata.key.name();
        tracing::info!(name, reason = reason.as_str(), "Deleted a certificate signing request");
    }
    Ok(())
}
