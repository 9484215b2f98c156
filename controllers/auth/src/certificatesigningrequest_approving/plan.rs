//! The requests that are recognised, and when one is reviewed again. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::shared::kubelet::validate_client;
use crate::shared::signing_request::{APPROVED, DENIED, SigningRequestView};
use crate::shared::x509::CertificateRequest;

/// The signer of the client certificates of kubelets.
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// The purposes for which a request is approved, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A kubelet renews its certificate.
    SelfNodeClient,
    /// A kubelet gets its first certificate.
    NodeClient,
}

impl Purpose {
    /// Returns the subresource that the requester must be allowed to create.
    pub(super) const fn subresource(self) -> &'static str {
        match self {
            Self::SelfNodeClient => "selfnodeclient",
            Self::NodeClient => "nodeclient",
        }
    }

    /// Returns the message of the approval.
    pub(super) const fn message(self) -> &'static str {
        match self {
            Self::SelfNodeClient => "Auto approving self kubelet client certificate after SubjectAccessReview.",
            Self::NodeClient => "Auto approving kubelet client certificate after SubjectAccessReview.",
        }
    }
}

/// Returns `true` if somebody has decided, or if the certificate is there.
pub(super) fn is_decided(request: &SigningRequestView) -> bool {
    request.is_issued() || request.has(APPROVED) || request.has(DENIED)
}

/// Returns the purposes of a request; none if it is no request of a kubelet for a client certificate.
pub(super) fn purposes(
    signer: &str,
    username: &str,
    usages: &[impl AsRef<str>],
    request: &CertificateRequest,
) -> &'static [Purpose] {
    if signer != KUBELET_CLIENT || validate_client(request, usages).is_err() {
        &[]
    } else if username == request.subject.common_name {
        &[Purpose::SelfNodeClient, Purpose::NodeClient]
    } else {
        &[Purpose::NodeClient]
    }
}

/// Returns the pause until a request is reviewed again: its age, so that the pauses double.
pub(super) fn pause(created: Option<Timestamp>, now: Timestamp) -> Duration {
    const SHORTEST: SignedDuration = SignedDuration::from_millis(200);
    const LONGEST: SignedDuration = SignedDuration::from_secs(1000);
    let age = created.map_or(LONGEST, |created| now.duration_since(created));
    age.clamp(SHORTEST, LONGEST).unsigned_abs()
}
