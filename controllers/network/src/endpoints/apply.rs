//! The requests of a reconcile.

use kcm_framework::api::views::Endpoints;
use kcm_framework::api::{Document, EditError, KnownView as _, Meta, ObjectKey};
use kcm_framework::client::{ApiError, Payload};
use kcm_framework::{Delete, ReconcileError, Session};
use serde_json::json;

use super::events::EndpointsEvent;
use super::plan::Desired;

pub(super) async fn delete(session: &Session, endpoints: &Endpoints) -> Result<(), ApiError> {
    session.delete(endpoints, Delete::default()).await.map(drop)
}

/// Updates the existing endpoints, or creates them. It is no error if the namespace is terminating.
pub(super) async fn write(
    session: &Session,
    key: &ObjectKey,
    existing: Option<&Endpoints>,
    desired: &Desired,
) -> Result<(), ReconcileError> {
    let document = document(key, existing, desired)?;
    let written = match existing {
        Some(existing) => session.update(existing, &document).await,
        None => session.create::<Endpoints>(key, Payload::raw(document.as_str().to_owned())).await,
    };
    let Err(error) = written else { return Ok(()) };
    if existing.is_none() && error.is_namespace_terminating() {
        return Ok(());
    }
    // Another client, or an earlier attempt, has written them meanwhile: the cache shows it when this is retried.
    if !(error.is_conflict() || error.is_already_exists() || error.is_probably_created()) {
        let (service, message) = (key.clone(), error.message());
        if let Some(existing) = existing {
            session.record(existing, &EndpointsEvent::FailedToUpdate { service, message });
        } else {
            let mut missing = Meta::default();
            missing.key = key.clone();
            let event = EndpointsEvent::FailedToCreate { service, message };
            session.record_for(const { &Endpoints::RESOURCE }, &missing, &event);
        }
    }
    Err(error.into())
}

/// Returns the whole object: the existing one with other labels, subsets and annotations of this controller.
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
