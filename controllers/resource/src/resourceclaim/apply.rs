//! The requests.

use kcm_framework::api::views::{Pod, PodGroup, ResourceClaim};
use kcm_framework::api::{KnownView as _, Meta, Resource, ResourceVersion};
use kcm_framework::client::{ApiError, Patch, Payload, ResponseExt as _};
use kcm_framework::{Delete, Session};
use serde_json::{Value, json};

use super::plan::{FINALIZER, Plan};

const CLAIMS: &Resource = &ResourceClaim::RESOURCE;

/// The field manager of the names in the status of Pods and groups. Another name would make the entries co-owned, and
/// neither upstream nor this controller could remove them.
const FIELD_MANAGER: &str = "ResourceClaimController";

/// Writes the names of the claims of a Pod or a group to its status.
///
/// A field manager that leaves out an entry removes it, so that all entries are written.
pub(super) async fn name_claims(
    session: &Session,
    resource: &Resource,
    owner: &Meta,
    statuses: &[(&str, &str)],
) -> Result<(), ApiError> {
    let statuses: Vec<Value> =
        statuses.iter().map(|(entry, claim)| json!({ "name": entry, "resourceClaimName": claim })).collect();
    let configuration = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": { "namespace": owner.key.namespace(), "name": owner.key.name(), "uid": owner.uid },
        "status": { "resourceClaimStatuses": statuses },
    });
    session.of(resource).patch_status(&owner.key, Patch::apply(FIELD_MANAGER, &configuration)).await?;
    Ok(())
}

/// Reserves a claim for a Pod, or for its group.
pub(super) async fn reserve(
    session: &Session,
    claim: &ResourceClaim,
    pod: &Pod,
    group: Option<&PodGroup>,
) -> Result<(), ApiError> {
    let consumer = match group {
        None => json!({ "resource": "pods", "name": pod.metadata.key.name(), "uid": pod.metadata.uid }),
        Some(group) => json!({
            "apiGroup": PodGroup::RESOURCE.group,
            "resource": "podgroups",
            "name": group.metadata.key.name(),
            "uid": group.metadata.uid,
        }),
    };
    let known = claim.reserved_for.iter().map(|consumer| json!({ "uid": consumer.uid }));
    // A strategic merge puts a new entry first without this order.
    let order: Vec<Value> = known.chain([json!({ "uid": consumer["uid"] })]).collect();
    patch_status(session, claim, &json!({ "$setElementOrder/reservedFor": order, "reservedFor": [consumer] })).await?;
    Ok(())
}

/// Performs the writes of a plan. Calls `releasing` before the claim is deallocated, and `released` when its finalizer is
/// removed.
pub(super) async fn release(
    session: &Session,
    claim: &ResourceClaim,
    plan: &Plan,
    releasing: impl FnOnce(),
    released: impl FnOnce(),
) -> Result<(), ApiError> {
    let mut metadata = claim.metadata.clone();
    if plan.writes_status() {
        let removed: Vec<Value> = plan.removed.iter().map(|uid| json!({ "$patch": "delete", "uid": uid })).collect();
        let mut status = json!({ "reservedFor": removed });
        if plan.deallocates {
            status["allocation"] = Value::Null;
            releasing();
        }
        metadata.resource_version = patch_status(session, claim, &status).await?;
    }
    if plan.removes_finalizer {
        // It has the version of the response: the claim is as it was left.
        session.of(CLAIMS).remove_finalizer(&metadata, FINALIZER).await?;
        released();
    }
    if plan.deletes {
        session.delete(claim, Delete::default()).await.ignore(ApiError::is_other_object)?;
    }
    Ok(())
}

/// Patches the status of the claim as the cache shows it. Entries that are not named stay as they are.
async fn patch_status(session: &Session, claim: &ResourceClaim, status: &Value) -> Result<ResourceVersion, ApiError> {
    let Meta { key, uid, resource_version, .. } = &claim.metadata;
    let patch = json!({ "metadata": { "uid": uid, "resourceVersion": resource_version }, "status": status });
    let written = session.of(CLAIMS).patch_status(key, Patch::Strategic(Payload::json(&patch))).await?;
    Ok(written.resource_version)
}
