//! Stateful set controller: keeps pods with identities, each with its name, its number and its claims, and rolls the pod
//! template out to them one by one.
//!
//! Reads stateful sets, pods, controller revisions and persistent volume claims. Creates, patches, deletes, adopts and
//! releases pods. Creates claims, and updates their owner references. Creates, renumbers, deletes and adopts controller
//! revisions. Updates the status of stateful sets.
//!
//! ```text
//! event of a stateful set, a pod or a claim ──event mapping──▶ key
//!                                                              │
//!   observe ──▶ claim ──▶ adopt, release ──▶ revisions ──▶ plan ──▶ create, repair, delete ──▶ status ──▶ history
//!   (caches)   (pure)       (framework)     (pure, apply)  (pure)          (apply)            (apply)    (apply)
//! ```
//!
//! The plan (`plan.rs`) has four phases: the pods of the range of ordinals, the claims of surplus pods, surplus pods, and
//! the rollout (`rollout.rs`).
//!
//! # Guarantees
//! - There are never two pods of one ordinal: the name of a pod is that of the stateful set and the ordinal, and a deletion
//!   has the uid of the pod as a precondition.
//! - A pod is created after its claims, and not while one of them is being deleted or belongs to an earlier pod of its name
//!   that the retention policy deletes it with. The end of such a claim enqueues the stateful set.
//! - In order (`OrderedReady`) a pod is created only when those of lower ordinals are available, surplus pods are deleted
//!   from the highest ordinal while all that stay are available, and no more than one pod is deleted in a reconcile. In
//!   parallel, pods are created and deleted in slow-start batches.
//! - A rollout deletes a pod only when all pods of higher ordinals are updated and available, or as many at once as
//!   `maxUnavailable` allows with the gate `MaxUnavailableStatefulSet`. Pods below the partition have the current revision.
//! - The data of a revision is equal in bytes to that of upstream, and so is its name: a change of controller managers
//!   restarts no pod. See `shared/revisions`.
//! - A revision that a pod or the status names is never deleted for the history limit.
//! - No step is repeated because of a stale cache or a lost response: see [`Session`](kcm_framework::Session).
//! - Fields of a stateful set, a template or a claim that this version does not know survive every write.
//!
//! # What it does not do
//! Claims are deleted by the garbage collector, which follows their owner references. A rollout in order that waits for a
//! pod which can never become available waits until a person deletes the pod, as upstream, unless the gate
//! `StatefulSetRolloutRecovery` is on.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/statefulset` of Kubernetes 1.36.3. Everything else is as there, messages of events
//! included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | the framework reads its own writes | since 1.36 a comparison of versions, and a retry | holds for every controller; `statefulset_controller_stale_sync_skips_total` stays 0 |
//! | with the gate `StatefulSetRolloutRecovery` a pod that is not ready, of an earlier revision of which no pod is, is replaced in order (`recovery.rs`) | waits until a person deletes the pod | kubernetes/kubernetes#67250; off by default |
//! | new claims have the owner reference of the retention policy | a second write adds it | fewer writes, and no claim is left behind between the two |
//! | a claim whose owner references change is read live | comes from the cache | the cache does not have whole claims |
//! | the pod is not written if only the owners of its claims change; the event is recorded | a write without changes | fewer writes |
//! | the identity of a pod is patched, with its resource version | the whole pod is updated | unknown fields survive |
//! | the end of a claim enqueues the stateful sets that select it | no event; a retry with back-off, or none | a pod that waits for its claim is created at once |
//! | a pod with a name such as `web-01` or `web-4294967296` is ignored | takes the place of `web-1`, and updates of it fail for ever | |
//! | deletions of pods and revisions have the uid as a precondition | no precondition | an object recreated under the same name is not deleted |
//! | `status.currentReplicas` falls for deleted pods of the current revision | for every deleted pod, also below 0, which the API server rejects | |
//! | for a stateful set that is being deleted no revision is created or renumbered | as for any other | the garbage collector deletes them |
//! | conditions in the status survive | are removed | |
//! | the status is written once; a conflict requeues the key | is retried from the cache up to five times | |
//! | one reconcile considers 5000 missing pods at most | all, which for 2147483647 replicas needs more memory than there is | |
//! | a pod without a volume of a claim is patched by `$retainKeys`, and the API server rejects it | is updated, and the API server rejects it | |
//! | the metrics of a stateful set end with it | stay | |
//! | an owner reference must match kind, name and uid | the uid, in claims | one rule for event mapping and claims |
//! | `--concurrent-statefulset-syncs` below 1 is rejected | accepted, and no worker runs | |

mod apply;
mod claim_work;
mod error;
mod event_mapping;
mod events;
mod explain;
mod identity;
mod metrics;
mod new_objects;
mod observe;
mod plan;
mod reconcile;
mod recovery;
mod retention;
mod revisions;
mod rollout;
mod settings;
mod status;
mod steps;

#[cfg(test)]
mod tests;

use std::future::ready;

use futures::FutureExt as _;
use kcm_api::Need;
use kcm_api::views::{ControllerRevision, PersistentVolumeClaim, Pod, PodVolumes, StatefulSet};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use event_mapping::{keys_for_claim, keys_for_pod, owners};
use metrics::Metrics;
use observe::Caches;
use reconcile::Reconciler;
use settings::{CONCURRENT_SYNCS, ROLLOUT_RECOVERY, ROWS, Settings};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new_async("statefulset-controller", |context| ready(init(context).map(Some)).boxed())
        .aliases(&["statefulset"])
        .settings(ROWS)
        .feature_gates(&[ROLLOUT_RECOVERY])
        .needs(&[Need::part::<PodVolumes>()]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut described = context.control_loop("statefulset").workers_from(CONCURRENT_SYNCS);
    let sets = described.primary::<StatefulSet>();
    let of_pods = owners(sets.clone());
    let of_claims = of_pods.clone();
    let pods = described.watches::<Pod, _>(move |change| keys_for_pod(change, &of_pods));
    let claims = described.watches::<PersistentVolumeClaim, _>(move |change| keys_for_claim(change, &of_claims));
    let revisions = described.reads::<ControllerRevision>();
    let reconciler = Reconciler {
        caches: Caches::new(sets, &pods, &revisions, claims),
        volumes: context.part()?,
        settings: Settings::from_gates(|gate| context.gate(gate)),
        metrics: Metrics::register(context.metrics()),
    };
    Ok(Loops::new().with(described.reconcile(reconciler)))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
