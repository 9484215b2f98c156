//! The graph, which informers change and workers read, and the queues into which it enqueues objects.

use std::fmt;
use std::sync::Arc;

use kcm_framework::api::{ObjectKey, Resource, Uid};
use kcm_framework::events::Event;
use kcm_framework::informers::{Change, MetadataChange, Origin};
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{QueueKey, Recorder};
use parking_lot::Mutex;

use super::events::{self, InvalidNamespace};
use super::graph::{Effect, Graph, Identity};

/// The key of an object in the queues: its uid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeKey(pub(super) Uid);

impl fmt::Display for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl QueueKey for NodeKey {
    fn object(&self) -> Option<&ObjectKey> {
        None
    }
}

/// The graph and its queues. Cheap to clone.
#[derive(Clone)]
pub(super) struct SharedGraph {
    graph: Arc<Mutex<Graph>>,
    /// The objects that are processed.
    process: Queue<NodeKey>,
    /// The objects whose dependents are orphaned.
    orphan: Queue<NodeKey>,
    recorder: Recorder,
}

impl SharedGraph {
    pub(super) fn new(process: Queue<NodeKey>, orphan: Queue<NodeKey>, recorder: Recorder) -> Self {
        Self { graph: Arc::default(), process, orphan, recorder }
    }

    /// Reads the graph, or changes it without an effect.
    pub(super) fn with<R>(&self, read: impl FnOnce(&mut Graph) -> R) -> R {
        read(&mut self.graph.lock())
    }

    /// Changes the graph, and enqueues the objects that the change affects.
    pub(super) fn change(&self, priority: Priority, change: impl FnOnce(&mut Graph) -> Vec<Effect>) {
        // Enqueued without the lock of the graph.
        let effects = change(&mut self.graph.lock());
        for effect in effects {
            match effect {
                Effect::Process(uid) => self.process.add(NodeKey(uid), priority),
                Effect::Orphan(uid) => self.orphan.add(NodeKey(uid), priority),
                Effect::InvalidNamespace { dependent, owner } => {
                    tracing::debug!(%dependent, %owner, "Object names an owner in another namespace");
                    self.record(&dependent, &InvalidNamespace { owner });
                }
            }
        }
    }

    /// Records an event about an object of the graph.
    pub(super) fn record(&self, object: &Identity, event: &impl Event) {
        events::record(&self.recorder, object, event);
    }

    /// Applies a change of an object of an informer.
    pub(super) fn observe(&self, resource: &Arc<Resource>, change: &MetadataChange, origin: Origin) {
        let priority = match origin {
            Origin::Live => Priority::Live,
            Origin::Initial | Origin::Resync => Priority::Initial,
        };
        self.change(priority, |graph| match change {
            Change::Added(object) | Change::Updated { new: object, .. } => graph.observe(resource, object),
            Change::Deleted { last, final_state_known: true } => graph.remove(&last.metadata().uid),
            // It is missing in a list, or its resource is not served any more.
            Change::Deleted { last, final_state_known: false } => graph.lose(&last.metadata().uid),
            // It exists, with its last metadata until `UndecodableObjects` replaces them.
            Change::Undecodable { .. } => Vec::new(),
        });
    }
}
