//! The order of a reconcile: read, delete, report, finalize.

use std::sync::Arc;

use kcm_framework::api::views::Namespace;
use kcm_framework::discovery::Discovery;
use kcm_framework::{Class, ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::{ContentDeleter, NamespaceWriter};
use super::conditions::changed_conditions;
use super::content::{NextStep, Round, discovery_failure};
use super::explain;
use super::observe::{self, LiveNamespace};

/// Reconciles terminating Namespaces.
pub(super) struct Reconciler {
    pub(super) discovery: Discovery,
}

#[async_trait]
impl ReconcileObject<Namespace> for Reconciler {
    async fn reconcile(&self, cached: &Arc<Namespace>, session: &Session) -> Result<(), ReconcileError> {
        if !cached.metadata.is_terminating() {
            return Ok(());
        }
        // The cache may be behind, and an update needs the current version.
        let Some(namespace) = session.live::<LiveNamespace>(&cached.metadata.key).await? else { return Ok(()) };
        let Some(deleted_at) = namespace.metadata.deletion_timestamp else { return Ok(()) };
        if namespace.finalizers.is_empty() {
            session.explain(|| explain::FINALIZED);
            return Ok(());
        }

        let name = cached.metadata.key.name();
        let round = self.round(&ContentDeleter { session, namespace: name, deleted_at }).await;
        session.explain(|| round.explain(name));
        let next_step = round.next_step(name);
        if let NextStep::Wait(delay) = next_step {
            tracing::debug!(?delay, "Content remains in the namespace");
            session.requeue_after(delay);
        }
        let writer = NamespaceWriter { session };
        let conditions = changed_conditions(&namespace.conditions, &round, name, session.now());
        let namespace = writer.report(namespace, &conditions).await;
        match next_step {
            NextStep::Finalize => {
                tracing::info!("Namespace is empty; removing its finalizer");
                writer.finalize(namespace).await
            }
            NextStep::Wait(_) => Ok(()),
            // The permission for one kind among many may be missing. It is granted without an event.
            NextStep::Retry(failure) => Err(ReconcileError::new(Class::Transient, failure)),
        }
    }
}

impl Reconciler {
    /// Deletes the objects of all resources that are served now.
    async fn round(&self, deleter: &ContentDeleter<'_>) -> Round {
        match self.discovery.fresh().await {
            Ok(resources) => Round {
                discovery_failure: discovery_failure(resources.broken()),
                results: deleter.delete_all(&observe::deletable(resources.iter(), resources.broken())).await,
            },
            Err(error) => {
                Round { discovery_failure: Some(format!("{error}: {}", error.message())), results: Vec::new() }
            }
        }
    }
}
