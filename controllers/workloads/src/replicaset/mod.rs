//! Keeps the number of pods of each replica set at what is asked for.
//!
//! Reads replica sets and pods. Creates, deletes, adopts and releases pods, and writes the status of replica sets.
//!
//! ```text
//! change of a pod or replica set ──wiring──▶ key
//!                                             │
//!   observe ──▶ claim ──▶ adopt, release ──▶ plan ──▶ create, delete ──▶ status ──▶ look again
//!   (caches)   (pure)      (apply)          (pure)      (apply)         (pure)     after minReadySeconds
//! ```
//!
//! # Guarantees
//! - A pod counts when it is active (neither finished nor terminating), controlled by the replica set, by uid, and
//!   selected by it. Finished and terminating pods are replaced at once, and are neither adopted nor released.
//! - A pod is adopted only after the API server itself has said, in the same reconcile, that the replica set is there
//!   and not being deleted. If a claim fails, the replica set is not scaled and its status not written.
//! - Never more than 500 pods are created or deleted in one reconcile; creations start slowly, and end with the first
//!   batch in which one fails. A replica set that is being deleted is left as it is, but its status is kept.
//! - Nothing is done twice because a cache is behind: the framework does not reconcile a key before its writes have
//!   come back (see [`Session`](kcm_framework::Session)). There are no expectations here.
//! - What this version does not know of a replica set, its template included, survives every write.
//! - The status is written only when it differs, and says which generation it speaks of.
//!
//! # What it does not do
//! A change of the template replaces no pod: that is the deployment controller's business. Pods of a deleted replica
//! set are the garbage collector's. Overlapping selectors are not resolved: who adopts first has the pod.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/replicaset` of Kubernetes 1.36.3. Everything else is as there, texts of events and
//! conditions included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | read-your-own-writes of the framework | expectations, and since 1.36 a comparison of versions | holds for every controller, and has no five-minute time-out; so a status is not written while pods are awaited, and `replicaset_controller_stale_sync_skips_total` never counts |
//! | names of pods are made here, beside `generateName` | by the API server | a creation whose answer was lost can be looked up |
//! | deletions carry the uid of the pod | no precondition | a namesake is never deleted; a 409 is neither told nor a failure, but looked at again soon |
//! | in a terminating namespace one creation is tried whenever the replica set is woken | a whole burst, then none for five minutes | without expectations each pod that goes would cost a burst |
//! | deletion ranking is a total order, uid last | pairwise rules that can go in a circle | the result is the same whatever the order of the cache; see `rank.rs` |
//! | an age ratio over a pod without age is left out | division by zero | |
//! | a relist that shows the same version wakes nobody | wakes the replica set | nothing changed; a resync still wakes |
//! | a pod that changes owner while terminating wakes both | only the new owner | the old one would hear of it at its next change |
//! | a status is not written into a namesake | no check of the uid on the second try | |
//! | a status that was told already is left as the API server has it, unknown fields included | written anew | |
//! | the live check before adoption reads metadata only | the whole object | |
//! | a template without labels waits for a change | retries | only a change helps |
//! | a missing permission is retried after a minute | back-off | design of the framework: it takes a person |
//! | `--concurrent-replicaset-syncs` below 1 is refused | accepted, and nothing runs | |

mod apply;
#[doc(hidden)]
pub mod bench;
mod claim;
mod error;
mod events;
mod metrics;
mod observe;
mod plan;
mod pod_template;
mod rank;
mod settings;
mod slow_start;
mod status;
mod wiring;

#[cfg(test)]
mod tests;

use std::future::ready;

use futures::FutureExt as _;
use kcm_api::ObjectKey;
use kcm_api::views::{Pod, ReplicaSet};
use kcm_framework::workqueue::Queue;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Running, priority};
use kcm_informers::{HandlerOptions, ListOptions, Origin};

use apply::Reconciler;
use metrics::Metrics;
use observe::Caches;
use settings::{ROWS, SECTION, Section, Settings};
use wiring::{Wake, keys_for_pod, keys_for_replica_set};

/// The kind that controller references name.
const KIND: &str = "ReplicaSet";

/// The controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("replicaset-controller", |context| ready(init(context)).boxed())
        .aliases(&["replicaset"])
        .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Option<Running>, BoxError> {
    let section: Section = context.settings(SECTION)?;
    let replica_sets = context.informers().informer::<ReplicaSet>(ListOptions::default());
    let pods = context.informers().informer::<Pod>(ListOptions::default());
    let caches = Caches::new(replica_sets.clone(), pods.clone());
    let queue = context.queue::<ObjectKey>("replicaset");
    add_event_handlers(context, &caches, &queue);
    let reconciler = Reconciler {
        caches,
        settings: Settings::from_gates(|gate| context.gate(gate)),
        clock: context.clock().clone(),
        events: context.recorder(),
        metrics: Metrics::register(context.metrics()),
    };
    let reconcile = context
        .reconcile_loop(queue, reconciler)
        .workers(section.concurrent_syncs as usize)
        .keyed_by(replica_sets.cache())
        .reads(pods.cache());
    Ok(Some(Running::new().reconcile(reconcile)))
}

fn add_event_handlers(context: &ControllerContext, caches: &Caches, queue: &Queue<ObjectKey>) {
    let name = context.controller();
    let known = caches.replica_sets.clone();
    let keys = queue.clone();
    let resync_period = Some(context.resync_period());
    caches.replica_sets.add_event_handler(HandlerOptions { name, resync_period }, move |change, origin| {
        wake(&keys, keys_for_replica_set(change, origin), origin);
    });
    let keys = queue.clone();
    // No resync: a pod that has not changed wakes nobody.
    caches.pods.add_event_handler(HandlerOptions { name, resync_period: None }, move |change, origin| {
        wake(&keys, keys_for_pod(change, &known), origin);
    });
}

fn wake(queue: &Queue<ObjectKey>, wakes: Vec<Wake>, origin: Origin) {
    let priority = priority(origin);
    for Wake { key, after } in wakes {
        if after.is_zero() {
            queue.add(key, priority);
        } else {
            queue.add_after(key, after, priority);
        }
    }
}

kcm_framework::inventory::submit! { DESCRIPTOR }
