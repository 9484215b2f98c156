//! The requests of the garbage collector.

use std::collections::BTreeSet;

use kcm_framework::api::{Meta, ObjectKey, OwnerReference, Resource, Uid};
use kcm_framework::client::{ApiError, Deleted, DeletionPropagation, Patch, Payload};
use kcm_framework::{Class, Delete, ReconcileError, Session};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::graph::{Identity, has_finalizer};
use super::observe::{Live, LiveReader, LookupError};

/// Number of attempts to remove a finalizer from an object that other clients change at the same time.
const UPDATES: usize = 5;

/// The error of a deletion or an update.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChangeError {
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error(transparent)]
    Write(#[from] ApiError),
    /// Other clients changed the object before each attempt.
    #[error("the object has changed meanwhile")]
    Changed,
}

impl From<ChangeError> for ReconcileError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Lookup(error) => error.into(),
            ChangeError::Write(error) => error.into(),
            ChangeError::Changed => Self::new(Class::Conflict, error),
        }
    }
}

/// The resources for which the API server supports no strategic merge patches.
#[derive(Debug, Default)]
pub(super) struct MergePatched(Mutex<BTreeSet<Resource>>);

/// Attempts to delete an object whose other fields change, before it is tried again later.
const DELETIONS: usize = 5;

/// Deletes and updates objects.
pub(super) struct Writer<'a> {
    session: &'a Session,
    /// For objects that have changed meanwhile.
    reader: LiveReader<'a>,
    merge_patched: &'a MergePatched,
}

impl<'a> Writer<'a> {
    pub(super) const fn new(session: &'a Session, reader: LiveReader<'a>, merge_patched: &'a MergePatched) -> Self {
        Self { session, reader, merge_patched }
    }

    /// Deletes an object in the state that was read.
    ///
    /// If it has changed meanwhile but its owner references have not, it is deleted in its latest state, so that updates
    /// of other fields cannot keep it. Each attempt carries the version that was read, because the object may get an owner
    /// at any time.
    pub(super) async fn delete(
        &self,
        identity: &Identity,
        resource: &Resource,
        live: &Meta,
        propagation: DeletionPropagation,
    ) -> Result<Deleted, ChangeError> {
        let how = match propagation {
            DeletionPropagation::Background => Delete::background(),
            DeletionPropagation::Foreground => Delete::foreground(),
            DeletionPropagation::Orphan => Delete::orphan(),
        };
        let objects = self.session.of(resource);
        let mut version = live.resource_version.clone();
        let mut attempts = 1;
        loop {
            let error = match objects.delete(&live.key, &live.uid, &how.clone().at_version(&version)).await {
                Ok(deleted) => return Ok(deleted),
                Err(error) if error.is_conflict() && attempts < DELETIONS => error,
                Err(error) => return Err(error.into()),
            };
            attempts += 1;
            match self.reader.read(identity).await? {
                Live::Absent { .. } => return Ok(Deleted::Gone),
                Live::Found { meta, .. }
                    if meta.resource_version != version && meta.owner_references == live.owner_references =>
                {
                    version.clone_from(&meta.resource_version);
                }
                Live::Found { .. } => return Err(error.into()),
            }
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

    /// Updates the references of an object so that they block no deletion of an owner.
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

    /// Updates owner references by a strategic merge patch with the uid. If the API server does not support it, by a merge
    /// patch with the version and the references that `list` returns.
    async fn patch_references(
        &self,
        identity: &Identity,
        resource: &Resource,
        strategic: Vec<Value>,
        list: impl Fn(&Meta) -> Vec<Value>,
    ) -> Result<(), ChangeError> {
        let objects = self.session.of(resource);
        let is_merge_patched = self.merge_patched.0.lock().contains(resource);
        if !is_merge_patched {
            let body = json!({ "metadata": { "uid": identity.uid, "ownerReferences": strategic } });
            let key = key_of(resource, identity);
            match objects.patch(&key, Patch::Strategic(Payload::json(&body))).await {
                Ok(_) => return Ok(()),
                Err(error) if error.status().is_some_and(|status| status.code == 415) => {}
                Err(error) => return Err(error.into()),
            }
            self.merge_patched.0.lock().insert(resource.clone());
        }
        let Live::Found { meta, .. } = self.reader.read(identity).await? else { return Ok(()) };
        let references = list(&meta);
        let references = if references.is_empty() { Value::Null } else { Value::Array(references) };
        let metadata = json!({ "resourceVersion": meta.resource_version, "ownerReferences": references });
        objects.merge_patch(&meta, json!({ "metadata": metadata })).await?;
        Ok(())
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
            let metadata = json!({ "resourceVersion": meta.resource_version, "finalizers": rest });
            match self.session.of(resource).merge_patch(meta, json!({ "metadata": metadata })).await {
                Ok(_) => return Ok(live),
                Err(error) if error.is_conflict() && updates_left > 0 => {}
                // Another client has removed the finalizer, which the next read shows.
                Err(error) if error.is_not_found() && updates_left > 0 => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ChangeError::Changed)
    }
}

/// Returns the key of an object. A dependent may have named a namespace for a cluster-scoped kind.
fn key_of(resource: &Resource, identity: &Identity) -> ObjectKey {
    if resource.namespaced { identity.key() } else { ObjectKey::cluster_scoped(&*identity.name) }
}

fn unblocked(reference: &OwnerReference) -> Value {
    let mut reference = json!(reference);
    reference["blockOwnerDeletion"] = json!(false);
    reference
}
