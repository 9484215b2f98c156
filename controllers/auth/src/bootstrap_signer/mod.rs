//! Bootstrap signer: signs the `ConfigMap` `cluster-info` in `kube-public` with each bootstrap token, so that a node that
//! knows a token can verify the address and the CA of the cluster before it joins.
//!
//! Reads that `ConfigMap`, and the Secrets of the type `bootstrap.kubernetes.io/token` in `kube-system`. Updates the
//! `ConfigMap`.
//!
//! ```text
//! change of cluster-info, change of a token ──event mapping──▶ cluster-info ──▶ plan ──▶ signatures (update)
//!                                                                              (pure)
//!                                                                  └── next expiry ──▶ requeue
//! ```
//!
//! # Guarantees
//! - `data.jws-kubeconfig-ID` is the signature of `data.kubeconfig` with the token ID, a JWS without its content (RFC 7515,
//!   appendix F), for every token that is valid for signing. A key with that prefix and without such a token is removed.
//! - A token is valid for signing if the name of its Secret is `bootstrap-token-ID`, `token-id` is the same id,
//!   `token-secret` is not empty, it has not expired, and `usage-bootstrap-signing` is `true`.
//! - A signature is removed when its token expires, with or without the token cleaner.
//! - Other data, labels, annotations and fields that this version does not know survive an update, which carries the
//!   resource version.
//! - Other Secrets are neither listed, watched nor cached. Values of tokens are wiped from memory when they leave the cache;
//!   they are in no log, error or explanation.
//! - At rest nothing is written.
//!
//! # What it does not do
//! It creates neither `cluster-info` nor tokens: `kubeadm` does. It deletes no token, which the token cleaner does. A
//! `cluster-info` without a kubeconfig is not changed.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/bootstrap/bootstrapsigner.go` of Kubernetes 1.37.2. `docs/differences.md` has the differences
//! that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | An update that fails is retried with back-off. | It is forgotten: the signature appears with the next change of a token or of `cluster-info`. | A node could not join until then. |
//! | The signature of a token is removed when the token expires. | It stays until the token is deleted, or another change comes. | An expired token must not vouch for the cluster. |
//! | The signature of a token that cannot be decoded stays. | It cannot happen. | The token exists. |
//! | Only `cluster-info` and bootstrap tokens are cached. | All `ConfigMaps` and Secrets are cached. | Memory, and no other secret data in it. |

mod event_mapping;
mod plan;
mod reconcile;
mod signature;

#[cfg(test)]
mod tests;

use kcm_framework::informers::ListOptions;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use crate::shared::bootstrap_tokens;
use event_mapping::{keys_for_cluster_info, keys_for_token};
use reconcile::Reconciler;

/// The namespace of the `ConfigMap`.
const NAMESPACE: &str = "kube-public";

/// The name of the `ConfigMap`.
const CONFIG_MAP: &str = "cluster-info";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("bootstrap-signer-controller", init)
    .aliases(&["bootstrapsigner"])
    .service_account("bootstrap-signer")
    .off_by_default();

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("bootstrap_signer_queue");
    let of_that_name = ListOptions {
        field_selector: Some(format!("metadata.name={CONFIG_MAP}")),
        ..ListOptions::namespace(NAMESPACE)
    };
    let tokens = control_loop.watches_for(bootstrap_tokens(), keys_for_token);
    let cluster_info = control_loop.primary_with(Source::known().list_options(of_that_name), keys_for_cluster_info);
    Ok(control_loop.reconcile_objects(cluster_info, Reconciler { tokens }).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
