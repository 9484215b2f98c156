//! The order in which the dependents of an object are orphaned.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};

use super::apply::{ChangeError, Writer};
use super::collect::Collector;
use super::explain;
use super::graph::{Identity, ORPHAN_FINALIZER};
use super::observe::{Live, LiveReader};
use super::shared_graph::NodeKey;
use super::unknown::Decision;

/// Number of dependents of an object that are orphaned at the same time.
const CONCURRENT_REQUESTS: usize = 32;

/// Orphans the dependents of objects that are deleted with the finalizer `orphan`.
pub(super) struct Orphaner(pub(super) Arc<Collector>);

#[async_trait]
impl Reconcile<NodeKey> for Orphaner {
    async fn prepare(&self, _: &Session) -> Result<(), ReconcileError> {
        self.0.monitors.listed().await;
        Ok(())
    }

    async fn reconcile(&self, key: &NodeKey, session: &Session) -> Result<(), ReconcileError> {
        let Self(collector) = self;
        let Some(owner) = collector.graph.with(|graph| graph.orphaning(&key.0)) else {
            collector.waits.end(&key.0);
            return Ok(());
        };
        if collector.waits_for_unknown_dependents(&owner, Decision::Orphan, session) {
            return Ok(());
        }
        let (reader, writer) = collector.requests(session);
        let dependents = collector.graph.with(|graph| graph.dependents(&key.0));
        tracing::info!(%owner, dependents = dependents.len(), "Orphaning the dependents of an object");
        session.explain(|| explain::orphaning(&owner, dependents.len()));
        let calls: Vec<_> = dependents.iter().map(|dependent| orphan(reader, &writer, dependent, &owner)).collect();
        let mut calls = stream::iter(calls).buffer_unordered(CONCURRENT_REQUESTS);
        let mut first_error = None;
        while let Some(orphaned) = calls.next().await {
            if let Err(error) = orphaned {
                first_error.get_or_insert(error);
            }
        }
        if let Some(error) = first_error {
            return Err(error.into());
        }
        if matches!(writer.remove_finalizer(&owner, ORPHAN_FINALIZER).await?, Live::Absent { .. }) {
            collector.confirm_absent(&owner);
        }
        Ok(())
    }
}

/// Removes the reference to `owner` from a dependent. A dependent that does not exist is no error.
async fn orphan(
    reader: LiveReader<'_>,
    writer: &Writer<'_>,
    dependent: &Identity,
    owner: &Identity,
) -> Result<(), ChangeError> {
    let resource = reader.resource(dependent)?;
    match writer.remove_references(dependent, &resource, std::slice::from_ref(&owner.uid)).await {
        Err(ChangeError::Write(error)) if error.is_not_found() => Ok(()),
        result => result,
    }
}
