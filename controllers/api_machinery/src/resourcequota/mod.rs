//! Resource quota controller: computes the usage of each limit of a `ResourceQuota`.
//!
//! Reads `ResourceQuotas`, Pods, Services, `PersistentVolumeClaims`, `ResourceClaims` and `DeviceClasses`, and the metadata
//! of the objects of every other namespaced kind, custom kinds included. Updates the status of `ResourceQuotas`.
//!
//! ```text
//! quota: limits changed, no usage yet ──▶ resourcequota_priority ──┐
//! quota: resync                       ──┐                          ├─▶ observe ──▶ plan ──▶ status
//! object: deleted, or frees something ──┴▶ resourcequota_primary ──┘  (caches)    (pure)    (PUT)
//! kind: its first list is complete    ──▶ one of both
//! ```
//!
//! # Guarantees
//! - The usage of a constraint is the sum over the objects in the caches. It is written for the constraints of `spec.hard`
//!   and for no others.
//! - If a kind cannot be listed, or an object of it in the namespace cannot be decoded, the constraints that count the kind
//!   keep their usage, and no others do. They are computed as soon as the list of the kind is complete.
//! - The status is written with the resource version from which it was computed. If the API server has charged the quota
//!   meanwhile, it is computed again. It is not written if limits and usage are equal in value.
//! - A deletion, or an update that frees something that a quota counts, enqueues the quotas that count the object. Such
//!   updates are: a Pod with other resources, with an added or removed deadline, or that has finished; a Service with
//!   another type; a `PersistentVolumeClaim` with another size or other volume attributes classes.
//! - Fields of the `ResourceQuota` that this version does not know survive every write.
//! - The caches, shared with other controllers, hold half a kilobyte of each Pod, and only the metadata of kinds that are
//!   only counted.
//!
//! # What it does not do
//! It rejects nothing: the API server compares requests with the usage, and adds the objects that it admits.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/resourcequota` and `pkg/quota/v1` of Kubernetes 1.37.2. `docs/differences.md` has the
//! differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A quota waits for the kinds that it counts, for 5 s. | A quota waits for all kinds, without limit at the start. | A slow kind among 300 delays no quota. |
//! | Quotas are computed when the first list of a kind that they count is complete. | They are computed by the next resync. | A constraint on a newly defined kind blocks nothing for minutes. |
//! | Quotas are enqueued by the constraints of their spec. | They are enqueued by the constraints of their status. | The first usage may be out of date when it is written. |
//! | A Pod enqueues quotas if the resources with which it is charged have changed. | It does if the resources of any container status have changed. | The first status of each container changes no usage. |
//! | A claim enqueues quotas if its size or its volume attributes classes have changed. | It does at every update, by a comparison of pointers. | It takes fewer requests. |
//! | The usages of several device classes with one extended resource are added up. | One of them counts, at random. | The usage is the same in every sync. |
//! | A priority class in a scope may have more than 63 letters. | Such a quota counts nothing. | The name of a priority class may be that long. |
//! | Informers change the queues directly. | They do through a queue of changes. | It takes less memory. The queue `resource_quota_controller_resource_changes` does not exist. |
//! | A quota whose kinds are not known is computed again when they are. | It is retried with back-off. | It takes fewer requests. |
//! | A quota without limits is not written. | It is written at each resync. | The write would not change it. |

mod evaluator;
mod event_mapping;
mod explain;
mod kinds;
mod observe;
mod plan;
mod reconcile;
mod replenish;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::FutureExt as _;
use kcm_framework::api::views::{ChargedPod, ResourceQuota};
use kcm_framework::api::{Need, ObjectKey};
use kcm_framework::informers::Change;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};
use parking_lot::Mutex;

use event_mapping::{QueueName, queue_of_change};
use kinds::Kinds;
use reconcile::Reconciler;
use replenish::Quotas;
use settings::{Gates, SYNC_PERIOD, SYNCS};

const NAME: &str = "resourcequota-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new(NAME, init)
    .aliases(&["resourcequota"])
    .needs(&[Need::part::<ChargedPod>()])
    .settings(const { &[SYNCS.row(), SYNC_PERIOD.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let control_loop = |name| context.control_loop::<ObjectKey>(name).workers(&SYNCS);
    let mut all_quotas = control_loop("resourcequota_primary");
    let mut urgent_quotas = control_loop("resourcequota_priority");
    let quotas = Arc::new(Quotas {
        informer: context.informers().informer::<ResourceQuota>(kcm_framework::informers::ListOptions::default()),
        primary: all_quotas.queue(),
        priority: urgent_quotas.queue(),
        gates: Gates::read(|gate| context.gate(gate)),
        pods: context.part()?,
        clock: Arc::clone(context.clock()),
        classes: Mutex::default(),
        runs: AtomicBool::new(false),
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
    let resynced = Source::known().resync_every(context.get(&SYNC_PERIOD)?.unsigned());
    let primary = all_quotas.primary_with(resynced, keys_of(QueueName::Primary));
    let priority = urgent_quotas.primary_with(Source::known(), keys_of(QueueName::Priority));

    let reconciler = Reconciler { quotas, kinds: Arc::clone(&kinds) };
    let started = context.clone();
    Ok(Loops::new()
        .with(all_quotas.reconcile_objects(primary, reconciler.clone()))
        .with(urgent_quotas.reconcile_objects(priority, reconciler))
        .task("resource_quota_kinds", move |cancel| {
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
        }))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
