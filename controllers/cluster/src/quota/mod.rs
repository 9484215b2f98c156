//! Resource quota controller: computes how much of each limit of a resource quota is used.
//!
//! Reads resource quotas; pods, services, persistent volume claims, resource claims and device classes; and the metadata
//! of the objects of every other namespaced kind, custom ones included. Updates the status of resource quotas.
//!
//! ```text
//! quota: limits changed, no usage yet ──▶ resourcequota_priority ──┐
//! quota: resync                       ──┐                          ├─▶ observe ──▶ plan ──▶ status
//! object: deleted, or frees something ──┴▶ resourcequota_primary ──┘  (caches)    (pure)    (PUT)
//! kind: its first list is complete    ──▶ one of both
//! ```
//!
//! # Guarantees
//! - The usage of a constraint is the sum over the objects that the caches show, as a naive sum over the API would be. It is
//!   written for the constraints of `spec.hard` and for no others.
//! - A kind that cannot be listed, or of which an object in the namespace cannot be decoded, holds up the constraints that
//!   count it, which keep their usage, and no others. They are computed as soon as its list is complete.
//! - The status is written with the resource version that it was computed from: where the API server has charged the quota
//!   meanwhile, it is computed again. It is not written where limits and usage are equal in value.
//! - An object that is gone, or an update that frees what a quota counts, has the quotas computed again that count it. These
//!   updates are: pods, whose resources have changed, that have or lack a deadline now, or that are finished; services,
//!   whose type has changed; persistent volume claims, whose size or volume attributes classes have changed.
//! - Fields of the quota that this version does not know survive every write.
//! - Of pods half a kilobyte is kept, and of kinds that are counted only metadata, in the caches that other controllers have.
//!
//! # What it does not do
//! It refuses nothing: the API server compares requests with the usage, and adds what it admits.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/resourcequota` and `pkg/quota/v1` of Kubernetes 1.36.3. Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | a quota waits for the kinds that it counts, for 5 s | for all kinds, for ever at the start | a slow kind among 300 keeps no quota from being computed |
//! | quotas are computed when the first list of a kind that they count is complete | by the next resync | the constraint on a kind that has just been defined blocks nothing for minutes |
//! | quotas are replenished by the constraints of their spec | of their status | the first usage may be out of date when it is written |
//! | a pod replenishes when the resources that it is charged with have changed | when those of any container status have | the first status of each container changes no usage |
//! | a claim replenishes when its size or its volume attributes classes have changed | at every update, by a comparison of pointers | requests |
//! | usage of several device classes with one extended resource is added up | one of them counts, at random | |
//! | a priority class in a scope may have more than 63 letters | the quota then counts nothing | |
//! | informers change the queues at once | through a queue of changes | memory; so the queue `resource_quota_controller_resource_changes` is not there |
//! | a quota whose kinds are not known is computed again when they are | is retried with back-off | requests |
//! | a quota without limits is not written | is written at each resync | it would not change |
//! | `--concurrent-resource-quota-syncs` below 1 is rejected | accepted, and no worker runs | |

mod apply;
mod evaluator;
mod event_mapping;
mod kinds;
mod observe;
mod plan;
mod reconcile;
mod replenish;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::FutureExt as _;
use kcm_api::views::{ChargedPod, ResourceQuota};
use kcm_api::{Need, ObjectKey};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};
use kcm_informers::Change;
use parking_lot::Mutex;

use event_mapping::{QueueName, queue_of_change};
use kinds::Kinds;
use reconcile::Reconciler;
use replenish::Quotas;
use settings::{CONCURRENT_SYNCS, Gates, ROWS, Section};

/// The canonical name.
const NAME: &str = "resourcequota-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new(NAME, init)
    .aliases(&["resourcequota"])
    .needs(&[Need::part::<ChargedPod>()])
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let section: Section = context.settings_of()?;
    let control_loop = |name| context.control_loop::<ObjectKey>(name).workers_from(CONCURRENT_SYNCS);
    let (mut primary, mut priority) = (control_loop("resourcequota_primary"), control_loop("resourcequota_priority"));
    let quotas = Arc::new(Quotas {
        informer: context.informers().informer::<ResourceQuota>(kcm_informers::ListOptions::default()),
        primary: primary.queue(),
        priority: priority.queue(),
        gates: Gates::read(|gate| context.gate(gate)),
        pods: context.part()?,
        clock: Arc::clone(context.clock()),
        classes: Mutex::default(),
    });
    let kinds = Arc::new(Kinds::new(context.informers().clone(), context.discovery().clone(), Arc::clone(&quotas)));
    kinds.start_known();

    let keys_of = |queue: QueueName| {
        let kinds = Arc::downgrade(&kinds);
        move |change: &Change<ResourceQuota>| {
            // Without the kinds the controller has ended.
            let kinds = kinds.upgrade()?;
            let is_of_queue = queue_of_change(change, |name| kinds.is_counted(name)) == Some(queue);
            is_of_queue.then(|| change.key().clone())
        }
    };
    let resynced = Source::known().resync_every(section.sync_period.unsigned());
    let informer = primary.watches_for(resynced, keys_of(QueueName::Primary));
    primary.keyed_by(&informer);
    let informer = priority.watches(keys_of(QueueName::Priority));
    priority.keyed_by(&informer);

    let reconciler = Reconciler { quotas, kinds: Arc::clone(&kinds) };
    let started = context.clone();
    Ok(Loops::new().with(primary.reconcile(reconciler.clone())).with(priority.reconcile(reconciler)).task(
        "resource_quota_kinds",
        move |cancel| {
            let (kinds, started) = (Arc::clone(&kinds), started.informers_started());
            async move {
                // Metadata is read from the caches that other controllers have created by then.
                let run = async {
                    started.await;
                    kinds.run().await;
                };
                // Cancelled, it has nothing to clean up.
                let _ended = cancel.run_until_cancelled(run).await;
                Ok(())
            }
            .boxed()
        },
    ))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
