//! Namespace controller: deletes the objects of a terminating Namespace, and then removes its finalizer.
//!
//! Reads Namespaces, discovery, and the objects of every namespaced resource from the API server. Deletes these objects.
//! Updates the status and the `finalize` subresource of Namespaces.
//!
//! ```text
//! event of a terminating Namespace ──5 s──▶ key
//!                                            │
//!   read the Namespace ──▶ discovery ──▶ delete Pods ──▶ delete the rest ──▶ conditions ──▶ next step
//!        (live)             (fresh)        (apply)          (apply)           (pure)         (pure)
//!                                                                                              │
//!                             finalize ◀── nothing remains ─┬─ half the estimate ──▶ requeue ◀─┘
//!                                                           └─ a failure ──▶ back-off
//! ```
//!
//! # Guarantees
//! - The finalizer `kubernetes` is removed only after a round in which discovery was complete and no resource had an object
//!   left. Every resource is listed after the last deletion in it.
//! - Pods are deleted first. No other object is deleted while a Pod remains, or while it is unknown if one remains.
//! - A resource that cannot be deleted does not delay other resources, unless it is Pods.
//! - Objects are deleted in the background, so that the API server adds no finalizer for the garbage collector.
//! - A failed update of conditions does not keep a Namespace.
//! - A Namespace is reconciled again within a minute, however often it has failed.
//! - Fields of the Namespace that this version does not know survive every write.
//!
//! # What it does not do
//! It removes no finalizer but its own, neither from the Namespace nor from the objects in it. The conditions name the
//! finalizers that remain.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/namespace` of Kubernetes 1.37.2. Types, reasons and messages of conditions are as upstream.
//! `docs/differences.md` has the differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A resource is listed first, and deleted only if it has objects. | It is deleted without a list. | Most resources of a Namespace have no objects: half the requests. |
//! | A terminating object with a grace period, or with finalizers of which none is for the garbage collector, is not deleted again. | It is deleted in every round. | Another deletion would not change it. |
//! | An object whose other metadata is invalid is deleted by name and uid. | The list of its kind fails. | One object does not keep all others of its kind. |
//! | Four resources of a Namespace are deleted at the same time. | They are deleted one after the other, in random order. | It takes less time. |
//! | Lists are read in pages of 500 objects. | They are read as a whole. | They take less memory. |
//! | `NamespaceContentRemaining` and `NamespaceFinalizersRemaining` count Pods while only Pods are being deleted. | They say that nothing remains. | They name the objects that remain (kubernetes#70916). |
//! | Other resources wait while it is unknown if Pods remain. | They are deleted if Pods cannot be listed. | The order is guaranteed. |
//! | The message of a discovery failure names the API services. | It names their groups only. | An administrator repairs or deletes the API services (kubernetes#60807). |
//! | The message of a failed request names the request. | It has the response only. | The request names the kind that cannot be deleted. |
//! | Namespaces that are reconciled at the same time share discovery. | Each reads it. | It takes fewer requests. |
//! | `NamespaceDeletionGroupVersionParsingFailure` is never true. | It is true if a group version cannot be parsed. | There is nothing to parse. |
//! | After five conflicts in a row, the next reconcile removes the finalizer. | The update is retried without end. | One Namespace does not keep a worker. |
//! | The phase is not written. | It is set to `Terminating`. | The API server sets it at the deletion, and allows no other phase. |
//! | A delay is at most an hour. | It is half of the grace period, however long. | A clock cannot count every grace period. |
//! | A missing permission for one kind is retried with back-off, unlike in other controllers here. | It is retried with back-off. | The other kinds are deleted meanwhile. |

mod apply;
mod conditions;
mod content;
mod event_mapping;
mod explain;
mod observe;
mod reconcile;
mod settings;

#[cfg(test)]
mod tests;

use kcm_framework::client::ClientLimits;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::keys_for_namespace;
use reconcile::Reconciler;
use settings::{RETRY_LIMITS, SYNC_PERIOD, SYNCS};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("namespace-controller", init)
    .aliases(&["namespace"])
    .client_limits(ClientLimits::Times { qps: 20, burst: 100 })
    .settings(const { &[SYNCS.row(), SYNC_PERIOD.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop =
        context.control_loop("namespace").workers(&SYNCS).retry_limits(RETRY_LIMITS).writes_anything();
    let resynced = Source::known().resync_every(context.get(&SYNC_PERIOD)?.unsigned());
    let namespaces = control_loop.primary_with(resynced, keys_for_namespace);
    let discovery = context.discovery().clone();
    Ok(control_loop.reconcile_objects(namespaces, Reconciler { discovery }).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
