//! Pod garbage collector: deletes Pods that no kubelet will delete, and the oldest of too many terminated Pods.
//!
//! Reads Pods and Nodes. Updates the status of Pods and deletes Pods.
//!
//! ```text
//! every 20 s: Pods, Nodes ──▶ plan by cache ──▶ status, deletion
//!             (caches)           (pure)              │
//!                 └──▶ missing Nodes ──quarantine──▶ live read ──▶ plan by live Nodes ──▶ status, deletion
//!                         (pure)         (pure)                         (pure)
//! ```
//!
//! Four kinds of Pods are deleted, in this order:
//!
//! | reason | Pods |
//! | --- | --- |
//! | `terminated` | beyond `--terminated-pod-gc-threshold`, evicted ones first, then the oldest |
//! | `out-of-service` | terminating on a Node that is not ready and has the taint `node.kubernetes.io/out-of-service` |
//! | `orphaned` | assigned to a Node that does not exist |
//! | `unscheduled` | terminating and never assigned to a Node |
//!
//! # Guarantees
//! - A Pod is orphaned only after its Node was missing in the cache for 40 seconds without a break, and a live read showed
//!   that the Node does not exist. A Node that cannot be read or decoded counts as existing.
//! - Terminated Pods, and Pods of Nodes that are out of service, are deleted before the first live read.
//! - A Pod that has not ended becomes `Failed` before it is deleted. An orphan also gets the condition `DisruptionTarget` with
//!   the reason `DeletionByPodGC`. If the status cannot be written, the Pod is not deleted.
//! - The status is written to the Pod with the uid that was read. The deletion has no grace period.
//! - A round begins 20 seconds after the last one has ended, and not before the caches show the writes of the last round.
//! - A Pod that cannot be deleted does not stop other deletions; the next round tries again.
//!
//! # What it does not do
//! It removes no finalizers. Pods of Nodes that exist are deleted by the kubelet and by the eviction by taints.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/podgc` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all controllers
//! share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A Pod that was deleted or recreated meanwhile is no error. | It counts as an error. | There is nothing to do. |
//! | A Pod is deleted once in a round. | It is deleted once for each reason. | The second request has no effect. |
//! | A Node that returns ends its quarantine. | Its quarantine goes on. | A Node that is missing again has 40 seconds again. |
//! | Up to 16 Pods are deleted at the same time. | Orphans and unscheduled Pods are deleted one by one, all others at the same time. | A slow deletion delays no other, and the API server is not flooded. |
//! | The quarantine has no queue `orphaned_pods_nodes`. | It is a queue with metrics. | It is a map here. |
//! | A terminating Pod whose Node is missing is not logged as an error. | It is logged in every round. | It is deleted as an orphan soon. |

mod apply;
mod collector;
mod failed_status;
mod metrics;
mod plan;
mod quarantine;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kcm_framework::api::Need;
use kcm_framework::api::views::PodDisruption;
use kcm_framework::config::{Section, Setting};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};
use parking_lot::Mutex;

use collector::Collector;
use metrics::Metrics;
use quarantine::Quarantine;

/// The time from the end of a round to the next.
const PERIOD: Duration = Duration::from_secs(20);

const SECTION: Section = Section::new("Pod-garbage-collector-controller", "PodGCController");
const THRESHOLD: Setting<i32> = SECTION
    .int32("terminated-pod-gc-threshold", "TerminatedPodGCThreshold", 12500)
    .help("Number of terminated pods above which the oldest are deleted. 0 or less: no limit.");

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("pod-garbage-collector-controller", init)
    .aliases(&["podgc"])
    .service_account("pod-garbage-collector")
    .needs(&[Need::part::<PodDisruption>()])
    .settings(const { &[THRESHOLD.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("pod_garbage_collector");
    let collector = Arc::new(Collector {
        pods: control_loop.reads(),
        nodes: control_loop.reads(),
        disruptions: context.part()?,
        threshold: context.get(&THRESHOLD)?,
        quarantine: Mutex::new(Quarantine::default()),
        metrics: Metrics::register(context.metrics())?,
    });
    let rounds = control_loop.periodic(PERIOD, move |session| {
        let collector = Arc::clone(&collector);
        async move {
            collector.run(&session).await;
            Ok(())
        }
        .boxed()
    });
    Ok(rounds.into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
