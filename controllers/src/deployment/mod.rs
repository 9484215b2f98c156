//! Rolls a template out to pods, by way of replica sets.

mod annotations;
mod apply;
mod conditions;
mod notice;
mod observe;
mod plan;
mod rollback;
mod rollout;
mod sets;
mod settings;
mod status;
mod wiring;

#[cfg(test)]
mod tests;

use std::future::ready;

use futures::FutureExt as _;
use kcm_api::ObjectKey;
use kcm_api::views::{Deployment, Pod, ReplicaSet};
use kcm_framework::workqueue::Queue;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Running, priority};
use kcm_informers::{Origin, Scope, Subscription};

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
    let deployments = context.informers().informer::<Deployment>(Scope::default());
    let replica_sets = context.informers().informer::<ReplicaSet>(Scope::default());
    let pods = context.informers().informer::<Pod>(Scope::default());
    let caches = Caches::new(deployments.clone(), replica_sets.clone(), pods.clone());
    let queue = context.queue::<ObjectKey>("deployment");
    subscribe(context, &caches, &queue);
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

fn subscribe(context: &ControllerContext, caches: &Caches, queue: &Queue<ObjectKey>) {
    let name = context.controller();
    let keys = queue.clone();
    let resync = Some(context.resync_period());
    caches.deployments.subscribe(Subscription { name, resync }, move |change, origin| {
        wake(&keys, keys_for_deployment(change, origin), origin);
    });
    // No resync: what has not changed wakes nobody.
    let (keys, deployments) = (queue.clone(), caches.deployments.clone());
    caches.replica_sets.subscribe(Subscription { name, resync: None }, move |change, origin| {
        wake(&keys, keys_for_replica_set(change, &deployments), origin);
    });
    let (keys, deployments, lineage) = (queue.clone(), caches.deployments.clone(), caches.lineage());
    caches.pods.subscribe(Subscription { name, resync: None }, move |change, origin| {
        wake(&keys, keys_for_pod(change, &deployments, &lineage), origin);
    });
}

fn wake(queue: &Queue<ObjectKey>, keys: Vec<ObjectKey>, origin: Origin) {
    for key in keys {
        queue.add(key, priority(origin));
    }
}

kcm_framework::inventory::submit! { DESCRIPTOR }
