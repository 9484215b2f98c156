//! Cluster role aggregation: keeps the rules of a cluster role with an `aggregationRule` equal to those of the roles that
//! it selects.
//!
//! Reads cluster roles. Applies the rules of aggregated ones.
//!
//! ```text
//! change of a cluster role ──▶ the aggregated roles that select it ──▶ union of rules ──▶ apply, if it differs
//!                               (wiring)                                (plan)
//! ```
//!
//! # Guarantees
//! - The rules are those of the selected roles, selector by selector, by the names of the roles, each rule once, where it
//!   comes first. The role itself adds nothing.
//! - Rules that are right already are not written.
//! - An aggregated role stays as it is while one that it selects, or may select, cannot be decoded.
//! - The request carries the uid: a role that was recreated under the same name is not changed, and none is created.
//!
//! # What it does not do
//! It changes no role without an `aggregationRule`. Fields that others apply stay theirs, but for the rules.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/clusterroleaggregation` of Kubernetes 1.36.3. Everything else is as there, the field manager
//! included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | a change enqueues the roles that select the changed one | all aggregated roles | a cluster has hundreds of roles |
//! | the request carries the uid | the name alone | a deletion meanwhile would end in an attempt to create the role |
//! | a selector that is invalid is not tried again until the role changes | with back-off | nothing else mends it |

mod plan;
mod reconcile;
mod view;
mod event_mapping;

#[cfg(test)]
mod tests;

use kcm_framework::{ControllerContext, ControllerDescriptor, Loops, Source};

use reconcile::Reconciler;
use view::ClusterRole;
use event_mapping::keys_for_cluster_role;

/// The canonical name, and the field manager of what it applies.
const NAME: &str = "clusterrole-aggregation-controller";

/// As upstream.
const WORKERS: usize = 5;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new(NAME, |context| Ok(init(context)))
        .aliases(&["clusterrole-aggregation"]);

fn init(context: &ControllerContext) -> Loops {
    let mut roles = context.control_loop("ClusterRoleAggregator").workers(WORKERS);
    let all = roles.reads::<ClusterRole>();
    roles.keyed_by(&all);
    let aggregated = all.index("aggregated", |role: &ClusterRole| role.aggregation.is_some().then_some(()));
    let informer =
        roles.watches_for(Source::known(), move |change| keys_for_cluster_role(change, &aggregated.get(&())));
    Loops::new().with(roles.reconcile(Reconciler { roles: informer }))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
