//! The effects: one reconcile from observation to status, and every request that it makes.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use jiff::Timestamp;
use kcm_api::views::{Pod, ReplicaSet, ReplicaSetStatus};
use kcm_api::{KnownView as _, ObjectKey};
use kcm_framework::client::{ApiError, DeleteOptions, Deleted, Payload, Subresource};
use kcm_framework::clock::Clock;
use kcm_framework::events::ObjectReference;
use kcm_framework::{Class, Outcome, Reconcile, ReconcileError, Recorder, Session, async_trait};

use super::claim::plan_claims;
use super::error::ScaleError;
use super::events::Notice;
use super::metrics::Metrics;
use super::observe::Caches;
use super::plan::{Plan, Step, plan};
use super::pod_template::Template;
use super::settings::Settings;
use super::slow_start::SlowStart;
use super::status::{Counted, recheck_at, status, with_status};
use crate::shared::adoption::settle;
use crate::shared::error::{Behind, retried};
use crate::shared::ownership::Owner;

/// How often another name is tried for a pod whose name is taken, as the API server does for names that it makes.
const NAMES_TRIED: usize = 8;

/// Brings replica sets to their desired state.
pub(super) struct Reconciler {
    pub(super) caches: Caches,
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: Recorder,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl Reconcile for Reconciler {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<Outcome, ReconcileError> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Outcome::done()) };
        let owner = &*observed.owner;
        let selector = match &owner.selector {
            Ok(selector) => selector,
            Err(error) => {
                // Selectors do not change, so there is nothing to try again.
                tracing::error!(%error, "Replica set cannot be handled: its selector is invalid");
                return Ok(Outcome::done());
            }
        };
        let work = Work { reconciler: self, session, owner };
        let claims = plan_claims(&observed, selector);
        let terminating = claims.terminating;
        let active = settle(session, Owner::of(owner), claims.active).await?;

        let scaled = match plan(&observed, &active, self.settings, self.clock.now()) {
            Plan::Rest(why) => {
                tracing::debug!(?why, pods = active.len(), "The number of pods stays");
                Ok(())
            }
            Plan::Scale(step) => work.apply(step).await,
        };

        let now = self.clock.now();
        let failure = scaled.as_ref().err().and_then(ScaleError::failure);
        let status = status(owner, Counted { active: &active, terminating }, failure.as_ref(), self.settings, now);
        if status != owner.status {
            work.put_status(&status).await?;
        }
        scaled?;
        Ok(recheck_at(owner, &active, &status, now).map_or_else(Outcome::done, |at| self.recheck(at)))
    }
}

impl Reconciler {
    fn recheck(&self, at: Timestamp) -> Outcome {
        let delay = at.duration_since(self.clock.now());
        Outcome::requeue_after(Duration::try_from(delay).unwrap_or(Duration::ZERO))
    }
}

/// What became of the creation of a pod that did not fail.
enum Creation {
    /// The pod is there.
    Made,
    /// The namespace goes, and takes everything in it along: there is nothing to tell, and nothing to try again.
    NamespaceTerminating,
}

/// One reconcile of one replica set.
struct Work<'a> {
    reconciler: &'a Reconciler,
    session: &'a Session,
    owner: &'a ReplicaSet,
}

