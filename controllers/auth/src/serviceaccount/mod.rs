//! Service account controller: keeps the `ServiceAccount` `default` in every Namespace.
//!
//! Reads Namespaces and `ServiceAccounts`. Creates `ServiceAccounts`.
//!
//! ```text
//! change of a Namespace, deletion of a ServiceAccount ──event mapping──▶ key of the Namespace ──▶ plan ──▶ create
//! ```
//!
//! # Guarantees
//! - An active Namespace without the account gets it, also after a deletion of the account.
//! - An account that exists is not changed.
//! - Nothing is created in a Namespace that is not active. If the Namespace begins to terminate before the request arrives,
//!   that is no error.
//!
//! # What it does not do
//! It creates no token: Pods get theirs by `TokenRequest`.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/serviceaccount` of Kubernetes 1.37.2, `serviceaccounts_controller.go`. There are no
//! differences beyond those in `docs/differences.md`, which all controllers share.

mod event_mapping;
mod plan;
mod reconcile;

#[cfg(test)]
mod tests;

use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::{keys_for_account, keys_for_namespace};
use reconcile::Reconciler;

/// The name of the account.
const ACCOUNT: &str = "default";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("serviceaccount-controller", init)
    .aliases(&["serviceaccount"])
    .service_account("service-account-controller");

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("serviceaccount");
    let accounts = control_loop.watches(keys_for_account);
    let namespaces = control_loop.primary_with(Source::known(), keys_for_namespace);
    Ok(control_loop.reconcile_objects(namespaces, Reconciler { accounts }).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
