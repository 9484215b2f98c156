//! Horizontal pod autoscaler: sets the replicas of a target so that its metrics come near to what they should be.
//!
//! Reads horizontal pod autoscalers, pods, the scale of any kind, and the metrics APIs `metrics.k8s.io`,
//! `custom.metrics.k8s.io` and `external.metrics.k8s.io`. Writes scales and the status of autoscalers.
//!
//! ```text
//! change ──period──▶ key ──▶ scale (GET) ──▶ requests ──┐ metrics APIs, each with a limit
//!                     ▲                                 │
//!                     └────── responses are there ◀─────┘
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
//! - A metrics API that is slow or dead delays the autoscalers that need it, and no others: no worker waits for one. Each
//!   serves as many requests at once as `--concurrent-horizontal-pod-autoscaler-syncs` says, each for 34 s at most.
//! - The status is written where it has changed. Fields of the autoscaler that this version does not know survive.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/podautoscaler` of Kubernetes 1.36.3. Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | metrics are requested beside the queue | by the worker | k/k#96242, k/k#109496: one dead API held up all autoscalers |
//! | metrics of one resource and selector are requested once in a sync | once for each metric | requests |
//! | replicas, utilization and sums that exceed their type are the most that it holds | wrap around, so that a flood scales down | a metrics API is not trusted |
//! | a value of a pod that is no quantity counts as missing | the response is an error | one wrong value does not hold up an autoscaler |
//! | a request without an answer is repeated as the framework repeats it, and not reported | is reported in event and condition | an outage is none of the autoscaler |
//! | scales are written through the client of the status | of scales | the framework tracks writes of one client |
//! | the metric of desired replicas ends with its autoscaler | stays | memory |
//! | what is remembered of an autoscaler ends when it is deleted | at its next sync | |
//! | with the gate `HPASyncOnSpecChange` a new autoscaler, or one whose spec has changed, is synced at once | after a period | as Kubernetes 1.37; off by default |
//! | `--concurrent-horizontal-pod-autoscaler-syncs` below 1 is rejected | accepted, and no worker runs | |

mod apply;
mod backends;
mod calculator;
mod conditions;
mod evaluate;
mod events;
mod gather;
mod history;
mod metrics;
mod normalize;
mod plan;
mod reconcile;
mod requests;
mod responses;
mod scale;
mod selectors;
mod settings;
mod spec;
mod status;
mod wiring;
mod words;

#[cfg(test)]
mod tests;

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::FutureExt as _;
use kcm_api::Need;
use kcm_api::views::{AutoscaledPod, HorizontalPodAutoscaler, Pod};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Running};
use kcm_informers::Change;

use backends::Backends;
use gather::Gathering;
use metrics::Metrics;
use reconcile::Reconciler;
use settings::{CONCURRENT_SYNCS, Gates, ROWS, SYNC_ON_SPEC_CHANGE, Section, Settings};
use wiring::keys_for_autoscaler;

/// The canonical name.
const NAME: &str = "horizontal-pod-autoscaler-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new(NAME, |context| ready(init(context)).boxed())
    .aliases(&["horizontalpodautoscaling"])
    .service_account("horizontal-pod-autoscaler")
    .event_component("horizontal-pod-autoscaler")
    .feature_gates(&[SYNC_ON_SPEC_CHANGE])
    .needs(&[Need::part::<AutoscaledPod>()])
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Option<Running>, BoxError> {
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

    let limit = usize::try_from(section.concurrent_syncs).unwrap_or(1);
    let gathering = Gathering::new(Backends::new(context, limit, period), syncs.queue());
    let reconciler = Reconciler {
        autoscalers,
        pods,
        part: context.part()?,
        discovery: context.discovery().clone(),
        scales: context.named_client("scale"),
        gathering: Arc::clone(&gathering),
        selectors: selectors::Selectors::default(),
        histories: parking_lot::Mutex::default(),
        settings,
        metrics,
    };
    Ok(Some(Running::new().with(syncs.reconcile(reconciler)).task("horizontalpodautoscaler_metrics", move |cancel| {
        let gathering = Arc::clone(&gathering);
        async move {
            // Cancelled, it has nothing to clean up.
            let _ended = cancel.run_until_cancelled(gathering.run()).await;
            Ok(())
        }
        .boxed()
    })))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
