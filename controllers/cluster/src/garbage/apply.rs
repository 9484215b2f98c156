//! The requests of the garbage collector.

use std::collections::BTreeSet;

use kcm_api::{Meta, ObjectKey, OwnerReference, Resource, Uid};
use kcm_framework::client::{ApiError, DeleteOptions, Deleted, DeletionPropagation, Patch, Payload, Subresource};
use kcm_framework::{Class, ReconcileError, Session};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::graph::{Identity, has_finalizer};
use super::observe::{Live, LiveReader, LookupError};

/// How often a finalizer is removed from an object that others change at the same time.
const UPDATES: usize = 5;

/// A change that failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChangeError {
    /// The object could not be looked up.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The object could not be deleted.
    #[error("cannot delete an object whose owners are gone")]
    Delete(#[source] ApiError),
    /// The owner references or finalizers of the object could not be changed.
    #[error("cannot update an object")]
    Update(#[source] ApiError),
    /// An object was not in the state that the change was planned for.
    #[error("the object has changed meanwhile")]
    Changed,
}

impl From<ChangeError> for ReconcileError {
    fn from(error: ChangeError) -> Self {
        let class = match error {
            ChangeError::Lookup(error) => return error.into(),
            ChangeError::Delete(ref error) | ChangeError::Update(ref error) => Class::from(error),
            ChangeError::Changed => Class::Conflict,
        };
        Self::new(class, error)
    }
}

/// The resources for which the API server has no strategic merge patches.
#[derive(Debug, Default)]
pub(super) struct MergePatched(Mutex<BTreeSet<Resource>>);

/// Changes one object that was looked up.
pub(super) struct Writer<'a> {
    pub(super) session: &'a Session,
    pub(super) reader: LiveReader<'a>,
    pub(super) merge_patched: &'a MergePatched,
}

impl Writer<'_> {
    /// Deletes an object in the state that was read.
    ///
    /// Where it has changed meanwhile but its owner references have not, it is deleted in its latest state, so that updates
    /// of other fields cannot keep it.
    pub(super) async fn delete(
        &self,
        identity: &Identity,
        resource: &Resource,
        live: &Meta,
        propagation: DeletionPropagation,
    ) -> Result<Deleted, ChangeError> {
        let options = DeleteOptions {
            uid: Some(live.uid.clone()),
            resource_version: Some(live.resource_version.clone()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        let error = match self.session.raw_delete(resource, &live.key, &live.uid, &options).await {
            Ok(deleted) => return Ok(deleted),
            Err(error) if error.is_conflict() => error,
            Err(error) => return Err(ChangeError::Delete(error)),
        };
        match self.reader.read(identity).await? {
            Live::Absent { .. } => Ok(Deleted::Gone),
            Live::Found { meta, .. }
                if meta.resource_version != live.resource_version && meta.owner_references == live.owner_references =>
            {
                let of_any_version = DeleteOptions { resource_version: None, ..options };
                let deleted = self.session.raw_delete(resource, &live.key, &live.uid, &of_any_version).await;
                deleted.map_err(ChangeError::Delete)
            }
            Live::Found { .. } => Err(ChangeError::Delete(error)),
        }
    }

    /// Removes the references to these owners.
    pub(super) async fn remove_references(
        &self,
        identity: &Identity,
        resource: &Resource,
        owners: &[Uid],
    ) -> Result<(), ChangeError> {
        let removed: Vec<Value> = owners.iter().map(|uid| json!({ "$patch": "delete", "uid": uid })).collect();
        let rest = |meta: &Meta| {
            let rest = meta.owner_references.iter().filter(|reference| !owners.contains(&reference.uid));
            rest.map(|reference| json!(reference)).collect()
        };
        self.patch_references(identity, resource, removed, rest).await
    }

    /// Makes the references of an object block no deletion of an owner.
    pub(super) async fn unblock_references(
        &self,
        identity: &Identity,
        resource: &Resource,
        references: &[OwnerReference],
    ) -> Result<(), ChangeError> {
        let blocking = references.iter().filter(|reference| reference.block_owner_deletion);
        let changed = blocking.map(unblocked).collect();
        let all = |meta: &Meta| meta.owner_references.iter().map(unblocked).collect();
        self.patch_references(identity, resource, changed, all).await
    }

    /// Changes owner references by a strategic merge patch with the uid, or else by a merge patch of the list that `list`
    /// returns, with the version.
    async fn patch_references(
        &self,
        identity: &Identity,
        resource: &Resource,
        strategic: Vec<Value>,
        list: impl Fn(&Meta) -> Vec<Value>,
    ) -> Result<(), ChangeError> {
        let is_merge_patched = self.merge_patched.0.lock().contains(resource);
        if !is_merge_patched {
            let body = json!({ "metadata": { "uid": identity.uid, "ownerReferences": strategic } });
            let key = key_of(resource, identity);
            match self.patch(resource, &key, Patch::Strategic(Payload::json(&body))).await {
                Ok(()) => return Ok(()),
                Err(error) if error.status().is_some_and(|status| status.code == 415) => {}
                Err(error) => return Err(ChangeError::Update(error)),
            }
            self.merge_patched.0.lock().insert(resource.clone());
        }
        let Live::Found { meta, .. } = self.reader.read(identity).await? else { return Ok(()) };
        let references = list(&meta);
        let references = if references.is_empty() { Value::Null } else { Value::Array(references) };
        let body = json!({ "metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "ownerReferences": references,
        } });
        self.patch(resource, &meta.key, Patch::Merge(Payload::json(&body))).await.map_err(ChangeError::Update)
    }

    /// Removes a finalizer; returns the result of the last live read.
    pub(super) async fn remove_finalizer(&self, identity: &Identity, finalizer: &str) -> Result<Live, ChangeError> {
        for updates_left in (0..UPDATES).rev() {
            let live = self.reader.read(identity).await?;
            let Live::Found { resource, meta } = &live else { return Ok(live) };
            if !has_finalizer(meta, finalizer) {
                return Ok(live);
            }
            let rest: Vec<&str> =
                meta.finalizers.iter().map(|name| &**name).filter(|name| *name != finalizer).collect();
            let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
            let body = json!({ "metadata": {
                "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": rest,
            } });
            match self.patch(resource, &meta.key, Patch::Merge(Payload::json(&body))).await {
                Ok(()) => return Ok(live),
                Err(error) if error.is_conflict() && updates_left > 0 => {}
                // Another has removed it; the next read says so.
                Err(error) if error.is_not_found() && updates_left > 0 => {}
                Err(error) => return Err(ChangeError::Update(error)),
            }
        }
        Err(ChangeError::Changed)
    }

    async fn patch(&self, resource: &Resource, key: &ObjectKey, patch: Patch) -> Result<(), ApiError> {
        self.session.raw_patch(resource, key, Subresource::None, patch).await.map(drop)
    }
}

/// The key of an object, whose namespace a dependent may have named although its kind has none.
fn key_of(resource: &Resource, identity: &Identity) -> ObjectKey {
    if resource.namespaced { identity.key() } else { ObjectKey::cluster_scoped(&*identity.name) }
}

/// The reference with `blockOwnerDeletion` set to false.
fn unblocked(reference: &OwnerReference) -> Value {
    let mut reference = json!(reference);
    reference["blockOwnerDeletion"] = json!(false);
    reference
}
