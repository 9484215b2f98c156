//! The reconcile of each kind of key.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};

use super::desired::Desired;
use super::flex::Flex;
use super::key::Key;
use super::live::LiveNodes;
use super::metrics::{Counted, Metrics};
use super::nodes::Nodes;
use super::plan::Settings;
use super::pods::Pods;
use super::state::State;
use super::volumes::Volumes;
use super::world::World;

pub(super) struct Reconciler {
    pub(super) world: World,
    pub(super) state: Arc<State>,
    pub(super) queue: Queue<Key>,
    pub(super) settings: Settings,
    pub(super) flex: Flex,
    pub(super) live_nodes: LiveNodes,
    pub(super) metrics: Metrics,
    pub(super) counted: Counted,
}

#[async_trait]
impl Reconcile<Key> for Reconciler {
    /// Finds the volumes that pods need, before any volume is detached because no pod needs it.
    async fn prepare(&self, session: &Session) -> Result<(), ReconcileError> {
        *self.state.desired.lock() = Desired::default();
        let mut pods = Vec::new();
        self.world.pods.for_each(|pod| {
            if self.world.parts.has_volumes(pod) && self.world.parts.needs_volumes_on(pod).is_some() {
                pods.push(Arc::clone(pod));
            }
        });
        for pod in pods {
            self.pods().add(&pod, session);
        }
        let volumes = self.state.desired.lock().volumes();
        self.enqueue(volumes, Priority::Initial);
        self.counted.show(self.world.clone(), Arc::clone(&self.state));
        Ok(())
    }

    async fn reconcile(&self, key: &Key, session: &Session) -> Result<(), ReconcileError> {
        match key {
            Key::Pod(pod) => {
                let changed = self.pods().follow(pod, session);
                self.enqueue(changed, Priority::Live);
                Ok(())
            }
            Key::Volume(volume) => {
                let volumes = Volumes {
                    world: &self.world,
                    state: &self.state,
                    queue: &self.queue,
                    settings: self.settings,
                    live_nodes: &self.live_nodes,
                    metrics: &self.metrics,
                };
                volumes.reconcile(volume, session).await
            }
            Key::Node(node) => {
                let nodes = Nodes { world: &self.world, state: &self.state, queue: &self.queue };
                nodes.reconcile(node, session).await
            }
        }
    }
}

impl Reconciler {
    fn pods(&self) -> Pods<'_> {
        Pods { world: &self.world, state: &self.state, flex: &self.flex }
    }

    fn enqueue(&self, volumes: BTreeSet<String>, priority: Priority) {
        for volume in volumes {
            self.queue.add(Key::Volume(volume.into()), priority);
        }
    }
}
