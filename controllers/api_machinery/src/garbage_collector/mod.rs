//! Garbage collector: deletes objects whose owners are deleted, and carries out the deletion policies of owners:
//! background, foreground, and orphan.
//!
//! Reads the metadata of all objects that can be deleted, listed and watched, including custom objects and objects of
//! aggregated API servers. Deletes objects; removes owner references and the finalizers `foregroundDeletion` and `orphan`.
//!
//! ```text
//! discovery ──▶ informers ──change──▶ graph ──uid──▶ attempt to delete ──▶ live reads ──▶ plan ──▶ requests
//!                (metadata)           (pure)    └──▶ attempt to orphan ──────────────────────────▶ requests
//! ```
//!
//! # Guarantees
//! - An object is deleted only after live reads of the object and of each owner that it names showed that no owner exists,
//!   or that the existing owners wait for it. An owner that was seen deleted is not read again: no uid is used twice.
//! - A deletion carries uid and resource version. An object that was changed or recreated meanwhile is read again.
//! - An owner whose uid differs from the uid in the reference does not exist. If the kind of an owner is not served, its
//!   dependents are kept. An owner does not wait for dependents whose kind is not served.
//! - `orphan` is removed only while all resources that may have dependents are listed and their metadata can be decoded.
//!   `foregroundDeletion` is removed if this holds, or 30 s after discovery has found the resource that cannot be listed.
//!   A group that has not been discovered since the start counts for 30 s. Such a wait delays nothing else.
//! - In a cycle of objects that are deleted in the foreground, one object stops blocking the others.
//! - If an object has a finalizer for orphaning or foreground deletion, it is deleted in that way.
//! - References to owners in other namespaces, and from cluster-scoped objects to namespaced owners, count as references to
//!   owners that do not exist, and are reported by the event `OwnerRefInvalidNamespace`.
//!
//! # What it does not do
//! It deletes no object without an owner reference. It ignores events, and the resources in `GCIgnoredResources`.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/garbagecollector` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Objects are processed when each resource is listed or has failed. | They are processed when all resources are listed, or after 30 s. | A resource that cannot be listed delays nothing (kubernetes#101078). |
//! | Orphaning waits for a resource that cannot be listed, and for an object whose metadata cannot be decoded. | It continues without them 30 s after the start. | Dependents that a user asked to keep would be deleted (kubernetes#110720). |
//! | Foreground deletion waits 30 s for a resource that cannot be listed, also if it appears later. | It waits only at the start. | Dependents are deleted before their owner. |
//! | Decisions wait 30 s for groups that cannot be discovered at the start. | They do not wait. | The dependents of such a group would be deleted, also those that a user asked to keep. |
//! | The event `DependentsUnknown` says that a deletion waits, or that orphaning goes on without a group. | Nothing says so. | An administrator repairs the resource. |
//! | At most 32 dependents of an object are orphaned at the same time. | All are. | One owner does not take all requests. |
//! | Objects of a cycle that users delete in the foreground are all deleted. | They wait for each other without end. | No other client breaks the cycle. |
//! | An object is not read if informers have all its owners. | It is always read. | It takes fewer requests. |
//! | Informers change the graph directly. | They do through a queue of changes. | It takes less memory. The queue `garbage_collector_graph_changes` does not exist. |
//! | An object that is missing in a list is looked up. | It counts as deleted. | An object whose resource is not served for a while keeps its dependents. |
//! | Objects whose kind is not served any more block no foreground deletion. | They block it until a restart. | They cannot be deleted. |
//! | A 404 that names no object counts only if discovery still has the kind. | It always counts. | The API service of the owner may be unavailable for a while. |
//! | An owner that no informer has is forgotten with its last dependent. | It is looked up until it is found. | It takes fewer requests. |
//! | A resource that rejected a strategic merge patch is not patched with one again. | It is tried each time. | It takes fewer requests. |
//! | After a conflict, an object is deleted in the version that was read again. | It is deleted in any version. | It may have got an owner meanwhile. |
//! | All patches carry the uid. | Only strategic merge patches do. | An object that was recreated under the same name is not changed. |
//! | Orphaning is skipped if the finalizer was removed meanwhile. | It continues. | The finalizer was the request to orphan. |
//! | 2,000 absent owners are remembered. | 500 are. | It takes fewer requests. |

mod apply;
mod collect;
mod dump;
mod events;
mod explain;
mod graph;
mod monitors;
mod observe;
mod orphan;
mod plan;
mod settings;
mod shared_graph;
mod undecodable;
mod unknown;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::FutureExt as _;
use kcm_framework::client::ClientLimits;
use kcm_framework::metrics::Stability;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use apply::MergePatched;
use collect::{Collector, Deleter};
use monitors::Monitors;
use orphan::Orphaner;
use settings::{ENABLED, IGNORED_RESOURCES, SYNCS};
use shared_graph::{NodeKey, SharedGraph};
use unknown::Waits;

const NAME: &str = "garbage-collector-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new(NAME, init)
    .aliases(&["garbagecollector"])
    .service_account("generic-garbage-collector")
    .client_limits(ClientLimits::Times { qps: 2, burst: 1 })
    .settings(const { &[SYNCS.row(), ENABLED.row(), IGNORED_RESOURCES.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    if !context.get(&ENABLED)? {
        return Ok(Loops::none("--enable-garbage-collector is false"));
    }
    let control_loop = |name| context.control_loop::<NodeKey>(name).workers(&SYNCS).writes_anything();
    let mut deletions = control_loop("garbage_collector_attempt_to_delete");
    let mut orphanings = control_loop("garbage_collector_attempt_to_orphan");
    let graph = SharedGraph::new(deletions.queue(), orphanings.queue(), context.recorder());
    let discovery = context.discovery().clone();
    let sync_errors = context.metrics().counter(
        Stability::Alpha,
        "garbagecollector_controller_resources_sync_error_total",
        "Times that discovery found no resource, or that resources did not sync in time",
    )?;
    let unsynced = context.metrics().gauges(
        Stability::Alpha,
        "garbagecollector_controller_resources_unsynced",
        ["group", "resource"],
        "Resources that have not been listed 30 seconds after they were discovered: 1 for each",
    )?;
    let monitors = Arc::new(Monitors::new(
        context.informers().clone(),
        discovery.clone(),
        context.get(&IGNORED_RESOURCES)?,
        graph.clone(),
        sync_errors,
        unsynced,
    ));
    let merge_patched = MergePatched::default();
    let collector = Arc::new(Collector {
        graph: graph.clone(),
        monitors: Arc::clone(&monitors),
        discovery,
        merge_patched,
        waits: Waits::default(),
    });
    let started = context.clone();
    Ok(Loops::new()
        .with(deletions.reconcile(Deleter(Arc::clone(&collector))))
        .with(orphanings.reconcile(Orphaner(collector)))
        .task("garbage_collector_monitors", move |cancel| {
            let (monitors, started) = (Arc::clone(&monitors), started.informers_started());
            async move {
                // Metadata is read from the caches that other controllers have created by then.
                let run = async {
                    started.await;
                    monitors.run().await;
                };
                // Cancelled, it has nothing to clean up.
                let _ended = cancel.run_until_cancelled(run).await;
                Ok(())
            }
            .boxed()
        })
        .debug(move |request| graph.with(|graph| dump::page(graph, request))))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
