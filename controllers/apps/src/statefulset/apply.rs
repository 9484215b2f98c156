//! The requests of a reconcile: revisions, pods, claims and the status.

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet, StatefulSetStatus};
use kcm_framework::client::{ApiError, Patch, Payload};
use kcm_framework::{Delete, ReconcileError, Session};
use serde_json::{Value, json};

use super::claim_work::ClaimWork;
use super::error::{ClaimError, SyncError};
use super::events::{StatefulSetEvent, Verb};
use super::gates::Gates;
use super::identity::{POD_INDEX, POD_NAME, claim_name, pod_name};
use super::new_objects::{claim_volume, new_claim, new_pod};
use super::retention::ClaimOwners;
use super::revisions::{
    Revision, Revisions, UpdateRevision, beyond_history_limit, hash, new_revision, update_revision,
};
use super::status::{revision_of, with_status};
use super::steps::{Deletion, Phase, Step, Which};
use crate::shared::pod_control::SlowStart;
use crate::shared::revisions::{Creation, RevisionData, create, delete, renumber, revision_name};

/// Finds the revisions of the `StatefulSet`, and creates or renumbers the revision of its template.
pub(super) async fn apply_revisions(
    session: &Session,
    set: &StatefulSet,
    revisions: &[Arc<ControllerRevision>],
    gates: Gates,
) -> Result<Revisions, ReconcileError> {
    let data = RevisionData::of(set.template()).map_err(ReconcileError::terminal)?;
    let mut collision_count = set.status.collision_count.unwrap_or(0);
    let existing = match update_revision(revisions, &data, gates.semantic_revisions) {
        UpdateRevision::Last(revision) => Some(revision),
        UpdateRevision::Renumber { revision, number } => {
            renumber(session, &revision, number).await?;
            Some(revision)
        }
        UpdateRevision::Create { number } => {
            let label = hash(&data, collision_count);
            let name = loop {
                let name = revision_name(set.metadata.key.name(), &hash(&data, collision_count));
                match create(session, &new_revision(set, &data, &name, &label, number)).await? {
                    Creation::Created | Creation::Found => break name,
                    Creation::Collision => collision_count = collision_count.saturating_add(1),
                }
            };
            return Ok(Revisions::new(set, revisions, Revision { name, data }, collision_count));
        }
    };
    let update = existing.and_then(|revision| Revision::of(&revision));
    // Validation rejects a revision without data.
    let update = update.unwrap_or_else(|| Revision { name: String::new(), data });
    Ok(Revisions::new(set, revisions, update, collision_count))
}

/// Deletes the revisions beyond the history limit.
pub(super) async fn delete_old_revisions(
    session: &Session,
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    revisions: &[Arc<ControllerRevision>],
    found: Option<&Revisions>,
) -> Result<(), ApiError> {
    let is_live = |revision: &ControllerRevision| {
        let name = revision.metadata.key.name();
        found.is_some_and(|found| found.current.name == name || found.update.name == name)
            || pods.iter().any(|pod| revision_of(pod) == name)
    };
    for revision in beyond_history_limit(set, revisions, is_live) {
        delete(session, revision).await?;
    }
    Ok(())
}

/// Writes the steps of one reconcile of one `StatefulSet`.
pub(super) struct Writer<'a> {
    pub(super) session: &'a Session,
    pub(super) set: &'a StatefulSet,
    pub(super) revisions: &'a Revisions,
}

