//! The requests of a reconcile: revisions, pods and the status.

use std::sync::Arc;

use kcm_framework::api::views::{ControllerRevision, DaemonSet, DaemonSetStatus, Pod};
use kcm_framework::client::{ApiError, Payload, ResponseExt as _};
use kcm_framework::ownership::Owner;
use kcm_framework::{ReconcileError, Session};
use serde_json::json;

use super::changes::{Creation, Deletion, PodChanges};
use super::history::{Current, History, hash_of, pods_of_duplicates};
use super::pod_spec::{InvalidTemplate, PodSpec, labels};
use super::revision::CurrentRevision;
use super::status::with_status;
use super::template_hash::template_hash;
use crate::shared::pod_control::{PodControl, PodTemplate};
use crate::shared::revisions::{
    self, Creation as RevisionCreation, NewRevision, POD_REVISION, RevisionData, revision_hash, revision_name,
};

/// Writes for one reconcile of one `DaemonSet`.
pub(super) struct Writer<'a> {
    pub(super) session: &'a Session,
    pub(super) set: &'a DaemonSet,
}

impl Writer<'_> {
    /// Creates, labels, renumbers and deduplicates revisions. Returns the hash of the current revision; `None` if the
    /// reconcile ends here, and the writes enqueue the `DaemonSet` again.
    pub(super) async fn apply_history(
        &self,
        history: &History,
        data: &RevisionData,
        pods: &[Arc<Pod>],
    ) -> Result<Option<String>, ReconcileError> {
        if !history.unlabelled.is_empty() {
            for revision in &history.unlabelled {
                self.label(revision).await?;
            }
            return Ok(None);
        }
        let Current::Keep { revision, renumber, duplicates } = &history.current else {
            let Current::Create { number } = history.current else { return Ok(None) };
            return self.create_revision(data, number).await;
        };
        if !duplicates.is_empty() {
            self.remove_duplicates(revision, duplicates, pods).await?;
            return Ok(None);
        }
        if let Some(number) = renumber {
            revisions::renumber(self.session, revision, *number).await?;
        }
        Ok(Some(hash_of(revision).to_owned()))
    }

    /// Labels a revision of an old release, which has no hash, with its name.
    async fn label(&self, revision: &ControllerRevision) -> Result<(), ReconcileError> {
        let mut document = revision.document.clone();
        document.set(&["metadata", "labels", POD_REVISION], revision.metadata.key.name())?;
        self.session.update(revision, &document).await?;
        Ok(())
    }

    async fn create_revision(&self, data: &RevisionData, number: i64) -> Result<Option<String>, ReconcileError> {
        let set = self.set;
        let collisions = set.status.collision_count;
        let hash = set.template().and_then(|template| template_hash(template, collisions));
        let hash = hash.unwrap_or_else(|| revision_hash(data, collisions));
        let name = revision_name(set.metadata.key.name(), &hash);
        let template_labels = set.raw(&["spec", "template", "metadata", "labels"]);
        let labels = match template_labels {
            Some(labels) => serde_json::from_str::<Option<_>>(labels.get()).map_err(InvalidTemplate::from)?,
            None => None,
        };
        let mut labels: std::collections::BTreeMap<&str, &str> = labels.unwrap_or_default();
        labels.insert(POD_REVISION, &hash);
        let new = NewRevision {
            owner: Owner::of(set),
            name: &name,
            labels,
            annotations: set.raw(&["metadata", "annotations"]),
            data,
            revision: number,
        };
        match revisions::create(self.session, &new).await? {
            RevisionCreation::Created | RevisionCreation::Found => Ok(Some(hash)),
            RevisionCreation::Collision => {
                let mut status = set.status.clone();
                status.collision_count = Some(status.collision_count.unwrap_or(0).saturating_add(1));
                tracing::info!(v = 2, revision = %name, "The name of the new revision is taken");
                self.update_status(&status).await?;
                Ok(None)
            }
        }
    }

    /// Gives the pods of duplicates the hash of the revision that is kept, and deletes the duplicates.
    async fn remove_duplicates(
        &self,
        kept: &ControllerRevision,
        duplicates: &[Arc<ControllerRevision>],
        pods: &[Arc<Pod>],
    ) -> Result<(), ReconcileError> {
        for pod in pods_of_duplicates(duplicates, pods) {
            let changes = json!({ "metadata": { "labels": { POD_REVISION: hash_of(kept) } } });
            self.session.merge_patch(&**pod, changes).await.ignore_not_found()?;
        }
        for duplicate in duplicates {
            revisions::delete(self.session, duplicate).await?;
        }
        Ok(())
    }

    pub(super) async fn delete_revisions(&self, old: &[Arc<ControllerRevision>]) -> Result<(), ApiError> {
        for revision in old {
            revisions::delete(self.session, revision).await?;
        }
        Ok(())
    }

    /// Deletes pods, with an event for each finished one.
    pub(super) async fn delete_pods(&self, changes: &PodChanges) -> Result<(), ReconcileError> {
        for event in changes.delete.iter().filter_map(Deletion::event) {
            self.session.record(self.set, &event);
        }
        let victims: Vec<Arc<Pod>> = changes.delete.iter().map(|deletion| Arc::clone(&deletion.pod)).collect();
        Ok(self.pod_control().delete(&victims).await?)
    }

    /// Creates pods in slow-start batches. Returns the indexes of the creations that failed, too.
    pub(super) async fn create_pods(
        &self,
        nodes: &[Creation],
        revision: &CurrentRevision,
    ) -> (Vec<usize>, Result<(), ReconcileError>) {
        if nodes.is_empty() {
            return (Vec::new(), Ok(()));
        }
        match self.pods(nodes, revision) {
            Ok(pods) => {
                let (failed, created) = self.pod_control().create_each(&pods).await;
                (failed, created.map_err(ReconcileError::from))
            }
            Err(error) => (Vec::new(), Err(error.into())),
        }
    }

    /// Returns a function for the pod of each node, which takes the name of the pod.
    fn pods(
        &self,
        nodes: &[Creation],
        revision: &CurrentRevision,
    ) -> Result<Vec<impl Fn(&str) -> Payload + Send + Sync>, InvalidTemplate> {
        let template = PodTemplate::of(self.set, &self.set.document).with_labels(labels(self.set, revision)?);
        let template = Arc::new(template);
        let spec = PodSpec::of(self.set)?;
        let mut pods = Vec::with_capacity(nodes.len());
        for Creation { node, reason: _ } in nodes {
            let (spec, template) = (spec.on(node)?, Arc::clone(&template));
            pods.push(move |name: &str| Payload::json(&template.pod_with_spec(name, Some(&spec))));
        }
        Ok(pods)
    }

    pub(super) async fn update_status(&self, status: &DaemonSetStatus) -> Result<(), ReconcileError> {
        self.session.update_status(self.set, &with_status(self.set, status)?).await?;
        Ok(())
    }

    const fn pod_control(&self) -> PodControl<'_, DaemonSet> {
        PodControl { session: self.session, owner: self.set }
    }
}

impl From<InvalidTemplate> for ReconcileError {
    fn from(error: InvalidTemplate) -> Self {
        Self::terminal(error)
    }
}
