//! Adoption and release, as requests.

use std::sync::Arc;

use kcm_api::{KnownView, Meta, OwnerReference, PartialObjectMeta, Uid};
use kcm_framework::Session;
use kcm_framework::client::{ApiError, Patch, Payload, Subresource};
use serde::Serialize;

use super::claim::Claims;
use super::error::{Behind, ClaimError, ObjectClaimError};
use super::ownership::Owner;

/// Adopts and releases; the objects that belong to `owner` from then on.
///
/// Nothing is adopted before the API server itself has said that the owner is there and not being deleted.
///
/// # Errors
/// Any failure, after everything was tried: an owner that does not know what it has, must not act on it.
pub(crate) async fn settle<V: KnownView>(
    session: &Session,
    owner: Owner<'_>,
    claims: Claims<V>,
) -> Result<Vec<Arc<V>>, ClaimError> {
    let resource = const { &V::RESOURCE };
    let mut claimed = claims.kept;
    let mut errors = Vec::new();
    for object in &claims.release {
        match patch(session, &**object, &release(owner, object.meta())).await {
            Ok(()) => tracing::info!(kind = %resource.kind, object = %object.meta().key, "Released object"),
            // The object is gone, or the reference is.
            Err(error) if error.is_not_found() || error.is_invalid() => {}
            Err(error) => errors.push(ObjectClaimError::Release(error)),
        }
    }
    if !claims.adopt.is_empty() {
        match recheck(session, owner).await {
            Ok(()) => {
                for object in claims.adopt {
                    match patch(session, &*object, &adoption(owner, object.meta())).await {
                        Ok(()) => {
                            tracing::info!(kind = %resource.kind, object = %object.meta().key, "Adopted object");
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
    ClaimError::of(&resource.plural, errors).map_or(Ok(claimed), Err)
}

async fn patch<V: KnownView>(session: &Session, object: &V, body: &impl Serialize) -> Result<(), ApiError> {
    let patch = Patch::Strategic(Payload::json(body));
    session.patch(const { &V::RESOURCE }, &object.meta().key, Subresource::None, patch).await.map(|_| ())
}

/// Makes sure, with the API server and not with a cache, that the owner is there and not being deleted.
///
/// What is adopted afterwards cannot have been orphaned by a deletion that we had not seen.
async fn recheck(session: &Session, owner: Owner<'_>) -> Result<(), ObjectClaimError> {
    let key = &owner.meta.key;
    let live: PartialObjectMeta = session.api().get(owner.resource, key).await.map_err(ObjectClaimError::Recheck)?;
    let behind = if live.metadata.uid != owner.meta.uid {
        Behind::Replaced { got: live.metadata.uid, wanted: owner.meta.uid.clone() }
    } else if let Some(since) = live.metadata.deletion_timestamp {
        Behind::Terminating { since }
    } else {
        return Ok(());
    };
    Err(ObjectClaimError::Behind { owner: key.clone(), behind })
}

/// The patch that makes `owner` the controller of an object, if that is still the same one.
///
/// Owners merge by uid: one that is there already as a mere owner becomes the controller, others stay, and a second
/// controller is refused.
fn adoption(owner: Owner<'_>, object: &Meta) -> impl Serialize + use<> {
    Body { metadata: Adoption { owner_references: [owner.reference()], uid: object.uid.clone() } }
}

/// The patch that takes `owner` out of the owners of an object, if that is still the same one.
fn release(owner: Owner<'_>, object: &Meta) -> impl Serialize + use<> {
    let removal = Removal { patch: "delete", uid: owner.meta.uid.clone() };
    Body { metadata: Release { uid: object.uid.clone(), owner_references: [removal] } }
}

#[derive(Serialize)]
struct Body<M> {
    metadata: M,
}

// The uid comes last in one patch and first in the other because upstream sends them so.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Adoption {
    owner_references: [OwnerReference; 1],
    uid: Uid,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Release {
    uid: Uid,
    owner_references: [Removal; 1],
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

    fn text(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn adoption_names_the_controller_and_the_object() {
        assert_eq!(
            text(&adoption(Owner::of(&object("web", "uid-of-web")), object("a", "uid-of-a").meta())),
            concat!(
                r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","#,
                r#""uid":"uid-of-web","controller":true,"blockOwnerDeletion":true}],"uid":"uid-of-a"}}"#,
            )
        );
    }

    #[test]
    fn release_names_the_object_and_who_lets_go() {
        assert_eq!(
            text(&release(Owner::of(&object("web", r#"odd"uid"#)), object("a", "uid-of-a").meta())),
            r#"{"metadata":{"uid":"uid-of-a","ownerReferences":[{"$patch":"delete","uid":"odd\"uid"}]}}"#
        );
    }
}
