//! Namespace controller: deletes the objects of a terminating namespace, and then its finalizer.
//!
//! Reads namespaces, discovery, and the objects of every namespaced resource, all of them live. Deletes these objects.
//! Updates the status of namespaces, and their `finalize` subresource.
//!
//! ```text
//! event of a terminating namespace ──5 s──▶ key
//!                                            │
//!   read the namespace ──▶ discovery ──▶ delete pods ──▶ delete the rest ──▶ conditions ──▶ next step
//!        (live)             (fresh)        (apply)          (apply)           (pure)         (pure)
//!                                                                                              │
//!                             finalize ◀── nothing remains ─┬─ half the estimate ──▶ requeue ◀─┘
//!                                                           └─ a failure ──▶ back-off
//! ```
//!
//! # Guarantees
//! - The finalizer `kubernetes` is removed only after a round in which discovery was whole and no resource had an object
//!   left. Every resource is listed after the last deletion in it.
//! - Pods are deleted first; nothing else is while a pod remains, or while it is not known whether one does.
//! - One resource that cannot be deleted holds up no other, except pods.
//! - Objects are deleted in the background, so that the API server adds no finalizer for the garbage collector.
//! - A failed update of conditions does not keep a namespace.
//! - A namespace is processed again within a minute, however often it has failed.
//! - Fields of the namespace that this version does not know survive every write.
//!
//! # What it does not do
//! It removes no other finalizer than its own, neither of the namespace nor of the objects in it; the conditions name
//! those that are in the way.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/namespace` of Kubernetes 1.36.3. Everything else is as there, types, reasons and messages
//! of conditions included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | a resource is listed first, and deleted only if it has objects | deleted without a look | most resources of a namespace are empty: half the requests |
//! | objects are not deleted again that are terminating and have no finalizer of the garbage collector | every round deletes all | a deletion would not change them |
//! | four resources of a namespace are deleted at once | one after the other, in random order | time |
//! | lists are read in pages of 500 | whole | memory |
//! | a single deletion has the uid of the object as a precondition | no precondition | an object that was recreated is deleted by the next round |
//! | `NamespaceContentRemaining` and `NamespaceFinalizersRemaining` count pods while only these are being deleted | they say that nothing remains | they name what is in the way (kubernetes#70916) |
//! | other resources wait while it is unknown whether pods remain | they are deleted if pods cannot be listed | the order is a promise |
//! | the message of a discovery failure names the API services | only their groups | an administrator repairs or deletes these (kubernetes#60807) |
//! | the message of a failed request names it | only the answer | it names the kind in the way |
//! | discovery is shared by namespaces that are processed at once | each namespace asks | requests |
//! | `NamespaceDeletionGroupVersionParsingFailure` is never true | true if a group version cannot be parsed | there is nothing to parse |
//! | after five conflicts in a row the finalizer is removed by the next reconcile | endless retries | |
//! | the phase is not written | set to `Terminating` | the API server has set it with the deletion, and allows no other |
//! | a wait is at most an hour | half of any grace period | a clock cannot count all of them |
//! | a missing permission on one kind is retried with back-off | the same | it differs from the other controllers of this project, which wait a minute |
//! | `--concurrent-namespace-syncs` below 1 is rejected | accepted, and no worker runs | |

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
use settings::{CONCURRENT_SYNCS, RETRY_LIMITS, ROWS, Section};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("namespace-controller", init)
    .aliases(&["namespace"])
    .client_limits(ClientLimits::Times { qps: 20, burst: 100 })
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let section: Section = context.settings_of()?;
    let mut namespaces =
        context.control_loop("namespace").workers_from(CONCURRENT_SYNCS).retry_limits(RETRY_LIMITS).writes_anything();
    let source = Source::known().resync_every(section.sync_period.unsigned());
    let informer = namespaces.watches_for(source, keys_for_namespace);
    namespaces.keyed_by(&informer);
    let reconciler = Reconciler { namespaces: informer, discovery: context.discovery().clone() };
    Ok(Loops::new().with(namespaces.reconcile(reconciler)))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
