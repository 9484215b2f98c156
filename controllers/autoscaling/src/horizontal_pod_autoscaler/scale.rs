//! The scale of a target: its resource, and the requests that read it.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_framework::api::views::HorizontalPodAutoscalerView;
use kcm_framework::api::{ObjectKey, Resource};
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
    /// Time of the read.
    pub(super) read: Instant,
}

/// The reason why the scale of a target is unknown.
#[derive(Debug)]
pub(super) enum ScaleError {
    /// `apiVersion` of the target is invalid.
    InvalidVersion(String),
    /// No resource has the kind.
    Unmapped(String),
    /// The request failed, with this message.
    Request(String),
    /// The API server is not reachable.
    Unanswered(ApiError),
}

/// Returns the resources of the kind of a target, each in the preferred version of its group.
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

/// Reads scales, a limited number of each resource at the same time, so that an API of targets that hangs delays the
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

    /// Reads the scale of the first resource that has it. The error is the one of the first resource.
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

    /// The client of scales.
    pub(super) const fn client(&self) -> &ApiClient {
        &self.client
    }
}

/// Names the scale of an object as the messages of client-go do, whose client of scales knows no group.
pub(super) fn described(resource: &Resource, target: &ObjectKey) -> String {
    format!("{} {}", resource.plural, target.name())
}
