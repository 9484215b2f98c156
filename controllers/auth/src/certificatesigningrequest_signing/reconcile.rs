//! The order of a reconcile: plan, decode, check, sign, write.

use std::sync::Arc;

use jiff::SignedDuration;
use kcm_framework::{Class, ReconcileError, ReconcileObject, Session, async_trait};

use super::RELOAD;
use super::apply::{fail, issue};
use super::files::AuthorityFiles;
use super::plan::{Plan, plan};
use super::signer::Signer;
use crate::shared::signing_request::{SigningRequest, decode_request};
use crate::shared::x509::requested_duration;

pub(super) struct Reconciler {
    pub(super) signer: Signer,
    pub(super) files: Arc<AuthorityFiles>,
    pub(super) lifetime: SignedDuration,
}

#[async_trait]
impl ReconcileObject<SigningRequest> for Reconciler {
    async fn reconcile(&self, request: &Arc<SigningRequest>, session: &Session) -> Result<(), ReconcileError> {
        match plan(request, self.signer) {
            Plan::Skip(reason) => {
                session.explain(|| reason.explain());
                Ok(())
            }
            Plan::Sign => self.sign(request, session).await,
        }
    }
}

impl Reconciler {
    async fn sign(&self, request: &SigningRequest, session: &Session) -> Result<(), ReconcileError> {
        let decoded = match decode_request(&request.document) {
            Ok(decoded) => decoded,
            Err(error) => return fail(request, &error.to_string(), session).await,
        };
        if let Err(violation) = self.signer.validate(&decoded, &request.usages) {
            return fail(request, &violation.to_string(), session).await;
        }
        let Some(authority) = self.files.current() else {
            session.requeue_after(RELOAD);
            session.explain(|| format!("waits for a CA: the files of {} are invalid", self.signer.name()));
            return Ok(());
        };
        let lifetime = requested_duration(self.lifetime, request.expiration_seconds);
        match authority.sign(&decoded, &request.usages, lifetime, session.now()) {
            Ok(pem) => issue(request, &pem, session).await,
            Err(error) if error.is_of_request() => fail(request, &error.to_string(), session).await,
            Err(error) => Err(ReconcileError::new(Class::Transient, error)),
        }
    }
}