impl Work<'_> {
    async fn apply(&self, step: Step) -> Result<(), ScaleError> {
        match step {
            Step::CreatePods { count } => self.create_pods(count).await,
            Step::RefuseTemplate(refusal) => Err(ScaleError::Refused(refusal)),
            Step::DeletePods { victims, age_ratios } => {
                self.reconciler.metrics.chosen(&age_ratios);
                self.delete_pods(&victims).await
            }
        }
    }

    async fn create_pods(&self, count: usize) -> Result<(), ScaleError> {
        tracing::info!(count, wanted = self.owner.replicas, "Too few pods: creating");
        let template = Template::of(self.owner);
        let mut batches = SlowStart::of(count);
        let mut first_error = None;
        while let Some(size) = batches.next_batch() {
            let mut calls: FuturesUnordered<_> = (0..size).map(|_| self.create_pod(&template)).collect();
            while let Some(answer) = calls.next().await {
                match answer {
                    Ok(Creation::Made) => {}
                    Ok(Creation::NamespaceTerminating) => batches.stop(),
                    Err(error) => {
                        batches.stop();
                        first_error.get_or_insert(error);
                    }
                }
            }
        }
        first_error.map_or(Ok(()), |error| Err(ScaleError::Create(error)))
    }

    async fn create_pod(&self, template: &Template<'_>) -> Result<Creation, ApiError> {
        let mut names_left = NAMES_TRIED;
        let name = loop {
            names_left -= 1;
            let name = self.session.generate_name(template.generate_name());
            let namespace = self.owner.metadata.key.namespace().unwrap_or_default();
            let key = ObjectKey::namespaced(namespace, name.as_str());
            let answer = self.session.create(&Pod::RESOURCE, &key, Payload::json(&template.pod(&name))).await;
            let error = match answer {
                Ok(_) => break name,
                // Nobody else makes this name: it is ours, and another name would be another pod.
                Err(error) if error.is_probably_created() => break name,
                Err(error) if error.is_already_exists() && names_left > 0 => continue,
                Err(error) if error.is_namespace_terminating() => return Ok(Creation::NamespaceTerminating),
                Err(error) => error,
            };
            self.tell(&Notice::CreateFailed { message: error.message() });
            return Err(error);
        };
        self.tell(&Notice::CreatedPod { name });
        Ok(Creation::Made)
    }

    async fn delete_pods(&self, victims: &[Arc<Pod>]) -> Result<(), ScaleError> {
        tracing::info!(count = victims.len(), wanted = self.owner.replicas, "Too many pods: deleting");
        let mut calls: FuturesUnordered<_> = victims.iter().map(|pod| self.delete_pod(pod)).collect();
        let mut first_error = None;
        while let Some(answer) = calls.next().await {
            match (answer, &first_error) {
                // What only the cache was late for gives way to what went wrong.
                (Err(error), None | Some(ScaleError::Replaced(_))) => first_error = Some(error),
                (Ok(()), _) | (Err(_), Some(_)) => {}
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn delete_pod(&self, pod: &Pod) -> Result<(), ScaleError> {
        let (key, uid) = (&pod.metadata.key, &pod.metadata.uid);
        match self.session.delete(&Pod::RESOURCE, key, uid, &DeleteOptions::of_uid(uid.clone())).await {
            Ok(Deleted::Accepted) => self.tell(&Notice::DeletedPod { name: key.name().to_owned() }),
            Ok(Deleted::Gone) => {}
            // It is another pod by now: ours is gone, which the cache is about to show.
            Err(error) if error.is_conflict() => return Err(ScaleError::Replaced(error)),
            Err(error) => {
                self.tell(&Notice::DeleteFailed { message: error.message() });
                return Err(ScaleError::Delete(error));
            }
        }
        Ok(())
    }

    /// Puts the status; on any error once more, into what the API server has by now.
    async fn put_status(&self, status: &ReplicaSetStatus) -> Result<(), ReconcileError> {
        if self.put_status_into(self.owner, status).await.is_ok() {
            return Ok(());
        }
        let key = &self.owner.metadata.key;
        let live: ReplicaSet = self.session.api().get(&ReplicaSet::RESOURCE, key).await.map_err(retried)?;
        if live.metadata.uid != self.owner.metadata.uid {
            let behind = Behind::Replaced { got: live.metadata.uid.clone(), wanted: self.owner.metadata.uid.clone() };
            return Err(behind.into());
        }
        self.put_status_into(&live, status).await
    }

    async fn put_status_into(&self, current: &ReplicaSet, status: &ReplicaSetStatus) -> Result<(), ReconcileError> {
        let document = with_status(current, status).map_err(|error| ReconcileError::new(Class::Terminal, error))?;
        let key = &current.metadata.key;
        let body = Payload::raw(document.as_str().to_owned());
        self.session.put(&ReplicaSet::RESOURCE, key, Subresource::Status, body).await.map_err(retried)?;
        Ok(())
    }

    fn tell(&self, notice: &Notice) {
        let regarding = ObjectReference::of(&ReplicaSet::RESOURCE, &self.owner.metadata);
        self.reconciler.events.event(&regarding, notice.event_type(), notice.reason(), notice.message());
    }
}
