//! Horizontal pod autoscaler: sets the replicas of a target so that its metrics come near to what they should be.
//!
//! Reads horizontal pod autoscalers, pods, the scale of any kind, and the metrics APIs `metrics.k8s.io`,
//! `custom.metrics.k8s.io` and `external.metrics.k8s.io`. Writes scales and the status of autoscalers.
//!
//! ```text
//! change ──period──▶ key ──▶ scale (GET), then metrics ──┐ APIs, each with a limit
//!                     ▲                                  │
//!                     └────── responses are there ◀──────┘
//!                     │
//!                     └─▶ evaluate ─▶ normalize ─▶ plan ─▶ scale (PUT) ─▶ status (PUT) ─▶ key after a period
//!                         (pure)      (pure)       (pure)
//! ```
//!
//! # Guarantees
//! - Each autoscaler is synced once in each sync period, whatever changes.
//! - A target never gets more replicas than `maxReplicas` or fewer than `minReplicas`, whatever a metrics API serves.
//! - Of several metrics the highest proposal counts. While one of them fails, nothing is scaled down.
//! - Pods without a sample use their whole request when scaling down (or the target, where that is more), the target of a
//!   metric without requests, and nothing when scaling up. Pods that are not ready use nothing when scaling up, and are left
//!   out otherwise. Where that turns the direction around, nothing is scaled.
//! - Nothing is scaled down below the highest recommendation of the stabilization window, which begins anew with the process.
//! - An API that is slow or dead, of metrics or of a target, delays the autoscalers that need it, and no others: no worker
//!   waits for its response to a read. Each metrics API, and each kind of targets, serves as many reads at once as
//!   `--concurrent-horizontal-pod-autoscaler-syncs` says, each for 34 s at most.
//! - The decision on a target is made from its own scale and metrics: one that is named meanwhile starts anew. What is older
//!   than a sync period when the last of its metrics is there is read again, so that no target is scaled by numbers of long ago.
//! - Of a response of a metrics API 16 MiB are read at most, and what is longer is an error. Of its messages 1024 characters
//!   are shown.
//! - The status is written where it has changed. Fields of the autoscaler that this version does not know survive.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/podautoscaler` of Kubernetes 1.36.3, which has no integration tests of this controller.
//! Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | scales and metrics are read beside the queue | by the worker | k/k#96242, k/k#109496: one dead API held up all autoscalers |
//! | what is older than a period when all metrics are there is read again | never | a hung API, or its limit, may hold up a sync for long |
//! | metrics of one resource and selector are requested once in a sync | once for each metric | requests |
//! | replicas, utilization and sums that exceed their type are the most that it holds | wrap around, so that a flood scales down | a metrics API is not trusted |
//! | a value of a pod that is no quantity counts as missing | the response is an error | one wrong value does not hold up an autoscaler |
//! | the values of an external metric with a negative sum scale to the minimum | with an `AverageValue` target a sum that is negative on the way counts as the most that 64 bits hold, and scales up | a metrics API is not trusted; scaling down stays within the bounds |
//! | responses of metrics APIs have a limit of 16 MiB, their messages of 1024 characters | none | a flood must not take the memory of all controllers |
//! | while the API server is not reachable, a request is repeated as the framework repeats it, and not reported | is reported in event and condition | an outage is none of the autoscaler |
//! | a status that is not written as the autoscaler is gone is no error | event `FailedUpdateStatus` | there is no object to which the event belongs |
//! | a selector that cannot be parsed is reported with the message of our parser | of apimachinery's | the condition, the reason and the text around it are upstream's |
//! | after a conflict of the scale whose read fails, too, the sync ends with the conflict | the same scale is put again, up to five times | it is the version that was refused |
//! | scales are written through the client of the status | of scales | the framework tracks writes of one client |
//! | the version of the custom metrics API is asked for through the client of custom metrics | of the status | an API that is slow or asked for often must not hold up statuses |
//! | the metric of desired replicas ends with its autoscaler | stays | memory |
//! | what is remembered of an autoscaler ends when it is deleted | at its next sync | |
//! | with the gate `HPASyncOnSpecChange` a new autoscaler, or one whose spec has changed, is synced at once | after a period | as Kubernetes 1.37; off by default |
//! | `--concurrent-horizontal-pod-autoscaler-syncs` below 1 is rejected | accepted, and no worker runs | |

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
use std::sync::atomic::{AtomicI64, Ordering};

use futures::FutureExt as _;
use kcm_api::Need;
use kcm_api::views::{AutoscaledPod, HorizontalPodAutoscaler, Pod};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};
use kcm_informers::Change;

use backends::Backends;
use event_mapping::keys_for_autoscaler;
use gather::Gathering;
use limit::Count;
use metrics::Metrics;
use reconcile::Reconciler;
use scale::Scales;
use selected_pods::SelectedPods;
use settings::{CONCURRENT_SYNCS, Gates, ROWS, SYNC_ON_SPEC_CHANGE, Section, Settings};

/// The canonical name.
const NAME: &str = "horizontal-pod-autoscaler-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new(NAME, init)
    .aliases(&["horizontalpodautoscaling"])
    .service_account("horizontal-pod-autoscaler")
    .event_component("horizontal-pod-autoscaler")
    .feature_gates(&[SYNC_ON_SPEC_CHANGE])
    .needs(&[Need::part::<AutoscaledPod>()])
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let section: Section = context.settings_of()?;
    let settings = Settings { section, gates: Gates::read(|gate| context.gate(gate)) };
    let (period, on_spec_change) = (section.sync_period.unsigned(), context.gate(&SYNC_ON_SPEC_CHANGE));
    let metrics = Metrics::register(context.metrics());

    let mut syncs = context.control_loop("horizontalpodautoscaler").workers_from(CONCURRENT_SYNCS).writes_anything();
    let (counted, count) = (metrics.clone(), AtomicI64::new(0));
    let keys = move |change: &Change<HorizontalPodAutoscaler>| {
        let added = match change {
            Change::Added(_) => 1,
            Change::Deleted { .. } => -1,
            Change::Updated { .. } => 0,
        };
        counted.count(count.fetch_add(added, Ordering::Relaxed) + added);
        [keys_for_autoscaler(change, period, on_spec_change)]
    };
    let autoscalers = syncs.watches(keys);
    syncs.keyed_by(&autoscalers);
    let pods = syncs.reads::<Pod>();

    let limit: Count = Arc::new(context.live_count(CONCURRENT_SYNCS));
    let backends = Backends::new(context, &limit, period);
    let scales = Arc::new(Scales::new(context.named_client("scale"), limit));
    let gathering = Gathering::new(backends, Arc::clone(&scales), period, syncs.queue());
    let reconciler = Reconciler {
        autoscalers,
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
    Ok(Loops::new().with(syncs.reconcile(reconciler)).task("horizontalpodautoscaler_metrics", move |cancel| {
        let gathering = Arc::clone(&gathering);
        async move {
            // Cancelled, it has nothing to clean up.
            let _ended = cancel.run_until_cancelled(gathering.run()).await;
            Ok(())
        }
        .boxed()
    }))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
