//! The requests that adopt and release objects.

use std::sync::Arc;

use kcm_api::{KnownView, Meta, OwnerReference, PartialObjectMeta, Resource, Uid, View};
use kcm_client::{ApiError, Patch, Payload};
use serde::Serialize;

use super::claim::Claims;
use super::error::{ClaimError, ObjectClaimError, StaleOwner};
use super::owner::Owner;
use crate::reconcile::Session;

/// Adopts and releases objects, and returns the objects that the owner controls afterwards.
///
/// Before the first adoption, a live read checks that the owner exists and is not being deleted.
///
/// # Errors
/// Any failed claim, after all claims were tried. The set of claimed objects is unknown then, and must not be acted on.
pub async fn adopt_and_release<V: KnownView>(
    session: &Session,
    owner: Owner<'_>,
    claims: Claims<V>,
) -> Result<Vec<Arc<V>>, ClaimError> {
    adopt_and_release_for(session, const { &V::RESOURCE }, owner, claims).await
}

/// As [`adopt_and_release`], but also adds `finalizer` to adopted objects and removes it from released ones.
///
/// # Errors
/// As [`adopt_and_release`].
pub async fn adopt_and_release_with_finalizer<V: KnownView>(
    session: &Session,
    owner: Owner<'_>,
    claims: Claims<V>,
    finalizer: &str,
) -> Result<Vec<Arc<V>>, ClaimError> {
    apply_claims(session, const { &V::RESOURCE }, owner, claims, Some(finalizer)).await
}

/// As [`adopt_and_release`], for objects of any resource of a built-in kind.
///
/// # Errors
/// As [`adopt_and_release`].
pub async fn adopt_and_release_for<V: View>(
    session: &Session,
    resource: &Resource,
    owner: Owner<'_>,
    claims: Claims<V>,
) -> Result<Vec<Arc<V>>, ClaimError> {
    apply_claims(session, resource, owner, claims, None).await
}

async fn apply_claims<V: View>(
    session: &Session,
    resource: &Resource,
    owner: Owner<'_>,
    claims: Claims<V>,
    finalizer: Option<&str>,
) -> Result<Vec<Arc<V>>, ClaimError> {
    let mut claimed = claims.kept;
    let mut errors = Vec::new();
    for object in &claims.release {
        match patch(session, resource, object.meta(), &release(owner, object.meta(), finalizer)).await {
            Ok(()) => tracing::info!(v = 2, kind = %resource.kind, object = %object.meta().key, "Released object"),
            // The object was deleted, or the reference was removed.
            Err(error) if error.is_not_found() || error.is_invalid() => {}
            Err(error) => errors.push(ObjectClaimError::Release(error)),
        }
    }
    if !claims.adopt.is_empty() {
        match recheck(session, owner).await {
            Ok(()) => {
                for object in claims.adopt {
                    match patch(session, resource, object.meta(), &adoption(owner, object.meta(), finalizer)).await {
                        Ok(()) => {
                            tracing::info!(v = 2, kind = %resource.kind, object = %object.meta().key, "Adopted object");
                            claimed.push(object);
                        }
                        Err(error) if error.is_not_found() => {}
                        Err(error) => errors.push(ObjectClaimError::Adopt(error)),
                    }
                }
            }
            Err(error) => errors.push(error),
        }
    }
    ClaimError::of(resource, errors).map_or(Ok(claimed), Err)
}

async fn patch(
    session: &Session,
    resource: &Resource,
    object: &Meta,
    body: &(impl Serialize + Sync),
) -> Result<(), ApiError> {
    let patch = Patch::Strategic(Payload::json(body));
    session.of(resource).patch(&object.key, patch).await.map(drop)
}

