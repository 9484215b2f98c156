//! Service account controller: keeps the service account `default` in every namespace.
//!
//! Reads namespaces and service accounts. Creates service accounts.
//!
//! ```text
//! change of a namespace, deletion of a service account ──▶ plan ──▶ create
//! ```
//!
//! # Guarantees
//! - An active namespace without the account gets it, also where it was deleted.
//! - An account that is there is left as it is.
//! - Nothing is created in a namespace that is not active, and that one is terminating by now is no failure.
//!
//! # What it does not do
//! It creates no token: pods get theirs by `TokenRequest`.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/serviceaccount` of Kubernetes 1.36.3, `serviceaccounts_controller.go`. Everything is as
//! there.

mod plan;
mod reconcile;
mod event_mapping;

#[cfg(test)]
mod tests;

use kcm_framework::{ControllerContext, ControllerDescriptor, Loops};

use reconcile::Reconciler;
use event_mapping::{keys_for_account, keys_for_namespace};

/// The name of the account.
const ACCOUNT: &str = "default";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("serviceaccount-controller", |context| Ok(init(context)))
        .aliases(&["serviceaccount"])
        .service_account("service-account-controller");

fn init(context: &ControllerContext) -> Loops {
    let mut loop_of_namespaces = context.control_loop("serviceaccount");
    let accounts = loop_of_namespaces.watches(keys_for_account);
    let namespaces = loop_of_namespaces.watches(keys_for_namespace);
    loop_of_namespaces.keyed_by(&namespaces);
    Loops::new().with(loop_of_namespaces.reconcile(Reconciler { namespaces, accounts }))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
