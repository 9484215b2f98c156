//! Rolls the template of each deployment out to pods, by way of replica sets: one for each template.
//!
//! Reads deployments, replica sets and pods. Creates, changes, deletes, adopts and releases replica sets, and writes the
//! status and the revision of deployments; a deployment itself only to roll it back where an annotation asks for that.
//!
//! ```text
//! change of a deployment, a replica set, or the last pod ──wiring──▶ key
//!                                                                     │
//!   observe ──▶ claim ──▶ adopt, release ──▶ plan ──▶ create, edit, delete ──▶ report ──▶ look again
//!   (caches)   (shared)      (shared)       (pure)          (apply)           (pure)     after the deadline
//!                                             │
//!                sets: which one is new       rollout: how many replicas each has       status: what is said
//! ```
//!
//! The first course that applies is taken (`plan.rs`): selects everything, being deleted, paused, to be rolled back,
//! scaled, then the strategy.
//!
//! # Guarantees
//! - A replica set belongs to the deployment that its controller reference means, by uid, as long as its selector wants
//!   it. One is adopted only after the API server itself has said, in the same reconcile, that the deployment is there
//!   and not being deleted. If a claim fails, nothing else is done.
//! - The new replica set is the oldest whose template equals the deployment's, as the API serves both; see
//!   [`same_template`](kcm_api::same_template). There is never a second one for a template: its name depends on nothing
//!   else, and a name that is taken for another template is counted in `status.collisionCount`.
//! - All replica sets together never want more than `replicas + maxSurge`, and what is available never falls below
//!   `replicas − maxUnavailable` by our doing; see `rollout/`.
//! - Nothing is done twice because a cache is behind, or because an answer was lost: see
//!   [`Session`](kcm_framework::Session).
//! - A replica set that has or wants replicas, whose status is of an earlier generation, or that is being deleted is not
//!   deleted, and one that anybody has changed meanwhile is looked at again first.
//! - What this version does not know of a deployment, a replica set or a template survives every write.
//! - The status is written only when it differs, at most once a reconcile, and says which generation it speaks of.
//!
//! # What it does not do
//! Pods are the replica set controller's business, and replica sets of a deleted deployment the garbage collector's.
//! Overlapping selectors are not resolved: who adopts first has the replica set.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/deployment` of Kubernetes 1.36.3. Everything else is as there, texts of events and
//! conditions included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | read-your-own-writes of the framework | none: what is done from an old cache ends in a conflict, mostly | holds for every controller |
//! | what a reconcile has to say is written once, at its end | in up to three writes, of which the later ones conflict and are tried again | fewer writes; a condition that another one replaces in the same reconcile is not seen |
//! | a replica set is changed in one write: notes, revision, size | each in its own, and twice where an old set loses first what is unavailable and then what is spare | fewer writes; the event tells the whole step |
//! | names end in a hash of our own, in upstream's alphabet | in a hash of Go's printed structures | templates are found by being equal, not by their hash |
//! | a taken name is no collision if the set is for the template and nobody's | a collision | it is adopted as soon as the cache shows it |
//! | a deployment that is being deleted has its status kept | its new replica set and its revision are renewed too | the garbage collector is at work |
//! | a rollback waits until the present template has its replica set | both at once, the second of which conflicts | |
//! | what became of a rollback is told after it was written | before, and again after each conflict | |
//! | a failure to shrink an old replica set ends the reconcile, which is tried again | is not noticed | |
//! | replicas that a status counts beyond its size are not taken for available | for available in part | a status that is behind must not cost availability; see `rollout/rolling.rs` |
//! | deletions carry uid and version of the replica set | no precondition | a set that was just scaled up, or a namesake, is never deleted |
//! | a rollout that has ended is not watched for its deadline | again and again at once, as long as pods are missing | it cannot fail any more |
//! | a check that is due within a second is made after one | at once, with back-off | |
//! | a revision that is no number keeps all notes of its set from being renewed | unless `minReadySeconds` changes too | |
//! | an owner reference needs kind, name and uid | the uid, in claims | one rule for wiring and claims |
//! | during a recreation the last pod of each replica set enqueues the deployment, when it finished or is gone | the last pod of all, when it is gone; replica sets are listed live for that | a recreation waits for pods that may run, of old replica sets |
//! | an old replica set that a paused deployment scales up is not deleted by the same reconcile | is deleted, where it exceeds the history limit | it gets the pods |
//! | a relist that shows the same version wakes nobody | wakes the deployment | nothing changed; a resync still wakes |
//! | the live check before adoption reads metadata only | the whole object | |
//! | a selector or a strategy that is invalid waits for a change | retries | only a change helps |
//! | a missing permission is retried after a minute | back-off | design of the framework: it takes a person |
//! | `--concurrent-deployment-syncs` below 1 is refused | accepted, and nothing runs | |

