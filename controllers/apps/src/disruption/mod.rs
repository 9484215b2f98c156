//! Disruption controller: computes the number of Pods of each PodDisruptionBudget that may be evicted.
//!
//! Reads PodDisruptionBudgets, Pods, ReplicationControllers, ReplicaSets, Deployments and StatefulSets, and the `scale` of
//! any other kind that controls Pods. Updates the status of PodDisruptionBudgets, and a condition of Pods.
//!
//! ```text
//! Pod, budget ──event mapping──▶ disruption ──▶ observe ──▶ scales ──▶ plan ──▶ status (PUT)
//!                                              (caches)   (caches,    (pure)
//!                                                          requests)
//! Pod ──event mapping──▶ stale_pod_disruption ──▶ warning, condition DisruptionTarget (PATCH)
//! ```
//!
//! # Guarantees
//! - The status is written to the version of the budget that it was computed from. If the API server has admitted an
//!   eviction meanwhile, it refuses the status, which is computed again (kubernetes/kubernetes#82149).
//! - A Pod whose eviction was admitted does not count as healthy until it is deleted, or two minutes have passed. The status is
//!   computed again at the end of these two minutes, also if its last update has failed.
//! - No disruption is allowed while the number of expected Pods is zero or cannot be computed. The condition
//!   `DisruptionAllowed` then has the reason.
//! - `maxUnavailable`, and `minAvailable` as a percentage, are relative to the sum of `spec.replicas` of the controllers
//!   of the Pods, each counted once: ReplicationControllers, StatefulSets, ReplicaSets or their Deployments, and every kind
//!   with a `scale`. `minAvailable` as a number is relative to nothing.
//! - A Pod that cannot be decoded is neither expected nor healthy, so that it allows no additional disruption.
//! - A change of a Pod enqueues the budgets that select it before and after the change. Event handlers do nothing else, so
//!   that a slow budget delays no other (kubernetes/kubernetes#82930).
//! - The condition `DisruptionTarget` of a Pod becomes false if it was true for two minutes and the Pod is not being
//!   deleted; not if the kubelet has set it, or the Pod has ended.
//!
//! # What it does not do
//! It admits no eviction: the API server does, by this status. Only the API server reads `unhealthyPodEvictionPolicy`.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/disruption` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | The message about an invalid selector or percentage is our own. | The message is that of Go's parser. | It says the same. |
//! | The sum of replicas is limited to a number of 32 bits. | The sum wraps around. | A wrong sum would allow evictions. |
//! | `MultiplePodDisruptionBudgets` is recorded once for changes of a Pod in quick succession, and not for a deleted Pod. | It is recorded for each change, also for the deletion. | A deleted Pod cannot be evicted. |
//! | A Pod enqueues all budgets that select it before or after its change. | It enqueues one of those that select it after the change. | The other budgets would keep a wrong number. |
//! | A budget whose expected Pods cannot be computed because a request fails is retried with back-off. If the controller or its `scale` does not exist, it is retried after a minute, and then every 10 minutes. | It waits for a change. | The `scale` may be readable soon, and no event tells. |
//! | A status whose response was lost is computed again. | It is replaced by a status that allows nothing. | It may have taken effect. |
//! | The status that allows nothing is written if the budget does not have it. | It is written in each failing sync. | It costs no needless requests. |
//! | An owner in a version that is not served is read in the preferred version of its group. | It makes the computation fail. | The object is the same. |
//! | The condition of a Pod is patched, with the version of the Pod. | The whole status of the Pod is updated. | Unknown fields survive. |
//! | A key waits in the queue `disruption` to be computed again. | It waits in the queue `disruption_recheck`, which `workqueue_*` metrics name. | One queue is enough. |
//! | A budget that does not exist is no error. | It is retried. | There is nothing to do. |

mod apply;
mod controllers;
mod event_mapping;
mod events;
mod explain;
mod plan;
mod reconcile;
mod review;
mod selector_text;
mod stale;
mod status;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::api::Need;
use kcm_framework::api::views::{PodDisruption, PodDisruptionBudget};
use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::informers::LabelIndex;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use controllers::Scales;
use event_mapping::{BudgetsByLabel, keys_for_pod, keys_for_review};
use reconcile::Reconciler;
use review::{ChangedPods, Reviewer};

const SECTION: Section = Section::new("Disruption-controller", "DisruptionController");
const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-disruption-syncs", "ConcurrentDisruptionSyncs", "PodDisruptionBudgets", 1);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("disruption-controller", init)
    .aliases(&["disruption"])
    .event_component("controllermanager")
    .needs(&[Need::part::<PodDisruption>()])
    .settings(const { &[SYNCS.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut budgets = context.control_loop("disruption").workers(&SYNCS);
    let informer = budgets.primary::<PodDisruptionBudget>();
    let selecting = BudgetsByLabel::new(&informer);
    let watched = budgets.watches(move |change| keys_for_pod(change, &selecting));
    let reconciler = Reconciler {
        pods_by_label: LabelIndex::new(&watched),
        scales: Scales {
            replication_controllers: budgets.reads(),
            replica_sets: budgets.reads(),
            deployments: budgets.reads(),
            stateful_sets: budgets.reads(),
            client: context.scale_client(),
        },
    };
    let budgets = budgets.reconcile_objects(informer, reconciler);

    let mut pods = context.control_loop("stale_pod_disruption");
    let (disruptions, clock) = (context.part::<PodDisruption>()?, Arc::clone(context.clock()));
    let budgets_by_label = BudgetsByLabel::new(&pods.reads());
    let selecting = budgets_by_label.clone();
    let changed = ChangedPods::default();
    let noted = changed.clone();
    let watched = pods.primary_with(Source::known(), move |change| {
        let enqueued = keys_for_review(change, &selecting, disruptions, clock.now());
        enqueued.inspect(|enqueued| noted.add(enqueued))
    });
    let pods = pods.reconcile_objects(watched, Reviewer { budgets: budgets_by_label, disruptions, changed });

    Ok(Loops::new().with(budgets).with(pods))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
