//! Horizontal pod autoscaler: sets the replicas of a target so that its metrics approach their targets.
//!
//! Reads `HorizontalPodAutoscalers`, Pods, the scale of any kind, and the metrics APIs `metrics.k8s.io`,
//! `custom.metrics.k8s.io` and `external.metrics.k8s.io`. Writes scales and the status of `HorizontalPodAutoscalers`.
//!
//! ```text
//! change ───────────▶ key ──▶ scale (GET), then metrics ──┐ APIs, each with a limit
//!                     ▲                                  │
//!                     └─────── all responses ◀───────────┘
//!                     │
//!                     └─▶ evaluate ─▶ normalize ─▶ plan ─▶ scale (PUT) ─▶ status (PUT) ─▶ key after a period
//!                         (pure)      (pure)       (pure)
//!
//! scaling to zero: status (PUT) ─▶ scale (PUT) ─▶ status (PUT)
//! ```
//!
//! # Guarantees
//! - A new autoscaler, and one whose spec has changed, is synced at once. Each is synced again a period after its last sync,
//!   whatever changes and whichever write fails.
//! - A target that was scaled to zero by its metrics is scaled up by them, whichever write fails and whenever the process
//!   ends. A target that a user has scaled to zero stays there.
//! - A target never gets more replicas than `maxReplicas` or fewer than `minReplicas`, whatever a metrics API serves.
//! - Of several metrics the highest proposal counts. While one of them fails, nothing is scaled down.
//! - Pods without a sample use their whole request when scaling down (or the target, if it is higher), the target of a
//!   metric without requests, and nothing when scaling up. Pods that are not ready use nothing when scaling up, and are left
//!   out otherwise. If this reverses the direction, nothing is scaled.
//! - Nothing is scaled down below the highest recommendation of the stabilization window, which starts with the process.
//! - An API of metrics or targets that is slow or does not respond delays the autoscalers that need it, and no others: no
//!   worker waits for its response to a read. Each metrics API, and each kind of targets, serves at most
//!   `--concurrent-horizontal-pod-autoscaler-syncs` reads at the same time, each for 34 s at most.
//! - The decision on a target uses its own scale and metrics. If another target is named meanwhile, the sync starts again.
//!   Responses that are older than a sync period when the last metric is read are read again.
//! - At most 16 MiB of a response of a metrics API are read; a longer response is an error. At most 1024 characters of its
//!   messages are shown.
//! - The status is written only if it has changed. Fields of the autoscaler that this version does not know survive.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/podautoscaler` of Kubernetes 1.37.2.
//! `docs/differences.md` has the differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Scales and metrics are read beside the queue. | A worker reads them. | One API that did not respond delayed all autoscalers (kubernetes#96242, kubernetes#109496). |
//! | Responses that are older than a period when all metrics are read are read again. | They are never read again. | An API that hangs, or its limit, may delay a sync for long. |
//! | Metrics of one resource and selector are requested once in a sync. | They are requested once for each metric. | It takes fewer requests. |
//! | Replicas, utilization and sums that exceed their type are cut to its maximum, and so is the average value of a target without replicas. | They wrap around, so that a high load scales down; an average value without replicas is the least number of 64 bits. | A metrics API is not trusted. |
//! | `ScaledToZero` is written before the target is scaled to zero. It ends with the first sync that finds replicas. | It is written after the target is scaled, and changes when the target is scaled again. | If the second write was lost, the target stayed at zero. |
//! | A scale that was sent, and whose outcome is unknown, counts for the policies of a behavior. | It does not count. | Too little change is safe. |
//! | If several autoscalers select the same Pods, the message names the first two by name. | It names two in random order. | The message does not change while the cluster does not. |
//! | If the API server sets no generation (before 1.37), a change of the spec is found by comparing specs. | The change is synced after a period. | The response to a change does not depend on the API server. |
//! | An autoscaler that cannot be decoded gets the event `FailedDecode`. | It cannot be listed, and no autoscaler is synced. | The event names the object to repair. |
//! | `horizontal_pod_autoscaler_controller_stale_sync_skips_total` stays 0. | It counts syncs that are skipped because the cache is stale. | A key waits for its own writes. |
//! | A value of a Pod that is no quantity counts as missing. | The response is an error. | One wrong value does not delay an autoscaler. |
//! | Values of an external metric with a negative sum scale to the minimum. | If an `AverageValue` target has a negative partial sum, the sum counts as the maximum of 64 bits, and scales up. | A metrics API is not trusted, and scaling down stays within the bounds. |
//! | A response of a metrics API has a limit of 16 MiB, its messages of 1024 characters. | There is no limit. | A response must not take the memory of all controllers. |
//! | While the API server cannot be reached, a request is repeated by the framework, and not reported. | It is reported as event and condition. | An outage is no error of the autoscaler. |
//! | If the autoscaler is deleted before its status is written, there is no error. | The event `FailedUpdateStatus` is recorded. | The object of the event does not exist. |
//! | An invalid selector is reported with the message of our parser. | It is reported with the message of apimachinery. | The parser is our own; condition, reason and the text around it are as upstream. |
//! | If the scale cannot be read after a conflict, the sync ends with the conflict. | The same scale is written again, up to five times. | The API server has rejected this version. |
//! | Scales are written through the client of the status. | They are written through the client of scales. | The framework tracks the writes of one client. |
//! | The version of the custom metrics API is read through the client of custom metrics. | It is read through the client of the status. | A slow API must not delay statuses. |
//! | The metric of desired replicas ends with its autoscaler. | It stays. | It takes less memory. |
//! | The history of an autoscaler ends when it is deleted. | It ends at the next sync. | A recreated autoscaler starts without a history. |

