//! Signing of certificate signing requests: issues the certificates of approved requests of four signers.
//!
//! Reads `CertificateSigningRequests`, and the files of certificate authorities. Updates the status of
//! `CertificateSigningRequests`.
//!
//! ```text
//! change of a request ──event mapping──▶ key ──▶ plan ──▶ decode, rules of the signer ──▶ sign ──▶ status.certificate
//!  (of this signer,                              (pure)    (pure)      │                   │
//!   approved, not issued)                                              └──▶ Failed ◀───────┤ not verifiable
//!                                                                                          │
//! files of the CA ──every 5 s──▶ both read and checked ──▶ the pair that signs ────────────┘
//! ```
//!
//! # Guarantees
//! - A request is signed if it has a condition `Approved` of any status, none `Denied`, none `Failed` that is true, and no
//!   certificate. Its signer is one of `kubernetes.io/kubelet-serving`, `kubernetes.io/kube-apiserver-client-kubelet`,
//!   `kubernetes.io/kube-apiserver-client` and `kubernetes.io/legacy-unknown`.
//! - If any signer has files of its own, each signer signs with its own, and signers without files do nothing. Otherwise all
//!   sign with the common pair.
//! - A request that violates the rules of its signer, that cannot be decoded or verified, or that has unknown usages, gets
//!   the condition `Failed` with the reason. It is never signed unverified.
//! - A certificate is valid from five minutes before it is signed, for as long as the request asks, but ten minutes at least,
//!   `--cluster-signing-duration` at most, and no longer than the CA.
//! - Certificate and key of a CA are read together, and replace the current pair only if they are one: exactly one
//!   certificate, and its key. Otherwise the current pair signs on, and the error is logged at once and every ten minutes.
//! - An update carries the resource version. An issued certificate is never replaced.
//! - The private key is in no log, error, explanation or metric, and its text is wiped from memory after it is read.
//!
//! # What it does not do
//! It approves nothing. The API server decides who may approve, and which subjects a request may have.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/certificates/signer` and `authority` of Kubernetes 1.37.2. Certificates are equal byte for byte,
//! but for serial numbers, times and random signatures. `docs/differences.md` has the differences that all controllers
//! share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A pair of files that does not fit leaves the previous pair signing, for every reason. | A chain of certificates, PEM headers or a key under another label stop all signing. | A mistake must not stop nodes from joining. |
//! | At the start, a signer without a valid pair waits for one. | The process ends. | The other controllers continue. |
//! | Files are read every five seconds. | They are watched. | Every way of replacing a file is noticed. |
//! | A request that cannot be decoded or verified, or has unknown usages, gets the condition `Failed`. | It is retried for ever. | Only a new request helps. |
//! | RSA keys have 2,048 to 8,192 bits and CAs have no key on P-224. ECDSA on P-224, SHA-1 on P-384, and SHA-384 or PSS with RSA below 2,048 bits cannot be verified. | They can. | The cryptographic library does not have them. |
//! | A URI with a user in an alternative name fails the request. | It is signed. | No certificate of a cluster has one. |
//! | Each signer only sees its own requests that are due. | Every signer sees all changes. | Less work. |

mod apply;
mod event_mapping;
mod files;
mod metrics;
mod pair;
mod plan;
mod reconcile;
mod settings;
mod signer;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::SignedDuration;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use crate::shared::signing_request::{RETRY_LIMITS, WORKERS};
use event_mapping::keys_for_request;
use files::AuthorityFiles;
use metrics::Metrics;
use pair::Pair;
use reconcile::Reconciler;
use settings::{DURATION, Files, SETTINGS};
use signer::Signer;

/// Interval at which the files of CAs are read.
const RELOAD: Duration = Duration::from_secs(5);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("certificatesigningrequest-signing-controller", init)
        .aliases(&["csrsigning"])
        .service_account("certificate-controller")
        .settings(SETTINGS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let pairs = Files::read(context)?.pairs();
    if pairs.is_empty() {
        return Ok(Loops::none(
            "no CA to sign with is set: give --cluster-signing-cert-file and --cluster-signing-key-file",
        ));
    }
    let lifetime = settings::lifetime(context.get(&DURATION)?)?;
    let metrics = Arc::new(Metrics::register(context.metrics())?);
    let mut loaded: BTreeMap<Pair, Arc<AuthorityFiles>> = BTreeMap::new();
    let mut loops = Loops::new();
    for signer in Signer::ALL {
        let Some(pair) = pairs.get(&signer) else {
            tracing::info!(
                signer = signer.name(),
                "The signer does nothing, because other signers have files of their own and it has none"
            );
            continue;
        };
        let files = loaded.entry(pair.clone()).or_insert_with(|| Arc::new(AuthorityFiles::new(pair.clone())));
        loops = loops.with(signing_loop(context, signer, Arc::clone(files), lifetime));
    }
    for files in loaded.into_values() {
        files.reload(context.clock().now(), &metrics);
        let (metrics, clock) = (Arc::clone(&metrics), Arc::clone(context.clock()));
        loops = loops.periodic("DynamicCABundle-csr-controller", RELOAD, move || {
            files.reload(clock.now(), &metrics);
            async { Ok(()) }.boxed()
        });
    }
    Ok(loops)
}

fn signing_loop(
    context: &ControllerContext,
    signer: Signer,
    files: Arc<AuthorityFiles>,
    lifetime: SignedDuration,
) -> kcm_framework::Loop {
    let mut control_loop = context.control_loop("certificate").workers(WORKERS).retry_limits(RETRY_LIMITS);
    let requests = control_loop.primary_with(Source::known().resync(), move |change| keys_for_request(change, signer));
    control_loop.reconcile_objects(requests, Reconciler { signer, files, lifetime })
}

kcm_framework::inventory::submit! { DESCRIPTOR }
