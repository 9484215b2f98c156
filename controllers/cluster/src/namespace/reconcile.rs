//! The order of a reconcile: read, delete, report, finalize.

use kcm_api::ObjectKey;
use kcm_api::views::Namespace;
use kcm_framework::discovery::Discovery;
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};
use kcm_informers::Informer;

use super::apply::{ContentDeleter, NamespaceWriter};
use super::conditions::changed_conditions;
use super::content::{NextStep, Round, discovery_failure};
use super::explain;
use super::observe::{self, LiveNamespace};

/// Reconciles terminating namespaces.
pub(super) struct Reconciler {
    pub(super) namespaces: Informer<Namespace>,
    pub(super) discovery: Discovery,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        if self.namespaces.get(key).is_none_or(|namespace| !namespace.metadata.is_terminating()) {
            return Ok(());
        }
        let writer = NamespaceWriter { session, key };
        // The cache may be behind, and an update needs the version of now.
        let Some(namespace) = observe::read(session, key).await? else { return Ok(()) };
        let Some(deleted_at) = namespace.metadata.deletion_timestamp else { return Ok(()) };
        if namespace.finalizers.is_empty() {
            session.explain(|| explain::FINALIZED);
            return Ok(());
        }

        let deleter = ContentDeleter { session, namespace: key.name(), deleted_at };
        let round = self.round(&deleter).await;
        session.explain(|| round.explain(key.name()));
        let conditions = changed_conditions(&namespace.conditions, &round, key.name(), session.now());
        let namespace = writer.report(namespace, &conditions).await;
        self.end_round(&round, namespace, &writer).await
    }
}

impl Reconciler {
    /// Deletes the objects of all resources that are served now.
    async fn round(&self, deleter: &ContentDeleter<'_>) -> Round {
        match self.discovery.fresh().await {
            Ok(resources) => Round {
                discovery_failure: discovery_failure(resources.broken()),
                results: deleter.delete_all(&observe::deletable(resources.preferred(), resources.broken())).await,
            },
            Err(error) => {
                Round { discovery_failure: Some(format!("{error}: {}", error.message())), results: Vec::new() }
            }
        }
    }

    async fn end_round(
        &self,
        round: &Round,
        namespace: LiveNamespace,
        writer: &NamespaceWriter<'_>,
    ) -> Result<(), ReconcileError> {
        match round.next_step(writer.key.name()) {
            NextStep::Finalize => {
                tracing::info!("Namespace is empty; removing its finalizer");
                writer.finalize(namespace).await?;
                Ok(())
            }
            NextStep::Wait(delay) => {
                tracing::debug!(?delay, "Content remains in the namespace");
                Ok(session.requeue_after(delay))
            }
            // A missing permission may be that of one kind among many, and is granted without an event.
            NextStep::Retry(failure) => Err(ReconcileError::new(Class::Transient, failure)),
        }
    }
}