/// Checks with a live read that the owner exists and is not being deleted.
///
/// An object that is adopted afterwards was not orphaned by a deletion that the cache has not seen.
async fn recheck(session: &Session, owner: Owner<'_>) -> Result<(), ObjectClaimError> {
    let key = &owner.meta.key;
    let live: PartialObjectMeta = session.api().get(owner.resource, key).await.map_err(ObjectClaimError::Recheck)?;
    let cause = if live.metadata.uid != owner.meta.uid {
        StaleOwner::Replaced { got: live.metadata.uid, wanted: owner.meta.uid.clone() }
    } else if let Some(since) = live.metadata.deletion_timestamp {
        StaleOwner::Terminating { since }
    } else {
        return Ok(());
    };
    Err(ObjectClaimError::StaleOwner { owner: key.clone(), cause })
}

/// The patch that makes `owner` the controller of an object of this uid.
///
/// Owner references merge by uid: an existing reference becomes the controller reference, others stay, and the API server
/// rejects a second controller.
fn adoption<'a>(owner: Owner<'_>, object: &Meta, finalizer: Option<&'a str>) -> impl Serialize + use<'a> {
    let finalizers = finalizer.map(|finalizer| [finalizer]);
    Body { metadata: Adoption { owner_references: [owner.reference()], uid: object.uid.clone(), finalizers } }
}

/// The patch that removes `owner` from the owners of an object of this uid.
fn release<'a>(owner: Owner<'_>, object: &Meta, finalizer: Option<&'a str>) -> impl Serialize + use<'a> {
    let removal = Removal { patch: "delete", uid: owner.meta.uid.clone() };
    let finalizers = finalizer.map(|finalizer| [finalizer]);
    Body { metadata: Release { uid: object.uid.clone(), owner_references: [removal], finalizers } }
}

#[derive(Serialize)]
struct Body<M> {
    metadata: M,
}

// The order of the fields in both patches is upstream's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Adoption<'a> {
    owner_references: [OwnerReference; 1],
    uid: Uid,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalizers: Option<[&'a str; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Release<'a> {
    uid: Uid,
    owner_references: [Removal; 1],
    #[serde(rename = "$deleteFromPrimitiveList/finalizers", skip_serializing_if = "Option::is_none")]
    finalizers: Option<[&'a str; 1]>,
}

#[derive(Serialize)]
struct Removal {
    #[serde(rename = "$patch")]
    patch: &'static str,
    uid: Uid,
}

#[cfg(test)]
mod tests {
    use kcm_api::View as _;
    use kcm_api::views::ReplicaSet;

    use super::*;

    fn object(name: &str, uid: &str) -> ReplicaSet {
        let json = serde_json::json!({ "metadata": { "namespace": "shop", "name": name, "uid": uid } });
        ReplicaSet::decode(&json.to_string()).unwrap()
    }

    fn json(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn adoption_names_the_controller_and_the_object() {
        assert_eq!(
            json(&adoption(Owner::of(&object("web", "uid-of-web")), object("a", "uid-of-a").meta(), None)),
            concat!(
                r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","#,
                r#""uid":"uid-of-web","controller":true,"blockOwnerDeletion":true}],"uid":"uid-of-a"}}"#,
            )
        );
    }

    #[test]
    fn a_finalizer_is_added_by_adoption_and_removed_by_release() {
        let (owner, object) = (object("web", "u"), object("a", "uid-of-a"));
        assert_eq!(
            json(&adoption(Owner::of(&owner), object.meta(), Some("example.com/track"))),
            concat!(
                r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u","#,
                r#""controller":true,"blockOwnerDeletion":true}],"uid":"uid-of-a","finalizers":["example.com/track"]}}"#,
            )
        );
        assert_eq!(
            json(&release(Owner::of(&owner), object.meta(), Some("example.com/track"))),
            concat!(
                r#"{"metadata":{"uid":"uid-of-a","ownerReferences":[{"$patch":"delete","uid":"u"}],"#,
                r#""$deleteFromPrimitiveList/finalizers":["example.com/track"]}}"#,
            )
        );
    }

    #[test]
    fn release_names_the_object_and_the_owner() {
        assert_eq!(
            json(&release(Owner::of(&object("web", r#"odd"uid"#)), object("a", "uid-of-a").meta(), None)),
            r#"{"metadata":{"uid":"uid-of-a","ownerReferences":[{"$patch":"delete","uid":"odd\"uid"}]}}"#
        );
    }
}
