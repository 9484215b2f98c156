//! The age of requests.

use jiff::{SignedDuration, Timestamp};

kcm_framework::api::view! {
    /// The metadata of a pod certificate request.
    pub(super) struct PodCertificateRequest {
        resource: kcm_framework::api::Resource::namespaced(
            "certificates.k8s.io", "v1", "podcertificaterequests", "PodCertificateRequest"
        );
    }
}

/// Age at which a request is deleted, as upstream.
const MAX_AGE: SignedDuration = SignedDuration::from_mins(15);

/// Returns `true` if a request created at `created` is to be deleted. A request without that time is kept.
pub(super) fn is_old(created: Option<Timestamp>, now: Timestamp) -> bool {
    created.is_some_and(|created| now.duration_since(created) >= MAX_AGE)
}
