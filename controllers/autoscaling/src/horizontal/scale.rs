//! The scale of a target: where it is, and the requests that read and write it.

use std::time::Duration;

use kcm_api::views::HorizontalPodAutoscalerView;
use kcm_api::{ObjectKey, Resource};
use kcm_framework::Session;
use kcm_framework::client::{ApiClient, ApiError, Scale};
use kcm_framework::discovery::Resources;

/// The scale of a target, and the resource that has it.
#[derive(Debug, Clone)]
pub(super) struct FoundScale {
    pub(super) resource: Resource,
    pub(super) scale: Scale,
}

/// Why the scale of a target is not known.
#[derive(Debug)]
pub(super) enum ScaleError {
    /// `apiVersion` of the target is none.
    InvalidVersion(String),
    /// No resource has the kind.
    Unmapped(String),
    /// The request failed.
    Request(ApiError),
}

/// The resources of the kind of a target, each in the version that its group prefers.
pub(super) fn resources_of_target(
    autoscaler: &HorizontalPodAutoscalerView,
    resources: &Resources,
) -> Result<Vec<Resource>, ScaleError> {
    let (version, kind) = (&autoscaler.target_api_version, &autoscaler.target_kind);
    let group = match version.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            return Err(ScaleError::InvalidVersion(format!("unexpected GroupVersion string: {version}")));
        }
        Some((group, _)) => group,
        None => "",
    };
    let of_kind = |resource: &&Resource| resource.group == group && *resource.kind == **kind;
    let found: Vec<Resource> = resources.preferred().map(|served| &served.resource).filter(of_kind).cloned().collect();
    if found.is_empty() {
        return Err(ScaleError::Unmapped(format!("no matches for kind {:?} in group {group:?}", kind.as_str())));
    }
    Ok(found)
}

/// Reads the scale of the first resource that has it; the error is that of the first.
pub(super) async fn read_scale(
    client: &ApiClient,
    resources: Vec<Resource>,
    target: &ObjectKey,
) -> Result<FoundScale, ScaleError> {
    let mut first = None;
    for resource in resources {
        match client.scale(&resource, target).await {
            Ok(scale) => return Ok(FoundScale { resource, scale }),
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    Err(first.map_or_else(|| ScaleError::Unmapped("unrecognized resource".to_owned()), ScaleError::Request))
}

/// How often a scale that has changed meanwhile is read and written again, and how long after.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Sets the replicas of a target.
pub(super) async fn write_scale(
    session: &Session,
    client: &ApiClient,
    found: &FoundScale,
    target: &ObjectKey,
    replicas: i32,
) -> Result<(), ApiError> {
    let FoundScale { resource, scale } = found;
    let mut scale = scale.clone();
    let mut attempt = 1;
    loop {
        scale.replicas = replicas;
        let Err(error) = session.put_scale(resource, target, &scale).await else { return Ok(()) };
        if !error.is_conflict() || attempt == ATTEMPTS {
            return Err(error);
        }
        attempt += 1;
        tokio::time::sleep(PAUSE).await;
        match client.scale(resource, target).await {
            Ok(latest) => scale = latest,
            Err(_) => return Err(error),
        }
    }
}
