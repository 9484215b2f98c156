//! The scale of a target: where it is, and the requests that read and write it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kcm_api::views::HorizontalPodAutoscalerView;
use kcm_api::{ObjectKey, Resource};
use kcm_framework::Session;
use kcm_framework::client::{ApiClient, ApiError, Cause, Scale};
use kcm_framework::discovery::Resources;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::failure_message::message_of;
use super::limit::{Count, Limit};

/// The scale of a target, and the resource that has it.
#[derive(Debug, Clone)]
pub(super) struct FoundScale {
    pub(super) resource: Resource,
    pub(super) scale: Scale,
    /// When it was read.
    pub(super) read: Instant,
}

/// Why the scale of a target is not known.
#[derive(Debug)]
pub(super) enum ScaleError {
    /// `apiVersion` of the target is none.
    InvalidVersion(String),
    /// No resource has the kind.
    Unmapped(String),
    /// The request failed, with this message.
    Request(String),
    /// The API server is not reachable.
    Unanswered(ApiError),
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

/// The client of scales. So many are read at once of each resource, so that an API of targets that hangs delays the
/// autoscalers of its own targets, and no others.
pub(super) struct Scales {
    client: ApiClient,
    limit: Count,
    limits: Mutex<BTreeMap<Resource, Arc<Limit>>>,
}

impl Scales {
    pub(super) fn new(client: ApiClient, limit: Count) -> Self {
        Self { client, limit, limits: Mutex::default() }
    }

    /// Reads the scale of the first resource that has it; the error is that of the first.
    pub(super) async fn read(&self, resources: Vec<Resource>, target: &ObjectKey) -> Result<FoundScale, ScaleError> {
        let mut first = None;
        for resource in resources {
            let limit = Arc::clone(
                self.limits
                    .lock()
                    .entry(resource.clone())
                    .or_insert_with(|| Arc::new(Limit::new(Arc::clone(&self.limit)))),
            );
            let _permit = limit.acquire().await;
            // Boxed, so that a job that waits for its turn holds no request, which takes kilobytes.
            match Box::pin(self.client.scale(&resource, target)).await {
                Ok(scale) => return Ok(FoundScale { resource, scale, read: Instant::now() }),
                Err(error) => {
                    first.get_or_insert((resource, error));
                }
            }
        }
        let Some((resource, error)) = first else {
            return Err(ScaleError::Unmapped("unrecognized resource".to_owned()));
        };
        // An API server that responds to its probe responds; the API of the target, or its webhook, does not.
        let is_silent = matches!(error.cause(), Cause::Timeout(_));
        let is_answered = matches!(error.cause(), Cause::Status(_) | Cause::Decode(_))
            || (is_silent && Box::pin(self.client.connection().verdict()).await);
        if !is_answered {
            return Err(ScaleError::Unanswered(error));
        }
        Err(ScaleError::Request(message_of(&error, "get", Some(&described(&resource, target)))))
    }

    /// The client, which writes scales that have changed meanwhile.
    pub(super) const fn client(&self) -> &ApiClient {
        &self.client
    }
}

/// The scale of an object as client-go's messages name it; its client of scales knows no group.
pub(super) fn described(resource: &Resource, target: &ObjectKey) -> String {
    format!("{} {}", resource.plural, target.name())
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
    let FoundScale { resource, scale, .. } = found;
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
