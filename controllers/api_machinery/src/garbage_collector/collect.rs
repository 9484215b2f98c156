//! The order in which an object is processed: graph, live reads, plan, requests.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::{Meta, Resource};
use kcm_framework::client::{Deleted, DeletionPropagation};
use kcm_framework::discovery::Discovery;
use kcm_framework::workqueue::Priority;
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};
use tokio::time::Instant;

use super::apply::{ChangeError, MergePatched, Writer};
use super::events::DependentsUnknown;
use super::explain;
use super::graph::{Effect, FOREGROUND_FINALIZER, Identity, Item, Task, waits_for_dependents};
use super::monitors::Monitors;
use super::observe::{Live, LiveReader, LookupError};
use super::plan::{Action, OwnerState, plan};
use super::shared_graph::{NodeKey, SharedGraph};
use super::unknown::{Decision, PATIENCE, Verdict, Waits, verdict};

/// Delay after which an object is processed again whose dependents are not all known.
const UNKNOWN_DEPENDENTS_DELAY: Duration = Duration::from_secs(1);

/// The parts that both loops share.
pub(super) struct Collector {
    pub(super) graph: SharedGraph,
    pub(super) monitors: Arc<Monitors>,
    pub(super) discovery: Discovery,
    pub(super) merge_patched: MergePatched,
    pub(super) waits: Waits,
}

impl Collector {
    /// The reader and the writer of one reconcile.
    pub(super) fn requests<'a>(&'a self, session: &'a Session) -> (LiveReader<'a>, Writer<'a>) {
        let reader = LiveReader { api: session.api(), discovery: &self.discovery };
        (reader, Writer::new(session, reader, &self.merge_patched))
    }

    /// Returns `true` if a decision waits because its object may have dependents that are not known. The object is requeued.
    ///
    /// The wait is logged and explained, and reported by an event if it is long. So is a decision that goes on although
    /// dependents may be deleted that it should keep.
    pub(super) fn waits_for_unknown_dependents(
        &self,
        identity: &Identity,
        decision: Decision,
        session: &Session,
    ) -> bool {
        let (uid, now) = (&identity.uid, Instant::now());
        let waited = self.waits.waited(uid, now);
        match verdict(&self.monitors.gaps(), identity, decision, waited) {
            Verdict::Known => self.waits.end(uid),
            Verdict::Wait(reason) => {
                tracing::debug!(%identity, reason, "Not all dependents of an object are known; it waits");
                session.explain(|| explain::unknown_dependents(&reason));
                if self.waits.wait(uid, now) {
                    self.graph.record(identity, &DependentsUnknown::Waits(reason));
                }
                session.requeue_after(UNKNOWN_DEPENDENTS_DELAY);
                return true;
            }
            Verdict::GoOn(reason) => {
                tracing::warn!(%identity, reason, "Not all dependents of an object are known; going on without them");
                if decision == Decision::Orphan || waited >= PATIENCE {
                    self.graph.record(identity, &DependentsUnknown::GoesOn(reason));
                }
                self.waits.end(uid);
            }
        }
        false
    }

    /// Tells the graph that no object has this identity.
    pub(super) fn confirm_absent(&self, identity: &Identity) {
        self.graph.change(Priority::Live, |graph| graph.confirm_absent(identity));
    }

    /// Requeues an object that no informer has, because no event may follow when it is deleted.
    fn look_up_again(&self, key: &NodeKey, session: &Session) {
        if let Some(delay) = self.graph.with(|graph| graph.next_lookup(&key.0)) {
            session.requeue_after(delay);
        }
    }
}

/// Deletes objects whose owners are deleted.
pub(super) struct Deleter(pub(super) Arc<Collector>);

#[async_trait]
impl Reconcile<NodeKey> for Deleter {
    async fn prepare(&self, _: &Session) -> Result<(), ReconcileError> {
        self.0.monitors.listed().await;
        Ok(())
    }

    async fn reconcile(&self, key: &NodeKey, session: &Session) -> Result<(), ReconcileError> {
        let Self(collector) = self;
        let Some(item) = collector.graph.with(|graph| graph.item(&key.0)) else {
            collector.waits.end(&key.0);
            return Ok(());
        };
        session.explain(|| item.explain());
        match &item.task {
            Task::None => {}
            Task::Wait { is_blocked: false, .. } => self.end_foreground_deletion(&item, session).await?,
            Task::Wait { process, .. } => {
                let effects = process.iter().cloned().map(Effect::Process).collect();
                collector.graph.change(Priority::Live, |_| effects);
            }
            Task::BreakCycle => {
                tracing::info!(identity = %item.identity, "Unblocking the owners of an object that waits for itself");
                let (reader, writer) = collector.requests(session);
                let resource = reader.resource(&item.identity)?;
                writer.unblock_references(&item.identity, &resource, &item.owners).await?;
            }
            Task::LookUp => match self.look_up(&item, session).await {
                Ok(()) => collector.look_up_again(key, session),
                // No retry can succeed before the references change.
                Err(ChangeError::Lookup(LookupError::NamespacedOwner)) => {}
                Err(error) => return Err(error.into()),
            },
        }
        Ok(())
    }
}