mod apply;
mod backends;
mod calculator;
mod conditions;
mod evaluate;
mod event_mapping;
mod events;
mod explain;
mod failure_message;
mod gather;
mod history;
mod limit;
mod metrics;
mod normalize;
mod plan;
mod reconcile;
mod requests;
mod responses;
mod scale;
mod selected_pods;
mod selectors;
mod settings;
mod spec;
mod status;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::FutureExt as _;
use kcm_framework::api::Need;
use kcm_framework::api::views::{AutoscaledPod, HorizontalPodAutoscaler, Pod};
use kcm_framework::informers::Change;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use backends::Backends;
use event_mapping::keys_for_autoscaler;
use gather::Gathering;
use limit::Count;
use metrics::Metrics;
use reconcile::Reconciler;
use scale::Scales;
use selected_pods::SelectedPods;
use settings::{
    CPU_INITIALIZATION_PERIOD, DOWNSCALE_STABILIZATION, INITIAL_READINESS_DELAY, SYNC_PERIOD, SYNCS, Settings,
    TOLERANCE,
};

const NAME: &str = "horizontal-pod-autoscaler-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new(NAME, init)
    .aliases(&["horizontalpodautoscaling"])
    .service_account("horizontal-pod-autoscaler")
    .event_component("horizontal-pod-autoscaler")
    .needs(&[Need::part::<AutoscaledPod>()])
    .settings(
        const {
            &[
                SYNCS.row(),
                CPU_INITIALIZATION_PERIOD.row(),
                DOWNSCALE_STABILIZATION.row(),
                INITIAL_READINESS_DELAY.row(),
                SYNC_PERIOD.row(),
                TOLERANCE.row(),
            ]
        },
    );

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let settings = Settings::read(context)?;
    let (period, by_generation) = (settings.sync_period.unsigned(), settings.gates.generation);
    let metrics = Metrics::register(context.metrics())?;

    let mut control_loop = context.control_loop("horizontalpodautoscaler").workers(&SYNCS).writes_anything();
    let (counted, cached) = (metrics.clone(), control_loop.reads::<HorizontalPodAutoscaler>());
    let keys = move |change: &Change<HorizontalPodAutoscaler>| {
        counted.count(cached.len());
        [keys_for_autoscaler(change, period, by_generation)]
    };
    let autoscalers = control_loop.primary_with(Source::known(), keys);
    let pods = control_loop.reads::<Pod>();

    let limit: Count = Arc::new(context.live(&SYNCS));
    let backends = Backends::new(context, &limit, period);
    let scales = Arc::new(Scales::new(context.named_client("scale"), limit));
    let gathering = Gathering::new(backends, Arc::clone(&scales), period, control_loop.queue());
    let reconciler = Reconciler {
        pods: SelectedPods::new(pods),
        part: context.part()?,
        discovery: context.discovery().clone(),
        scales,
        gathering: Arc::clone(&gathering),
        selectors: selectors::Selectors::default(),
        histories: parking_lot::Mutex::default(),
        settings,
        metrics,
    };
    let reconciling = control_loop.reconcile_objects(autoscalers, reconciler);
    let steps = gathering.steps().clone();
    let loops = Loops::from(reconciling).task("horizontalpodautoscaler_metrics", move |cancel| {
        let gathering = Arc::clone(&gathering);
        async move {
            // Cancelled, it has nothing to clean up.
            let _ended = cancel.run_until_cancelled(gathering.run()).await;
            Ok(())
        }
        .boxed()
    });
    Ok(loops.in_steps(&steps))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
