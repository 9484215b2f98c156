//! Cluster role aggregation: keeps the rules of a `ClusterRole` with an `aggregationRule` equal to the rules of the
//! `ClusterRoles` that it selects.
//!
//! Reads `ClusterRoles`. Applies the rules of aggregated ones.
//!
//! ```text
//! change of a ClusterRole ──event mapping──▶ the aggregated roles that select it ──▶ plan ──▶ apply, if the rules differ
//!                                                                                   (pure)
//! ```
//!
//! # Guarantees
//! - The rules are those of the selected roles, in the order of the selectors, then of the names of the roles. A rule that
//!   occurs several times is written once, at its first place. The role itself adds nothing.
//! - Correct rules are not written.
//! - An aggregated role is not changed while a role that it selects, or may select, cannot be decoded.
//! - The request carries the uid: a role that was recreated under the same name is not changed, and no role is created.
//!
//! # What it does not do
//! It changes no role without an `aggregationRule`. Of the fields that other clients apply it changes the rules only.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/clusterroleaggregation` of Kubernetes 1.37.2. `docs/differences.md` has the differences that
//! all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A change enqueues the aggregated roles that select the changed role. | A change enqueues all aggregated roles. | A cluster has hundreds of roles. |
//! | The request carries the uid. | The request carries the name only. | If the role is deleted meanwhile, upstream tries to create it. |
//! | A role with an invalid selector is not retried until it changes. | It is retried with back-off. | Only a change helps. |

mod event_mapping;
mod plan;
mod reconcile;
mod view;

#[cfg(test)]
mod tests;

use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::keys_for_cluster_role;
use reconcile::Reconciler;
use view::ClusterRole;

/// The canonical name, and the field manager of what it applies.
const NAME: &str = "clusterrole-aggregation-controller";

/// As upstream.
const WORKERS: usize = 5;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new(NAME, init).aliases(&["clusterrole-aggregation"]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("ClusterRoleAggregator").workers(WORKERS);
    let aggregated = control_loop
        .reads::<ClusterRole>()
        .index("aggregated", |role: &ClusterRole| role.aggregation.is_some().then_some(()));
    let roles =
        control_loop.primary_with(Source::known(), move |change| keys_for_cluster_role(change, &aggregated.get(&())));
    Ok(control_loop.reconcile_objects(roles.clone(), Reconciler { roles }).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
