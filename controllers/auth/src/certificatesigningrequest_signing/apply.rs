//! The requests to the API server.

use kcm_framework::client::{ApiError, ResponseExt as _};
use kcm_framework::{ReconcileError, Session};

use crate::shared::signing_request::{FAILED, NewCondition, SigningRequest, with_certificate, with_condition};

/// The code of a response to a request that is too large.
const TOO_LARGE: u16 = 413;

/// Adds the condition that the request cannot be signed. A request that was deleted is no error.
pub(super) async fn fail(request: &SigningRequest, message: &str, session: &Session) -> Result<(), ReconcileError> {
    session.explain(|| format!("fails the request: {message}"));
    let condition = NewCondition::new(FAILED, "SignerValidationFailure", message, Some(session.now()));
    let document = with_condition(&request.document, &condition)?;
    if session.update_status(request, &document).await.ignore_not_found()?.is_some() {
        tracing::info!(message, "Failed a request for a certificate");
    }
    Ok(())
}

/// Writes the certificate. A request that was deleted is no error.
pub(super) async fn issue(request: &SigningRequest, pem: &str, session: &Session) -> Result<(), ReconcileError> {
    session.explain(|| "issues the certificate");
    let document = with_certificate(&request.document, pem)?;
    match session.update_status(request, &document).await.ignore_not_found() {
        Ok(Some(_)) => tracing::info!("Issued a certificate"),
        Ok(None) => {}
        Err(error) if is_too_large(&error) => {
            fail(request, "the certificate is too large for the API server", session).await?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn is_too_large(error: &ApiError) -> bool {
    error.status().is_some_and(|status| status.code == TOO_LARGE)
}
