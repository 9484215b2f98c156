//! Approving of certificate signing requests: approves the client certificates of kubelets, if their requester may have them.
//!
//! Reads `CertificateSigningRequests`. Creates `SubjectAccessReviews`, and updates the approval of
//! `CertificateSigningRequests`.
//!
//! ```text
//! change of a request ──▶ decided? ──▶ decode ──▶ recognise ──▶ review of the requester ──▶ approval
//!                                                  (pure)        │
//!                                                                └── not allowed ──▶ again later
//! ```
//!
//! # Guarantees
//! - A request that has a certificate, or a condition `Approved` or `Denied` of any status, is left alone.
//! - A request is recognised if its signer is `kubernetes.io/kube-apiserver-client-kubelet`, its organisation is exactly
//!   `system:nodes`, its common name begins with `system:node:`, it has no alternative names, and it has the usages of a
//!   client. It renews if its requester is the node that its common name names.
//! - A recognised request is approved only if the API server says that its requester may create
//!   `certificatesigningrequests/selfnodeclient` (if it renews) or `certificatesigningrequests/nodeclient`.
//! - What was recognised is what is issued: the signer writes the subject from the same values.
//! - The approval carries the resource version of the request that was judged.
//! - A request that is recognised and not allowed is reviewed again, after as long as it is old: a binding that is created
//!   later takes effect.
//!
//! # What it does not do
//! It denies nothing, and signs nothing. It does not verify the signature of the request: the API server and the signer do.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/certificates/approver` of Kubernetes 1.37.2. `docs/differences.md` has the differences that
//! all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A request that cannot be decoded is left until it changes. | It is retried for ever. | Only a change helps. |
//! | Requests with a decision or of other signers are not enqueued. | All are. | Less work. |
//! | The pause between reviews is the age of the request, between 200 ms and 1000 s. | It doubles from 200 ms to 1000 s, and begins anew with each process. | Equal in one process; after a restart fewer reviews. |
//! | A URI with a user is refused as malformed. | It is read. | No kubelet asks for one, and URIs are refused anyway. |

mod apply;
mod event_mapping;
mod plan;
mod reconcile;

#[cfg(test)]
mod tests;

use kcm_framework::api::Resource;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use crate::shared::signing_request::{RETRY_LIMITS, WORKERS};
use event_mapping::keys_for_request;
use reconcile::Reconciler;

const NAME: &str = "certificatesigningrequest-approving-controller";

const REVIEWS: Resource =
    Resource::cluster_scoped("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview");

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new(NAME, init).aliases(&["csrapproving"]).service_account("certificate-controller");

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("certificate").workers(WORKERS).retry_limits(RETRY_LIMITS);
    let requests = control_loop.primary_with(Source::known().resync(), keys_for_request);
    Ok(control_loop.reconcile_objects(requests, Reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
