//! The requests to the API server.

use kcm_framework::api::{Document, KnownView as _};
use kcm_framework::client::{ApiError, Payload, Subresource};
use kcm_framework::{Class, ReconcileError, Session};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::REVIEWS;
use super::plan::Purpose;
use crate::shared::signing_request::{APPROVED, NewCondition, SigningRequest, with_condition};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    spec: Spec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a RawValue>,
    resource_attributes: Attributes,
}

#[derive(Serialize)]
struct Attributes {
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verb: &'static str,
}

#[derive(Deserialize)]
struct Reviewed {
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    allowed: bool,
}

/// Returns the body of a review: whether the requester may have a certificate for that purpose.
pub(super) fn review(document: &Document, purpose: Purpose) -> Payload {
    let field = |name| document.raw(&["spec", name]);
    Payload::json(&Review {
        api_version: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: Spec {
            user: field("username"),
            uid: field("uid"),
            groups: field("groups"),
            extra: field("extra"),
            resource_attributes: Attributes {
                group: "certificates.k8s.io",
                version: "*",
                resource: "certificatesigningrequests",
                subresource: purpose.subresource(),
                verb: "create",
            },
        },
    })
}

/// Asks the API server if the requester may have a certificate for that purpose.
pub(super) async fn is_allowed(
    request: &SigningRequest,
    purpose: Purpose,
    session: &Session,
) -> Result<bool, ReconcileError> {
    let written = session.api().create(&REVIEWS, None, review(&request.document, purpose)).await?;
    let reviewed: Reviewed =
        serde_json::from_slice(&written.body).map_err(|error| ReconcileError::new(Class::Transient, error))?;
    Ok(reviewed.status.allowed)
}

pub(super) async fn approve(
    request: &SigningRequest,
    purpose: Purpose,
    session: &Session,
) -> Result<(), ReconcileError> {
    let condition = NewCondition::new(APPROVED, "AutoApproved", purpose.message(), None);
    let document = with_condition(&request.document, &condition)?;
    update(request, &document, session).await?;
    tracing::info!(purpose = purpose.subresource(), "Approved the certificate of a kubelet");
    Ok(())
}

async fn update(request: &SigningRequest, document: &Document, session: &Session) -> Result<(), ApiError> {
    let approval = Subresource::Other("approval");
    let body = Payload::raw(document.as_str().to_owned());
    session.of(&SigningRequest::RESOURCE).put(&request.metadata.key, approval, body).await.map(drop)
}
