//! Pod garbage collector: deletes pods that no kubelet will delete, and the oldest of too many terminated ones.
//!
//! Reads pods and nodes. Updates the status of pods and deletes pods.
//!
//! ```text
//! every 20 s: pods, nodes ──▶ missing nodes ──quarantine──▶ live look ──▶ plan ──▶ status, deletion
//!             (caches)           (pure)         (pure)                   (pure)
//! ```
//!
//! Four kinds of pods are deleted, in this order:
//!
//! | reason | which pods |
//! | --- | --- |
//! | `terminated` | those beyond `--terminated-pod-gc-threshold`, evicted ones first, then the oldest |
//! | `out-of-service` | terminating on a node that is not ready and has the taint `node.kubernetes.io/out-of-service` |
//! | `orphaned` | assigned to a node that does not exist |
//! | `unscheduled` | terminating and never assigned to a node |
//!
//! # Guarantees
//! - A pod is orphaned only after its node was missing in the cache for 40 seconds without a break, and a live read showed
//!   that it does not exist. A node that cannot be read exists.
//! - A pod that has not ended becomes `Failed` before it is deleted, and an orphan also gets the condition
//!   `DisruptionTarget` with the reason `DeletionByPodGC`. If the status cannot be written, the pod is not deleted.
//! - Status and deletion carry the uid of the pod: one that was recreated under the same name is left alone. The deletion
//!   has no grace period.
//! - A round begins 20 seconds after the last one has ended, and not before the caches show what that one wrote.
//! - A pod that cannot be deleted holds up no other; the next round tries again.
//!
//! # What it does not do
//! Finalizers of pods are left to their owners. Pods of nodes that exist belong to the kubelet and to the eviction by taints.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/podgc` of Kubernetes 1.36.3. Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | deletions have the uid of the pod as a precondition | no precondition | a pod that was recreated under the same name is not deleted |
//! | a pod that is gone or recreated meanwhile is no error | counts as one | nothing is left to do |
//! | a pod is deleted once in a round | once for each reason | requests |
//! | a node that returns ends its quarantine | the quarantine goes on | a node that is missing again has 40 seconds again |
//! | 16 pods are deleted at once | orphans and unscheduled pods one by one, others all at once | |
//! | no queue `orphaned_pods_nodes` | a queue with metrics | the quarantine is a map |
//! | a terminating pod whose node is missing is not logged as an error | is, in every round | it is an orphan soon |

mod apply;
mod collector;
mod failed_status;
mod metrics;
mod plan;
mod quarantine;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kcm_api::Need;
use kcm_api::views::{Node, Pod, PodDisruption};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};
use parking_lot::Mutex;

use collector::Collector;
use metrics::Metrics;
use quarantine::Quarantine;
use settings::{ROWS, Section};

/// From the end of a round to the next.
const PERIOD: Duration = Duration::from_secs(20);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("pod-garbage-collector-controller", init)
    .aliases(&["podgc"])
    .service_account("pod-garbage-collector")
    .needs(&[Need::part::<PodDisruption>()])
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let section: Section = context.settings_of()?;
    let mut rounds = context.control_loop("pod_garbage_collector");
    let collector = Arc::new(Collector {
        pods: rounds.reads::<Pod>(),
        nodes: rounds.reads::<Node>(),
        disruptions: context.part()?,
        threshold: section.threshold,
        quarantine: Mutex::new(Quarantine::default()),
        metrics: Metrics::register(context.metrics()),
    });
    let rounds = rounds.periodic(PERIOD, move |session| {
        let collector = Arc::clone(&collector);
        async move {
            collector.run(&session).await;
            Ok(())
        }
        .boxed()
    });
    Ok(Loops::new().with(rounds))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
