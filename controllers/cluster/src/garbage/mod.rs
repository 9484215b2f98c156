//! Garbage collector: deletes objects whose owners are gone, and carries out how owners are deleted: in the background, in
//! the foreground, or with their dependents orphaned.
//!
//! Reads the metadata of all objects that can be deleted, listed and watched, custom ones and those of aggregated API
//! servers included. Deletes objects, removes owner references and the finalizers `foregroundDeletion` and `orphan`.
//!
//! ```text
//! discovery ──▶ informers ──change──▶ graph ──uid──▶ attempt to delete ──▶ live reads ──▶ plan ──▶ requests
//!                (metadata)           (pure)    └──▶ attempt to orphan ──────────────────────────▶ requests
//! ```
//!
//! # Guarantees
//! - An object is deleted only after live reads of itself and of each owner that it names showed that none of these exists,
//!   or that those that do wait for it. An owner that was seen to go is not read again: a uid never comes back.
//! - A deletion carries uid and resource version. An object that was changed or recreated meanwhile is read again.
//! - An owner whose uid differs from that of the reference does not exist. A kind that is not served says nothing about
//!   its objects: what names one as its owner is kept, and what one names as its owner does not wait for it.
//! - `foregroundDeletion` and `orphan` are removed only while all resources are listed that may have dependents, and none of
//!   these is undecodable. A resource that cannot be listed holds up nothing else.
//! - A cycle of objects that are deleted in the foreground is broken: one of them ceases to block the others.
//! - A finalizer for orphaning or foreground deletion that an object has already decides how it is deleted.
//! - References to owners in other namespaces, and from cluster-scoped objects to namespaced ones, count as references to
//!   owners that do not exist, and end in the event `OwnerRefInvalidNamespace`.
//!
//! # What it does not do
//! It deletes nothing that has no owner reference. It ignores events, and what `GCIgnoredResources` names.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/garbagecollector` of Kubernetes 1.36.3. Everything else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | objects are processed when each resource is listed or has failed | when all are listed, or after 30 s | a resource that cannot be listed holds up nothing (kubernetes#101078) |
//! | foreground deletion and orphaning wait for resources that cannot be listed | go on without them after 30 s | their dependents would be deleted or stay behind (kubernetes#110720) |
//! | objects of a cycle that are all deleted in the foreground by users go | wait for each other for ever | |
//! | no live read where informers have all owners of an object | always one | requests |
//! | informers change the graph at once | through a queue of changes | memory; so the queue `garbage_collector_graph_changes` is not there |
//! | an object that is missing in a list is looked up | is taken for deleted | an object that cannot be decoded any more, or whose resource is not served for a while, keeps its dependents |
//! | objects of a kind that is not served any more block no deletion in the foreground | block until a restart | they cannot be deleted |
//! | a 404 that names no object counts only if discovery still has the kind | counts | the API service of the owner may be gone for a while |
//! | an owner that is only named is forgotten with its last dependent | is looked up until it is found | requests |
//! | a resource that refused a strategic merge patch is not tried with one again | tried each time | requests |
//! | patches carry the uid | only strategic merge patches do | |
//! | orphaning is skipped if the finalizer was removed meanwhile | goes on | |
//! | 2,000 absent owners are remembered | 500 | requests |
//! | `--concurrent-gc-syncs` below 1 is rejected | accepted, and no worker runs | |

mod apply;
mod collect;
mod dump;
mod events;
mod explain;
mod graph;
mod metrics;
mod monitors;
mod observe;
mod orphan;
mod plan;
mod settings;
mod shared_graph;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::FutureExt as _;
use kcm_framework::client::ClientLimits;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use apply::MergePatched;
use collect::{Collector, Deleter};
use metrics::Metrics;
use monitors::Monitors;
use orphan::Orphaner;
use settings::{ROWS, Section};
use shared_graph::{NodeKey, SharedGraph};

/// The canonical name.
const NAME: &str = "garbage-collector-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new(NAME, init)
    .aliases(&["garbagecollector"])
    .service_account("generic-garbage-collector")
    .client_limits(ClientLimits::Times { qps: 2, burst: 1 })
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let section: Section = context.settings_of()?;
    if !section.enabled {
        tracing::info!("The garbage collector is disabled");
        return Ok(None);
    }
    let workers = section.concurrent_syncs as usize;
    let queue = |name| context.control_loop::<NodeKey>(name).workers(workers).writes_anything();
    let mut deletions = queue("garbage_collector_attempt_to_delete");
    let mut orphanings = queue("garbage_collector_attempt_to_orphan");
    let graph = SharedGraph::new(deletions.queue(), orphanings.queue(), context.recorder());
    let discovery = context.discovery().clone();
    let monitors = Arc::new(Monitors::new(
        context.informers().clone(),
        discovery.clone(),
        section.ignored_resources,
        graph.clone(),
        Metrics::register(context.metrics()),
    ));
    let merge_patched = MergePatched::default();
    let collector =
        Arc::new(Collector { graph: graph.clone(), monitors: Arc::clone(&monitors), discovery, merge_patched });
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
