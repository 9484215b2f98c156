//! `StatefulSet` controller: keeps pods with identities, each with its name, its number and its claims, and rolls the
//! pod template out to them one by one.
//!
//! Reads `StatefulSets`, Pods, `ControllerRevisions` and `PersistentVolumeClaims`. Creates, patches, deletes, adopts
//! and releases Pods. Creates `PersistentVolumeClaims`, and updates their owner references. Creates, renumbers, deletes
//! and adopts `ControllerRevisions`. Updates the status of `StatefulSets`.
//!
//! ```text
//! event of a stateful set, a pod or a claim ──event mapping──▶ key
//!                                                              │
//!   observe ──▶ claim ──▶ requeue after  ──▶ adopt, release ──▶ revisions ──▶ plan ──▶ create, repair, delete
//!   (caches)   (pure)     minReadySeconds     (framework)    (pure, apply)  (pure)          (apply)
//!                                                                                   ──▶ status ──▶ history
//!                                                                                       (apply)    (apply)
//! ```
//!
//! The plan (`plan.rs`) has four phases: the pods of the range of ordinals, the claims of surplus pods, surplus pods, and
//! the rollout (`rollout.rs`). The strategy `Recreate` has a phase before them instead of the last one (`recreate.rs`).
//!
//! # Guarantees
//! - An ordinal never has two pods: the name of a pod consists of the name of the `StatefulSet` and the ordinal.
//! - A pod is created after its claims, and not while one of them is being deleted or belongs to an earlier pod of its name
//!   with which the retention policy deletes it. The deletion of such a claim enqueues the `StatefulSet`.
//! - In order (`OrderedReady`) a pod is created only if the pods of lower ordinals are available, surplus pods are deleted
//!   from the highest ordinal while all other pods are available, and at most one pod is deleted in a reconcile. In
//!   parallel, pods are created and deleted in slow-start batches.
//! - With the gate `MaxUnavailableStatefulSet` a rollout deletes as many available pods at once as `maxUnavailable`
//!   allows. In parallel, it also deletes every unavailable pod of an old revision. Without the gate it deletes a pod only
//!   if all pods of higher ordinals are updated and available. Pods below the partition have the current revision.
//! - With the strategy `Recreate` (gate `StatefulSetRecreateStrategy`) pods of two revisions never exist together. If the
//!   strategy is not carried out, no pod is changed, and the event `UnknownStrategy` gives the reason.
//! - The data of a revision has the same bytes as upstream's, and the revision has the same name: a change of controller
//!   managers restarts no pod. See `shared/revisions`.
//! - A revision that a pod or the status names is never deleted for the history limit.
//! - Fields of a `StatefulSet`, a template or a claim that this version does not know survive every write.
//!
//! # What it does not do
//! The garbage collector deletes claims; it follows their owner references. A rollout in order that waits for a pod which
//! can never become available waits until somebody deletes the pod, as upstream, unless the gate
//! `StatefulSetRolloutRecovery` is on.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/statefulset` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share. Messages of events are the same.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | With the gate `StatefulSetRolloutRecovery`, a rollout also replaces a broken pod of an earlier revision if no pod of that revision is ready (`recovery.rs`). | The rollout waits until somebody deletes the pod. | kubernetes/kubernetes#67250. The gate is off by default. |
//! | New claims have the owner reference of the retention policy. | A second write adds it. | Fewer writes, and no claim stays without it between the two. |
//! | A claim whose owner references change is read live. | It is taken from the cache. | The cache does not have whole claims. |
//! | A pod is not written if only the owners of its claims change; the event is recorded. | The pod is written without changes. | Fewer writes. |
//! | The identity of a pod is patched, with its resource version. | The whole pod is updated. | Unknown fields survive. |
//! | The deletion of a claim enqueues the `StatefulSets` that select it. | It enqueues none; the creation of the pod is retried with back-off, or not at all. | A pod that waits for its claim is created at once. |
//! | A pod with a name such as `web-01` or `web-4294967296` is ignored. | It takes the place of `web-1`, and updates of it fail for ever. | Such a name belongs to no ordinal. |
//! | `status.currentReplicas` is reduced for deleted pods of the current revision. | It is reduced for every deleted pod, also below 0, which the API server rejects. | It counts pods of the current revision. |
//! | For a `StatefulSet` that is being deleted no revision is created or renumbered. | Revisions are created and renumbered as for any other. | The garbage collector deletes them. |
//! | If the strategy is one of a later release, no pod is changed, with the event `UnknownStrategy`. | The pods are rolled. | Only the later release knows when pods may be deleted. |
//! | The strategy `Recreate` without its gate does not keep the status of a `StatefulSet` that is being deleted from being written. | Its status is not written. | No pod is changed in any case. |
//! | The status is updated once; a conflict requeues the key. | The update is retried from the cache up to five times. | The cache does not change meanwhile. |
//! | One reconcile considers 5000 missing pods at most. | It considers all. | 2147483647 replicas need more memory than there is. |
//! | A pod without a volume of a claim is patched by `$retainKeys`, and the API server rejects it. | It is updated, and the API server rejects it. | The identity is a patch. |
//! | The metrics of a `StatefulSet` are removed with it. | They stay. | The metrics do not grow for ever. |

mod apply;
mod claim_work;
mod error;
mod event_mapping;
mod events;
mod explain;
mod gates;
mod identity;
mod metrics;
mod new_objects;
mod observe;
mod plan;
mod reconcile;
mod recovery;
mod recreate;
mod retention;
mod revisions;
mod rollout;
mod status;
mod steps;

#[cfg(test)]
mod tests;

use kcm_framework::api::Need;
use kcm_framework::api::views::{ControllerRevision, PersistentVolumeClaim, Pod, PodVolumes, StatefulSet};
use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use event_mapping::{keys_for_claim, keys_for_pod, owners};
use gates::{Gates, ROLLOUT_RECOVERY};
use metrics::Metrics;
use observe::Caches;
use reconcile::Reconciler;

const SECTION: Section = Section::new("Statefulset-controller", "StatefulSetController");
const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-statefulset-syncs", "ConcurrentStatefulSetSyncs", "StatefulSets", 5);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("statefulset-controller", init)
    .aliases(&["statefulset"])
    .settings(const { &[SYNCS.row()] })
    .feature_gates(&[ROLLOUT_RECOVERY])
    .needs(&[Need::part::<PodVolumes>()]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("statefulset").workers(&SYNCS);
    let sets = control_loop.primary::<StatefulSet>();
    let of_pods = owners(sets.clone());
    let of_claims = of_pods.clone();
    let pods = control_loop.watches::<Pod, _>(move |change| keys_for_pod(change, &of_pods));
    let claims = control_loop.watches::<PersistentVolumeClaim, _>(move |change| keys_for_claim(change, &of_claims));
    let revisions = control_loop.reads::<ControllerRevision>();
    let reconciler = Reconciler {
        caches: Caches::new(&pods, &revisions, claims),
        volumes: context.part()?,
        gates: Gates::read(|gate| context.gate(gate)),
        metrics: Metrics::register(context.metrics())?,
    };
    Ok(control_loop.reconcile_objects(sets, reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