mod annotations;
mod apply;
#[doc(hidden)]
pub mod bench;
mod conditions;
mod events;
mod observe;
mod plan;
mod replica_sets;
mod rollback;
mod rollout;
mod settings;
mod status;
mod status_update;
mod wiring;

#[cfg(test)]
mod tests;

use std::future::ready;

use futures::FutureExt as _;
use kcm_api::ObjectKey;
use kcm_api::views::{Deployment, Pod, ReplicaSet};
use kcm_framework::workqueue::Queue;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Running, priority};
use kcm_informers::{HandlerOptions, ListOptions, Origin};

use apply::Reconciler;
use observe::Caches;
use settings::{ROWS, SECTION, Section, Settings};
use wiring::{keys_for_deployment, keys_for_pod, keys_for_replica_set};

/// The controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("deployment-controller", |context| ready(init(context)).boxed())
        .aliases(&["deployment"])
        .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Option<Running>, BoxError> {
    let section: Section = context.settings(SECTION)?;
    let deployments = context.informers().informer::<Deployment>(ListOptions::default());
    let replica_sets = context.informers().informer::<ReplicaSet>(ListOptions::default());
    let pods = context.informers().informer::<Pod>(ListOptions::default());
    let caches = Caches::new(deployments.clone(), replica_sets.clone(), pods.clone());
    let queue = context.queue::<ObjectKey>("deployment");
    add_event_handlers(context, &caches, &queue);
    let reconciler = Reconciler {
        caches,
        settings: Settings::from_gates(|gate| context.gate(gate)),
        clock: context.clock().clone(),
        events: context.recorder(),
    };
    let reconcile = context
        .reconcile_loop(queue, reconciler)
        .workers(section.concurrent_syncs as usize)
        .keyed_by(deployments.cache())
        .reads(replica_sets.cache())
        .reads(pods.cache());
    Ok(Some(Running::new().reconcile(reconcile)))
}

fn add_event_handlers(context: &ControllerContext, caches: &Caches, queue: &Queue<ObjectKey>) {
    let name = context.controller();
    let keys = queue.clone();
    let resync_period = Some(context.resync_period());
    caches.deployments.add_event_handler(HandlerOptions { name, resync_period }, move |change, origin| {
        wake(&keys, keys_for_deployment(change, origin), origin);
    });
    // No resync: what has not changed wakes nobody.
    let (keys, deployments) = (queue.clone(), caches.deployments.clone());
    caches.replica_sets.add_event_handler(HandlerOptions { name, resync_period: None }, move |change, origin| {
        wake(&keys, keys_for_replica_set(change, &deployments), origin);
    });
    let (keys, deployments, lineage) = (queue.clone(), caches.deployments.clone(), caches.lineage());
    caches.pods.add_event_handler(HandlerOptions { name, resync_period: None }, move |change, origin| {
        wake(&keys, keys_for_pod(change, &deployments, &lineage), origin);
    });
}

fn wake(queue: &Queue<ObjectKey>, keys: Vec<ObjectKey>, origin: Origin) {
    for key in keys {
        queue.add(key, priority(origin));
    }
}

kcm_framework::inventory::submit! { DESCRIPTOR }