impl Writer<'_> {
    /// Sends the requests of all phases. Returns the number of pods of the current revision that were deleted for the
    /// rollout.
    ///
    /// # Errors
    /// The first error, after the requests that were sent at the same time.
    pub(super) async fn apply(&self, phases: &[Phase]) -> (i32, Result<(), SyncError>) {
        let mut going = 0;
        for phase in phases {
            let outcome = if phase.in_order {
                self.apply_in_order(phase, &mut going).await
            } else {
                self.apply_in_batches(phase).await
            };
            if outcome.is_err() {
                return (going, outcome);
            }
        }
        (going, Ok(()))
    }

    async fn apply_in_order(&self, phase: &Phase, going: &mut i32) -> Result<(), SyncError> {
        for step in phase.pods.iter().flatten() {
            self.apply_step(step).await?;
            if let Step::Delete { pod, reason: Deletion::Outdated } = step
                && revision_of(pod) == self.revisions.current.name
            {
                *going += 1;
            }
        }
        Ok(())
    }

    async fn apply_in_batches(&self, phase: &Phase) -> Result<(), SyncError> {
        let mut batches = SlowStart::of(phase.pods.len());
        let (mut pods, mut first_error) = (phase.pods.iter(), None::<SyncError>);
        while let Some(size) = batches.next_batch() {
            let mut calls: FuturesUnordered<_> = pods.by_ref().take(size).map(|steps| self.apply_all(steps)).collect();
            while let Some(outcome) = calls.next().await {
                if let Err(error) = outcome {
                    batches.stop();
                    first_error = Some(match first_error {
                        Some(first) => first.or_sooner(error),
                        None => error,
                    });
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn apply_all(&self, steps: &[Step]) -> Result<(), SyncError> {
        for step in steps {
            self.apply_step(step).await?;
        }
        Ok(())
    }

    async fn apply_step(&self, step: &Step) -> Result<(), SyncError> {
        match step {
            Step::Create { ordinal, revision, claims } => self.create(*ordinal, *revision, claims).await,
            Step::CreateClaims { pod, ordinal, claims } => {
                let name = pod.metadata.key.name();
                self.create_claims(name, *ordinal, claims).await.map_err(SyncError::Claims)?;
                self.update_claims(name, *ordinal, Some(pod), claims).await
            }
            Step::Update { pod, ordinal, labels, volumes, claims } => {
                self.update(pod, *ordinal, *labels, volumes, claims).await
            }
            Step::UpdateClaims { pod, ordinal, claims } => {
                let name = pod.metadata.key.name();
                self.update_claims(name, *ordinal, Some(pod), claims).await
            }
            Step::Delete { pod, reason } => {
                tracing::info!(v = 2, pod = %pod.metadata.key, ?reason, "Pod is terminating");
                self.delete(pod).await
            }
        }
    }

    async fn create(&self, ordinal: i64, revision: Which, claims: &ClaimWork) -> Result<(), SyncError> {
        let name = pod_name(self.set.metadata.key.name(), ordinal);
        if let Err(error) = self.create_claims(&name, ordinal, claims).await {
            self.record_pod(Verb::Create, &name, Some(error.to_string()));
            return Err(SyncError::Claims(error));
        }
        let revision = match revision {
            Which::Current => &self.revisions.current,
            Which::Update => &self.revisions.update,
        };
        let pod = new_pod(self.set, revision, ordinal).map_err(SyncError::InvalidTemplate)?;
        let created = self.session.create::<Pod>(&self.key(&name), Payload::raw(pod)).await;
        match created {
            // Another object has the name, or the cache is behind: no event, as upstream.
            Err(error) if error.is_already_exists() => return Err(SyncError::CreatePod(error)),
            Ok(_) | Err(_) => {}
        }
        self.update_claims(&name, ordinal, None, claims).await?;
        self.record_pod(Verb::Create, &name, created.as_ref().err().map(ApiError::message));
        created.map(drop).map_err(SyncError::CreatePod)
    }

    /// Creates the missing claims of a pod. All are tried; a claim that is being deleted is an error.
    async fn create_claims(&self, pod: &str, ordinal: i64, claims: &ClaimWork) -> Result<(), ClaimError> {
        let mut errors = ClaimError::default();
        for template in &claims.missing {
            let Some(name) = self.set.claim_templates.get(*template) else { continue };
            let set = self.set.metadata.key.name();
            let claim = claim_name(name, set, ordinal);
            let owner = ClaimOwners::of(self.set, pod, ordinal, None).of_new_claim();
            let created = match new_claim(self.set, *template, ordinal, owner) {
                Ok(object) => {
                    self.session.create::<PersistentVolumeClaim>(&self.key(&claim), Payload::raw(object)).await
                }
                Err(error) => {
                    errors.invalid(&claim, &error);
                    continue;
                }
            };
            let is_taken = created.as_ref().is_err_and(ApiError::is_already_exists);
            if !is_taken {
                let error = created.as_ref().err().map(ApiError::message);
                let (pod, set) = (pod.to_owned(), set.to_owned());
                self.record(&StatefulSetEvent::ClaimCreated { claim: claim.clone(), pod, set, error });
            }
            if let Err(error) = created {
                errors.failed(&claim, error);
            }
        }
        for claim in &claims.terminating {
            errors.terminating(claim);
        }
        for claim in &claims.undecodable {
            errors.undecodable(claim);
        }
        errors.into_result()
    }

    /// Repairs the owner references of the claims of a pod.
    ///
    /// The role of the controller allows an update of claims and no patch, and the cache does not have whole claims. So they
    /// are read live.
    async fn update_claims(
        &self,
        name: &str,
        ordinal: i64,
        pod: Option<&Pod>,
        claims: &ClaimWork,
    ) -> Result<(), SyncError> {
        for claim in &claims.conflicting {
            self.record(&StatefulSetEvent::ConflictingController { claim: claim.clone() });
        }
        let owners = ClaimOwners::of(self.set, name, ordinal, pod.map(|pod| &pod.metadata.uid));
        for claim in &claims.outdated {
            if let Err(error) = self.update_claim(owners, &claim.metadata.key).await {
                let claim = claim.metadata.key.name();
                let message =
                    format!("could not update claim {claim} for delete policy ownerRefs: {}", error.message());
                self.record_pod(Verb::Update, name, Some(message));
                return Err(SyncError::UpdateClaim(error));
            }
        }
        Ok(())
    }

    async fn update_claim(&self, owners: ClaimOwners<'_>, key: &ObjectKey) -> Result<(), ApiError> {
        let Some(live) = self.session.live::<PersistentVolumeClaim>(key).await? else { return Ok(()) };
        if owners.are_up_to_date(&live.metadata) {
            return Ok(());
        }
        // Owner references that the API server returns can be edited.
        let Ok(document) = owners.update(&live.metadata, &live.document) else { return Ok(()) };
        self.session.update(&live, &document).await.map(drop)
    }

    async fn update(
        &self,
        pod: &Pod,
        ordinal: i64,
        labels: bool,
        volumes: &[usize],
        claims: &ClaimWork,
    ) -> Result<(), SyncError> {
        let name = pod.metadata.key.name();
        if let Err(error) = self.create_claims(name, ordinal, claims).await {
            self.record_pod(Verb::Update, name, Some(error.to_string()));
            return Err(SyncError::Claims(error));
        }
        self.update_claims(name, ordinal, Some(pod), claims).await?;
        let patched = if labels || !volumes.is_empty() {
            let patch = Patch::Strategic(Payload::json(&self.identity_patch(pod, ordinal, volumes)));
            self.session.patch(pod, patch).await.map(drop)
        } else {
            Ok(())
        };
        match patched {
            // The cache is behind.
            Err(error) if error.is_conflict() => Err(SyncError::UpdatePod(error)),
            patched => {
                self.record_pod(Verb::Update, name, patched.as_ref().err().map(ApiError::message));
                patched.map_err(SyncError::UpdatePod)
            }
        }
    }

    /// The patch that gives a pod its identity, and the volumes that it lacks.
    fn identity_patch(&self, pod: &Pod, ordinal: i64, volumes: &[usize]) -> Value {
        let meta = &pod.metadata;
        let mut patch = json!({
            "metadata": {
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
                "labels": { POD_NAME: meta.key.name(), POD_INDEX: ordinal.to_string() },
            },
        });
        let volumes = volumes.iter().filter_map(|index| self.set.claim_templates.get(*index)).map(|template| {
            let mut volume = claim_volume(self.set, template, ordinal);
            // The volume replaces one of another type.
            volume["$retainKeys"] = json!(["name", "persistentVolumeClaim"]);
            volume
        });
        let volumes: Vec<_> = volumes.collect();
        if !volumes.is_empty() {
            patch["spec"] = json!({ "volumes": volumes });
        }
        patch
    }

    async fn delete(&self, pod: &Pod) -> Result<(), SyncError> {
        let name = pod.metadata.key.name();
        match self.session.delete(pod, Delete::default()).await {
            Ok(_) => self.record_pod(Verb::Delete, name, None),
            // The cache is stale, and nothing failed.
            Err(error) if error.is_other_object() => return Err(SyncError::DeletePod(error)),
            Err(error) => {
                self.record_pod(Verb::Delete, name, Some(error.message()));
                return Err(SyncError::DeletePod(error));
            }
        }
        Ok(())
    }

    pub(super) async fn update_status(&self, status: &StatefulSetStatus) -> Result<(), ReconcileError> {
        self.session.update_status(self.set, &with_status(self.set, status)?).await?;
        Ok(())
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::namespaced(self.set.metadata.key.namespace().unwrap_or_default(), name)
    }

    fn record_pod(&self, verb: Verb, pod: &str, error: Option<String>) {
        let set = self.set.metadata.key.name().to_owned();
        self.record(&StatefulSetEvent::Pod { verb, pod: pod.to_owned(), set, error });
    }

    fn record(&self, event: &StatefulSetEvent) {
        self.session.record(self.set, event);
    }
}
