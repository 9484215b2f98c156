//! The requests that are signed. Pure.

use super::signer::Signer;
use crate::shared::signing_request::{APPROVED, DENIED, FAILED, SigningRequestView};

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// Signs it, if its content allows.
    Sign,
    Skip(SkipReason),
}

/// A reason for doing nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkipReason {
    /// The certificate is there.
    Issued,
    /// Nobody has approved the request.
    NotApproved,
    /// The request is denied.
    Denied,
    /// Signing has failed before.
    Failed,
    /// The signer is another one.
    OtherSigner,
}

/// Plans for a request.
pub(super) fn plan(request: &SigningRequestView, signer: Signer) -> Plan {
    let has_failed = request.conditions_of(FAILED).any(|failed| failed.status.is_empty() || failed.status == *"True");
    if request.is_issued() {
        Plan::Skip(SkipReason::Issued)
    } else if request.has(DENIED) {
        Plan::Skip(SkipReason::Denied)
    } else if !request.has(APPROVED) {
        Plan::Skip(SkipReason::NotApproved)
    } else if has_failed {
        Plan::Skip(SkipReason::Failed)
    } else if request.signer_name != *signer.name() {
        Plan::Skip(SkipReason::OtherSigner)
    } else {
        Plan::Sign
    }
}

impl SkipReason {
    /// Explains the decision to operators.
    pub(super) const fn explain(self) -> &'static str {
        match self {
            Self::Issued => "does nothing: the certificate is issued",
            Self::NotApproved => "does nothing: the request is not approved",
            Self::Denied => "does nothing: the request is denied",
            Self::Failed => "does nothing: signing has failed",
            Self::OtherSigner => "does nothing: the request is for another signer",
        }
    }
}
