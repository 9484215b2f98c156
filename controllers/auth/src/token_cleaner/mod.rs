//! Token cleaner: deletes bootstrap tokens that have expired.
//!
//! Reads and deletes the Secrets of the type `bootstrap.kubernetes.io/token` in `kube-system`.
//!
//! ```text
//! token added or updated ──event mapping──▶ key ──▶ plan ──▶ delete
//!                                                  (pure)
//!                                                    └── not yet ──▶ requeue at the expiry
//! ```
//!
//! # Guarantees
//! - A token expires at the time in `data.expiration`. A token without it never expires; one whose expiration is no time
//!   has expired. Times are read as Go reads them, which accepts more than RFC 3339.
//! - The deletion carries the uid and the resource version of the Secret that was judged: a token whose expiration is
//!   extended at the same moment stays, and is judged again.
//! - Other Secrets are neither listed, watched nor cached. Values of tokens are wiped from memory when they leave the cache;
//!   they are in no log, error or explanation.
//!
//! # What it does not do
//! It does not change `cluster-info`, whose signatures the bootstrap signer updates.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/bootstrap/tokencleaner.go` of Kubernetes 1.37.2. `docs/differences.md` has the differences
//! that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A deletion that fails is retried with back-off. | The token stays until its Secret changes or the manager restarts. | An expired token must not stay. |
//! | The deletion carries the resource version. | It carries the uid. | A token that is extended at the same moment stays. |
//! | Only bootstrap tokens are cached. | All Secrets are cached. | Memory, and no other secret data in it. |

mod event_mapping;
mod plan;
mod reconcile;

#[cfg(test)]
mod tests;

use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use crate::shared::bootstrap_tokens;
use event_mapping::keys_for_token;
use reconcile::Reconciler;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("token-cleaner-controller", init)
    .aliases(&["tokencleaner"])
    .service_account("token-cleaner")
    .off_by_default();

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("token_cleaner");
    let tokens = control_loop.primary_with(bootstrap_tokens(), keys_for_token);
    Ok(control_loop.reconcile_objects(tokens, Reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
