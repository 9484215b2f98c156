//! The requests that create, renumber and delete revisions.

use std::collections::BTreeMap;

use kcm_framework::api::views::ControllerRevision;
use kcm_framework::api::{KnownView as _, ObjectKey, OwnerReference, Resource};
use kcm_framework::client::{ApiError, Payload};
use kcm_framework::ownership::Owner;
use kcm_framework::{Delete, ReconcileError, Session};
use serde::Serialize;
use serde_json::value::RawValue;

use super::data::RevisionData;

const REVISION: &Resource = &ControllerRevision::RESOURCE;

/// A revision to create.
#[derive(Debug, Clone)]
pub(crate) struct NewRevision<'a> {
    pub(crate) owner: Owner<'a>,
    pub(crate) name: &'a str,
    /// The labels of the template, and the label with the hash.
    pub(crate) labels: BTreeMap<&'a str, &'a str>,
    /// The annotations of the owner.
    pub(crate) annotations: Option<&'a RawValue>,
    pub(crate) data: &'a RevisionData,
    pub(crate) revision: i64,
}

/// The outcome of a creation that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Creation {
    Created,
    /// A revision of that name with that data exists already.
    Found,
    /// The name is taken for other data: a collision. Another collision count makes another name.
    Collision,
}

/// Creates a revision. If its name is taken, a live read shows the data of the object that has it.
pub(crate) async fn create(session: &Session, new: &NewRevision<'_>) -> Result<Creation, ApiError> {
    let key = ObjectKey::namespaced(new.owner.meta.key.namespace().unwrap_or_default(), new.name);
    match session.create::<ControllerRevision>(&key, Payload::json(&new.object())).await {
        Ok(_) => Ok(Creation::Created),
        Err(error) if error.is_already_exists() => {
            // An object that was deleted since is an error, so that the creation is retried.
            let live: ControllerRevision = session.api().get(REVISION, &key).await?;
            Ok(if new.data.is_of(&live) { Creation::Found } else { Creation::Collision })
        }
        Err(error) => Err(error),
    }
}

/// Gives a revision another number.
///
/// # Errors
/// A failed request, which is a conflict if the revision has changed.
pub(crate) async fn renumber(
    session: &Session,
    revision: &ControllerRevision,
    number: i64,
) -> Result<(), ReconcileError> {
    let mut document = revision.document.clone();
    document.set(&["revision"], &number)?;
    session.update(revision, &document).await?;
    Ok(())
}

/// Deletes a revision. A revision that does not exist is no error.
pub(crate) async fn delete(session: &Session, revision: &ControllerRevision) -> Result<(), ApiError> {
    session.delete(revision, Delete::default()).await.map(drop)
}

impl NewRevision<'_> {
    pub(super) fn object(&self) -> impl Serialize {
        Body {
            api_version: REVISION.api_version(),
            kind: &REVISION.kind,
            metadata: Metadata {
                name: self.name,
                namespace: self.owner.meta.key.namespace(),
                labels: &self.labels,
                annotations: self.annotations,
                owner_references: [self.owner.reference()],
            },
            data: self.data.raw(),
            revision: self.revision,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: String,
    kind: &'a str,
    metadata: Metadata<'a>,
    data: &'a RawValue,
    revision: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    labels: &'a BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a RawValue>,
    owner_references: [OwnerReference; 1],
}
