//! The order of a reconcile: observe, plan, write.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::views::{Endpoints, PodAddresses, Service};
use kcm_api::{Document, EditError, KnownView as _, ObjectKey, PartReader, ResourceVersion, Uid};
use kcm_framework::client::{ApiError, DeleteOptions, Payload, Subresource};
use kcm_framework::events::{EventDetails as _, ObjectReference};
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};
use kcm_informers::Informer;
use serde_json::json;

use super::addresses::{has_endpoints_of_pods, subsets_of};
use super::events::EventReason;
use super::plan::{Desired, Existing, OVER_CAPACITY, Plan, plan};
use crate::shared::batching::Batching;
use crate::shared::pods::SelectedPods;
use crate::shared::subsets::subsets_in;
use crate::shared::trigger_time::TriggerTimes;

/// The annotation of endpoints that hold a record of leader election.
pub(super) const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// Reconciles services.
pub(super) struct Reconciler {
    pub(super) services: Informer<Service>,
    pub(super) pods: SelectedPods,
    pub(super) endpoints: Informer<Endpoints>,
    pub(super) addresses: PartReader<PodAddresses>,
    pub(super) triggers: TriggerTimes,
    pub(super) batching: Arc<Batching>,
    pub(super) queue: Queue<ObjectKey>,
}

/// When a service is looked at again that selects a pod which cannot be decoded: its deletion is no change of a cache.
const UNDECODABLE_DELAY: Duration = Duration::from_secs(30);

/// Endpoints could not be brought into line with the pods.
#[derive(Debug, thiserror::Error)]
enum SyncError {
    #[error("cannot read the subsets of the endpoints")]
    InvalidSubsets(#[source] serde_json::Error),
    #[error("cannot edit the endpoints")]
    Edit(#[source] EditError),
    #[error("cannot write the endpoints")]
    Request(#[source] ApiError),
}

impl From<SyncError> for ReconcileError {
    fn from(error: SyncError) -> Self {
        let class = match &error {
            SyncError::InvalidSubsets(_) | SyncError::Edit(_) => Class::Terminal,
            SyncError::Request(error) => Class::from(error),
        };
        Self::new(class, error)
    }
}

#[async_trait]
impl Reconcile for Reconciler {
    /// Enqueues all endpoints once, to find those whose service was deleted while no manager ran. Records of leader
    /// election have no service and stay.
    async fn prepare(&self, _: &Session) -> Result<(), ReconcileError> {
        for endpoints in self.endpoints.list() {
            if endpoints.metadata.annotations.get(LEADER).is_none() {
                self.queue.add(endpoints.metadata.key.clone(), Priority::Initial);
            }
        }
        Ok(())
    }

    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(service) = self.services.get(key) else {
            self.triggers.forget(key);
            self.batching.forget(key);
            self.delete(key, session).await?;
            return Ok(());
        };
        if !has_endpoints_of_pods(&service) {
            session.explain(|| "leaves its endpoints alone, as it selects no pods");
            return Ok(());
        }
        if let Some(pod) = self.pods.undecodable(&service) {
            session.explain(|| format!("leaves its endpoints as they are, as pod {} cannot be decoded", pod.name()));
            return Ok(session.requeue_after(UNDECODABLE_DELAY));
        }
        let pods = self.pods.of(&service);
        self.batching.begins(key, pods.len());
        // Also where nothing is written: the next change is to be compared with this state.
        let trigger = self.triggers.next(&service, &pods, self.addresses);
        let existing = self.endpoints.get(key);
        let seen = existing.as_deref().map(seen).transpose()?;
        let plan = plan(&service, subsets_of(&service, &pods, self.addresses), seen, trigger);
        session.explain(|| plan.explain());
        match plan {
            Plan::Keep => {}
            Plan::Write(desired) => write(session, key, existing.as_deref(), &desired).await?,
        }
        Ok(())
    }
}

fn seen(endpoints: &Endpoints) -> Result<Existing<'_>, SyncError> {
    Ok(Existing {
        labels: &endpoints.metadata.labels,
        over_capacity: endpoints.metadata.annotations.get(OVER_CAPACITY),
        subsets: subsets_in(&endpoints.document).map_err(SyncError::InvalidSubsets)?,
    })
}

impl Reconciler {
    async fn delete(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(endpoints) = self.endpoints.get(key) else { return Ok(()) };
        session.explain(|| "deletes the endpoints, as there is no such service");
        let uid = &endpoints.metadata.uid;
        session.raw_delete(const { &Endpoints::RESOURCE }, key, uid, &DeleteOptions::of_uid(uid.clone())).await?;
        Ok(())
    }
}

async fn write(
    session: &Session,
    key: &ObjectKey,
    existing: Option<&Endpoints>,
    desired: &Desired,
) -> Result<(), SyncError> {
    let resource = const { &Endpoints::RESOURCE };
    let document = document(key, existing, desired).map_err(SyncError::Edit)?;
    let written = match existing {
        Some(_) => session.put_document(resource, key, Subresource::None, &document).await,
        None => session.raw_create(resource, key, Payload::raw(document.as_str().to_owned())).await,
    };
    let Err(error) = written else { return Ok(()) };
    if existing.is_none() && error.is_namespace_terminating() {
        return Ok(());
    }
    // Another client has written them meanwhile, or an earlier attempt has: the cache shows it when this is retried.
    if !(error.is_conflict() || error.is_already_exists() || error.is_probably_created()) {
        let (service, message) = (key.clone(), error.message());
        match existing {
            Some(existing) => session.record(existing, &EventReason::FailedToUpdate { service, message }),
            None => record_failed_creation(session, key, &EventReason::FailedToCreate { service, message }),
        }
    }
    Err(SyncError::Request(error))
}

/// Records an event about endpoints that do not exist.
fn record_failed_creation(session: &Session, key: &ObjectKey, event: &EventReason) {
    let resource = const { &Endpoints::RESOURCE };
    let regarding = ObjectReference {
        api_version: resource.api_version(),
        kind: resource.kind.to_string(),
        namespace: key.namespace().unwrap_or_default().to_owned(),
        name: key.name().to_owned(),
        uid: Uid::default(),
        resource_version: ResourceVersion::default(),
        field_path: String::new(),
    };
    session.recorder().event(&regarding, event.event_type(), event.reason(), event.message());
}

/// The whole object. What it has beside labels, subsets and the annotations of this controller stays.
fn document(key: &ObjectKey, existing: Option<&Endpoints>, desired: &Desired) -> Result<Document, EditError> {
    let mut document = if let Some(existing) = existing {
        existing.document.clone()
    } else {
        let mut document = Document::of_kind(const { &Endpoints::RESOURCE });
        document.set(&["metadata"], &json!({ "name": key.name(), "namespace": key.namespace() }))?;
        document
    };
    document.set(&["metadata", "labels"], &desired.labels)?;
    for (name, value) in &desired.annotations {
        let path = ["metadata", "annotations", name];
        match value {
            Some(value) => document.set(&path, value)?,
            None => document.remove(&path)?,
        }
    }
    if desired.subsets.is_empty() {
        document.remove(&["subsets"])?;
    } else {
        document.set(&["subsets"], &desired.subsets)?;
    }
    Ok(document)
}
