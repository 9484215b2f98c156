//! Disruption controller: computes how many pods of each pod disruption budget may be evicted.
//!
//! Reads pod disruption budgets, pods, replication controllers, replica sets, deployments and stateful sets, and the
//! `scale` of any other kind that controls pods. Updates the status of pod disruption budgets, and a condition of pods.
//!
//! ```text
//! pod, budget ──event mapping──▶ disruption ──▶ observe ──▶ scales ──▶ plan ──▶ status (PUT)
//!                                              (caches)   (caches,    (pure)
//!                                                          requests)
//! pod ──event mapping──▶ stale_pod_disruption ──▶ warning, condition DisruptionTarget (PATCH)
//! ```
//!
//! # Guarantees
//! - The status is written to the version of the budget that it was computed from. Where the API server has admitted an
//!   eviction meanwhile, it refuses the status, which is computed again (kubernetes/kubernetes#82149).
//! - A pod whose eviction was admitted does not count as healthy until it is deleted, or two minutes have passed.
//! - What may be evicted is zero while the number of expected pods is zero or cannot be computed. The condition
//!   `DisruptionAllowed` then has the reason.
//! - `maxUnavailable`, and `minAvailable` as a percentage, are relative to the sum of `spec.replicas` of the controllers
//!   of the pods, each counted once: replication controllers, stateful sets, replica sets or their deployments, and
//!   every kind with a `scale`. `minAvailable` as a number is relative to nothing.
//! - A change of a pod enqueues the budgets that select it before and after the change. Event handlers do nothing else, so
//!   that a budget that takes long holds up no other (kubernetes/kubernetes#82930).
//! - The condition `DisruptionTarget` of a pod becomes false when it was true for two minutes and the pod is not being
//!   deleted; not where the kubelet has set it, or the pod has ended.
//!
//! # What it does not do
//! It admits no eviction: the API server does, by this status. `unhealthyPodEvictionPolicy` is read there alone.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/disruption` of Kubernetes 1.36.3. Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | `--concurrent-disruption-syncs` workers | one worker | one slow `scale` holds up all budgets (kubernetes/kubernetes#140014); the default is one |
//! | an invalid selector or percentage has another message | that of its parser | the same is said |
//! | replicas that are more in sum than a number of 32 bits are the largest one | wrap around | |
//! | `MultiplePodDisruptionBudgets` is recorded once for changes of a pod in quick succession, and not for a deleted one | for each change, also the deletion | the pod is reconciled, and a deleted one cannot be evicted |
//! | a pod enqueues all budgets that select it, before and after its change | one of those after it | the others keep a wrong number otherwise |
//! | a budget whose expected pods cannot be computed is retried with back-off | it waits for a change | the `scale` may be readable soon, and no event tells |
//! | a status whose answer was lost is computed again, and not replaced by one that allows nothing | is replaced | it may have taken effect |
//! | the status that allows nothing is written where the budget does not have it | in each failing sync | requests |
//! | an owner of a version that is not served is read in the version that its group prefers | the computation fails | the object is the same |
//! | the condition of a pod is patched, with its version | its whole status is put | unknown fields survive |
//! | a key waits in its own queue to be computed again | in a queue `disruption_recheck`, which `workqueue_*` metrics name | one queue is enough |
//! | a deletion that is admitted two minutes ago to the nanosecond has timed out | is checked again at once | |
//! | a budget that is gone is no error | is retried | nothing is left to do |

mod apply;
mod controllers;
mod event_mapping;
mod events;
mod explain;
mod plan;
mod reconcile;
mod review;
mod selector_text;
mod settings;
mod stale;
mod status;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_api::views::{Pod, PodDisruption, PodDisruptionBudget};
use kcm_api::{Need, ObjectKey};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};
use kcm_informers::{Change, Informer};

use controllers::Scales;
use event_mapping::{keys_for_pod, keys_for_review};
use reconcile::Reconciler;
use review::{ChangedPods, Reviewer};
use settings::{CONCURRENT_SYNCS, ROWS};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("disruption-controller", init)
    .aliases(&["disruption"])
    .event_component("controllermanager")
    .needs(&[Need::part::<PodDisruption>()])
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut budgets = context.control_loop::<ObjectKey>("disruption").workers_from(CONCURRENT_SYNCS);
    let informer = budgets.primary::<PodDisruptionBudget>();
    let selecting = informer.clone();
    let reconciler = Reconciler {
        pods: budgets.watches::<Pod, _>(move |change| keys_for_pod(change, &in_namespace_of(change, &selecting))),
        scales: Scales {
            replication_controllers: budgets.reads(),
            replica_sets: budgets.reads(),
            deployments: budgets.reads(),
            stateful_sets: budgets.reads(),
            client: context.scale_client(),
        },
        budgets: informer,
    };

    let mut pods = context.control_loop::<ObjectKey>("stale_pod_disruption");
    let (disruptions, clock) = (context.part::<PodDisruption>()?, Arc::clone(context.clock()));
    let informer = pods.reads::<PodDisruptionBudget>();
    let selecting = informer.clone();
    let changed = ChangedPods::default();
    let noted = changed.clone();
    let watched = pods.watches::<Pod, _>(move |change| {
        let enqueued = keys_for_review(change, &in_namespace_of(change, &selecting), disruptions, clock.now());
        enqueued.inspect(|enqueued| noted.add(enqueued))
    });
    pods.keyed_by(&watched);
    let reviewer = Reviewer { budgets: informer, pods: watched, disruptions, changed };

    Ok(Loops::new().with(budgets.reconcile(reconciler)).with(pods.reconcile(reviewer)))
}

/// The budgets of the namespace of a changed pod.
fn in_namespace_of(change: &Change<Pod>, budgets: &Informer<PodDisruptionBudget>) -> Vec<Arc<PodDisruptionBudget>> {
    budgets.in_namespace(change.key().namespace().unwrap_or_default())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
