//! Trust bundle publisher: keeps the `ClusterTrustBundle` with the CA of the API server.
//!
//! Reads, creates, updates and deletes the `ClusterTrustBundles` of the signer `kubernetes.io/kube-apiserver-serving`.
//!
//! ```text
//! change of a bundle ──event mapping──▶ key of the bundle of the CA ──▶ plan ──▶ create, update ──▶ delete all others
//!                                                                      (pure)
//! ```
//!
//! # Guarantees
//! - The bundle holds the bytes of the root CA: the content of `--root-ca-file`, or else the CA that the kubeconfig holds as
//!   data. Its name ends in a digest of the content.
//! - A changed `--root-ca-file` is published as a new bundle. A file that cannot be used leaves the previous bundle.
//! - Other bundles of the signer are deleted after the bundle was published, never before. A deletion carries the uid and the
//!   resource version.
//! - Bundles of other signers are neither listed, watched nor cached. Labels and annotations survive an update.
//!
//! # What it does not do
//! Without a CA it does not run. The API server refuses a file with a
//! certificate that is no CA, or with one certificate twice; the controller retries with back-off.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/certificates/clustertrustbundlepublisher` of Kubernetes 1.37.2. `docs/differences.md` has the
//! differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Deletions carry the uid and the resource version. | They carry nothing. | A bundle that was recreated is judged again. |
//! | Only `certificates.k8s.io/v1` is used. | `v1beta1` and `v1alpha1` are used if `v1` is not served. | Kubernetes 1.37 serves `v1`. |
//! | `--root-ca-file` is read every five seconds. | It is read once. | A rotation needs no restart. |
//! | A `--root-ca-file` that cannot be used is read again with back-off. | It ends the process. | The other controllers continue. |

mod apply;
mod plan;
mod reconcile;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::config::gates::CLUSTER_TRUST_BUNDLE;
use kcm_framework::informers::{Change, ListOptions};
use kcm_framework::workqueue::Priority;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use crate::shared::{RootCaSource, SyncFamilies, SyncMetrics};
use plan::{SIGNER, TrustBundle, name};
use reconcile::Reconciler;

const SYNCS: SyncFamilies = SyncFamilies {
    total: (
        "clustertrustbundle_publisher_sync_total",
        "Reconciles by the trust bundle publisher, by the status code of the response",
    ),
    seconds: (
        "clustertrustbundle_publisher_sync_duration_seconds",
        "Seconds that a reconcile by the trust bundle publisher took, by the status code of the response",
    ),
};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("kube-apiserver-serving-clustertrustbundle-publisher-controller", init)
        .service_account("kube-apiserver-serving-clustertrustbundle-publisher")
        .required_gates(&[CLUSTER_TRUST_BUNDLE]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let root_ca = RootCaSource::read(context)?;
    if root_ca.current().is_empty() {
        return Ok(Loops::none("neither --root-ca-file nor the kubeconfig has a CA to publish"));
    }
    let mut control_loop = context.control_loop("ca_cert_publisher_cluster_trust_bundles").barrier();
    let of_signer = ListOptions { field_selector: Some(format!("spec.signerName={SIGNER}")), ..ListOptions::default() };
    let of_change = Arc::clone(&root_ca);
    let bundles = control_loop
        .watches_for(Source::known().list_options(of_signer), move |_: &Change<TrustBundle>| [key(&of_change)]);
    // Without any bundle no event enqueues the key.
    let queue = control_loop.queue();
    queue.add(key(&root_ca), Priority::Initial);
    let metrics = SyncMetrics::register(context.metrics(), &SYNCS)?;
    let reconciler = Reconciler { bundles, root_ca: Arc::clone(&root_ca), metrics };
    let loops = control_loop.reconcile(reconciler).into();
    let changed = Arc::clone(&root_ca);
    Ok(root_ca.follow(loops, "ca_cert_publisher_cluster_trust_bundles_file", context, move || {
        queue.add(key(&changed), Priority::Live);
    }))
}

/// Returns the key of the bundle of the current CA.
fn key(root_ca: &RootCaSource) -> ObjectKey {
    ObjectKey::cluster_scoped(name(&root_ca.current()))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
