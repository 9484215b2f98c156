//! The reconcile of a node: one patch of its report for all volumes that change it.

use std::collections::BTreeSet;
use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::Lookup;
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{ReconcileError, Session};
use tokio::time::Instant;

use super::apply::write_report;
use super::key::Key;
use super::report::{ReportedVolume, patch};
use super::reports::Change;
use super::state::State;
use super::world::World;

/// Time after which the volumes of a deleted node look again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Nodes<'a> {
    pub(super) world: &'a World,
    pub(super) state: &'a State,
    pub(super) queue: &'a Queue<Key>,
}

impl Nodes<'_> {
    pub(super) async fn reconcile(&self, name: &str, session: &Session) -> Result<(), ReconcileError> {
        let reports = &self.state.reports;
        // The key waits for its writes, so the cache shows the last patch.
        self.enqueue(reports.shown(name));
        let node = match self.world.nodes.lookup(&ObjectKey::cluster_scoped(name)) {
            Lookup::Found(node) => node,
            Lookup::Absent => {
                self.forget(name);
                session.explain(|| "forgets the node, which does not exist");
                return Ok(());
            }
            Lookup::Undecodable(object) => {
                session.requeue_when_decodable(&self.world.nodes.cache(), &object);
                session.explain(|| "waits for the node, which cannot be decoded");
                return Ok(());
            }
        };
        let changes = reports.send(name);
        let of = |wanted: Change| -> BTreeSet<&str> {
            changes.iter().filter(|(_, change)| **change == wanted).map(|(volume, _)| &**volume).collect()
        };
        let current: Vec<ReportedVolume> = self.world.parts.nodes.of(&node).attached.iter().map(Into::into).collect();
        let (added, removed) = (of(Change::Report), of(Change::Withdraw));
        let Some(patch) = patch(&node.metadata.uid.to_string(), &current, &added, &removed) else {
            self.enqueue(reports.shown(name));
            session.explain(|| "the status has the volumes that it is to have");
            return Ok(());
        };
        session.explain(|| format!("reports {} more volumes, and withdraws {}", added.len(), removed.len()));
        match write_report(&node, &patch, session).await {
            Ok(()) => {
                reports.set_patched(name, Instant::now());
                Ok(())
            }
            Err(error) if error.is_not_found() || error.is_other_object() => {
                self.forget(name);
                Ok(())
            }
            Err(error) => {
                reports.failed(name, Instant::now());
                Err(error.into())
            }
        }
    }

    /// Forgets the changes of a node that was deleted.
    ///
    /// If it was recreated meanwhile, its volumes may have taken these changes for changes of the new node. They look
    /// again, late enough that the cache shows the deletion.
    fn forget(&self, node: &str) {
        for volume in self.state.reports.forget(node) {
            self.queue.add_after(Key::Volume(volume), LOOK_AGAIN, Priority::Live);
        }
    }

    fn enqueue(&self, volumes: Vec<Box<str>>) {
        for volume in volumes {
            self.queue.add(Key::Volume(volume), Priority::Live);
        }
    }
}
