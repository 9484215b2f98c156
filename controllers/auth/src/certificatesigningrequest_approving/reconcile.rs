//! The order of a reconcile: decode, recognise, review, approve.

use std::sync::Arc;

use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::{approve, is_allowed};
use super::plan::{is_decided, pause, purposes};
use crate::shared::signing_request::{SigningRequest, decode_request, string};

pub(super) struct Reconciler;

#[async_trait]
impl ReconcileObject<SigningRequest> for Reconciler {
    async fn reconcile(&self, request: &Arc<SigningRequest>, session: &Session) -> Result<(), ReconcileError> {
        if is_decided(request) {
            session.explain(|| "does nothing: the request is decided");
            return Ok(());
        }
        let decoded = match decode_request(&request.document) {
            Ok(decoded) => decoded,
            Err(error) => {
                session.wait_for_change("spec.request cannot be decoded", &error);
                return Ok(());
            }
        };
        let username = string(&request.document, &["spec", "username"]).unwrap_or_default();
        let purposes = purposes(&request.signer_name, &username, &request.usages, &decoded);
        if purposes.is_empty() {
            session.explain(|| "does nothing: the request is not for the client certificate of a kubelet");
            return Ok(());
        }
        for purpose in purposes {
            if is_allowed(request, *purpose, session).await? {
                session.explain(|| format!("approves: the requester may create {}", purpose.subresource()));
                return approve(request, *purpose, session).await;
            }
        }
        let pause = pause(request.metadata.creation_timestamp, session.now());
        session.requeue_after(pause);
        session.explain(|| {
            let subresources: Vec<&str> = purposes.iter().map(|purpose| purpose.subresource()).collect();
            format!("reviews again in {pause:?}: the requester may not create {}", subresources.join(" or "))
        });
        tracing::debug!(?pause, "Recognized a request, and the subject access review was not approved");
        Ok(())
    }
}