impl Deleter {
    /// Removes the finalizer of an object that no dependent blocks.
    async fn end_foreground_deletion(&self, item: &Item, session: &Session) -> Result<(), ReconcileError> {
        let Self(collector) = self;
        if collector.waits_for_unknown_dependents(&item.identity, Decision::EndForegroundDeletion, session) {
            return Ok(());
        }
        let (_, writer) = collector.requests(session);
        let live = writer.remove_finalizer(&item.identity, FOREGROUND_FINALIZER).await?;
        if matches!(live, Live::Absent { .. }) {
            collector.confirm_absent(&item.identity);
        }
        Ok(())
    }

    /// Looks up an object and its owners, plans, and carries out the plan.
    async fn look_up(&self, item: &Item, session: &Session) -> Result<(), ChangeError> {
        let Self(collector) = self;
        let (reader, writer) = collector.requests(session);
        let (resource, live) = match reader.read(&item.identity).await? {
            Live::Found { resource, meta } => (resource, meta),
            Live::Absent { .. } => {
                session.explain(|| explain::IS_GONE);
                collector.confirm_absent(&item.identity);
                return Ok(());
            }
        };
        let owners = self.owner_states(&item.identity, &live, reader).await?;
        let action = plan(item, &live, &owners);
        session.explain(|| action.explain(&live, &owners));
        self.act(item, action, reader, &writer, &resource, &live).await
    }

    async fn act(
        &self,
        item: &Item,
        action: Action,
        reader: LiveReader<'_>,
        writer: &Writer<'_>,
        resource: &Resource,
        live: &Meta,
    ) -> Result<(), ChangeError> {
        let identity = &item.identity;
        let deleted = match action {
            Action::Keep(reason) => {
                tracing::trace!(%identity, ?reason, "Object is kept");
                return Ok(());
            }
            Action::RemoveReferences(owners) => {
                tracing::info!(%identity, ?owners, "Removing references to owners that are gone");
                return writer.remove_references(identity, resource, &owners).await;
            }
            Action::DeleteInForeground { unblock } => {
                let mut live = live.clone();
                if unblock {
                    tracing::info!(%identity, "Unblocking the owners of an object that may be in a cycle with them");
                    writer.unblock_references(identity, resource, &live.owner_references).await?;
                    match reader.read(identity).await? {
                        Live::Found { meta, .. } => live = *meta,
                        Live::Absent { .. } => {
                            self.0.confirm_absent(identity);
                            return Ok(());
                        }
                    }
                }
                tracing::info!(%identity, "Deleting an object in the foreground, as an owner waits for it");
                writer.delete(identity, resource, &live, DeletionPropagation::Foreground).await?
            }
            Action::Delete(propagation) => {
                tracing::info!(%identity, ?propagation, "Deleting an object whose owners are gone");
                writer.delete(identity, resource, live, propagation).await?
            }
        };
        if deleted == Deleted::Gone {
            self.0.confirm_absent(identity);
        }
        Ok(())
    }

    /// Reads the states of the owners that an object names, in the order of its references.
    async fn owner_states(
        &self,
        identity: &Identity,
        live: &Meta,
        reader: LiveReader<'_>,
    ) -> Result<Vec<OwnerState>, LookupError> {
        let graph = &self.0.graph;
        let mut states = Vec::with_capacity(live.owner_references.len());
        for reference in &live.owner_references {
            let owner = Identity::named(reference, identity.namespace.as_ref());
            if graph.with(|graph| graph.is_absent(&owner)) {
                states.push(OwnerState::Absent);
                continue;
            }
            states.push(match reader.read(&owner).await? {
                Live::Found { meta, .. } if waits_for_dependents(&meta) => OwnerState::Waiting,
                Live::Found { .. } => OwnerState::Solid,
                Live::Absent { resource } => {
                    let absent = if resource.namespaced { owner } else { owner.cluster_scoped() };
                    graph.with(|graph| graph.remember_absent(absent));
                    OwnerState::Absent
                }
            });
        }
        Ok(states)
    }
}
