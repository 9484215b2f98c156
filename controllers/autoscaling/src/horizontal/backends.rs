//! The clients of the metrics APIs: each has a rate limiter, and a limit of requests that are sent at once.

use std::time::Duration;

use kcm_framework::ControllerContext;
use kcm_framework::client::{ApiClient, ApiError};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::evaluate::Answered;
use super::requests::{Api, Request};
use super::responses::{Response, read};

const JSON: &str = "application/json";
/// The versions of `custom.metrics.k8s.io` that are read, the latest first.
const CUSTOM_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// The metrics APIs.
pub(super) struct Backends {
    resource: Backend,
    custom: Backend,
    external: Backend,
    /// The version of the custom metrics API, and when it was read.
    custom_version: Mutex<Option<(Instant, String)>>,
    /// How long that version is kept.
    period: Duration,
}

struct Backend {
    client: ApiClient,
    limit: Semaphore,
}

impl Backends {
    /// The clients of a controller. Each API serves so many requests at once.
    pub(super) fn new(context: &ControllerContext, limit: usize, period: Duration) -> Self {
        let backend =
            |api: Api| Backend { client: context.named_client(api.as_str()), limit: Semaphore::new(limit.max(1)) };
        Self {
            resource: backend(Api::Resource),
            custom: backend(Api::Custom),
            external: backend(Api::External),
            custom_version: Mutex::default(),
            period,
        }
    }

    /// Sends a request as soon as its API may be sent one more. An API that does not respond is given up after the timeout
    /// of the client.
    pub(super) async fn send(&self, request: &Request) -> Answered {
        let started = Instant::now();
        let backend = match request.api() {
            Api::Resource => &self.resource,
            Api::Custom => &self.custom,
            Api::External => &self.external,
        };
        let _permit = backend.limit.acquire().await;
        let response = self.response(&backend.client, request).await;
        Answered { response, took: started.elapsed() }
    }

    async fn response(&self, client: &ApiClient, request: &Request) -> Result<Response, String> {
        let api = request.api();
        let failed = |message: String| format!("unable to fetch metrics from {} metrics API: {message}", api.as_str());
        let version = match api {
            Api::Custom => self.custom_version(client).await.map_err(failed)?,
            Api::Resource | Api::External => String::new(),
        };
        let body = client.get_path(&request.path(&version), JSON).await;
        read(request, &body.map_err(|error| failed(message_of(&error, &request.described())))?)
    }

    /// The version of the custom metrics API that its group prefers, or the latest that it has of those that are read.
    async fn custom_version(&self, client: &ApiClient) -> Result<String, String> {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Group {
            preferred_version: Version,
            versions: Vec<Version>,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Version {
            version: String,
        }
        let known = self.custom_version.lock().clone();
        if let Some((_, version)) = known.filter(|(read, _)| read.elapsed() < self.period) {
            return Ok(version);
        }
        let none = || "no custom metrics API (custom.metrics.k8s.io) registered".to_owned();
        let group = match client.get_path("/apis/custom.metrics.k8s.io", JSON).await {
            Ok(group) => group,
            Err(error) if error.is_not_found() => return Err(none()),
            Err(error) => return Err(error.message()),
        };
        let group: Group = serde_json::from_slice(&group).map_err(|error| error.to_string())?;
        let has = |version: &&str| group.versions.iter().any(|served| served.version == **version);
        let preferred = CUSTOM_VERSIONS.into_iter().find(|version| *version == group.preferred_version.version);
        let version = preferred.or_else(|| CUSTOM_VERSIONS.into_iter().find(has)).ok_or_else(none)?.to_owned();
        *self.custom_version.lock() = Some((Instant::now(), version.clone()));
        Ok(version)
    }
}

/// The failure of a request in client-go's words, where the response was no status of Kubernetes.
fn message_of(error: &ApiError, described: &str) -> String {
    let Some(status) = error.status().filter(|status| status.message.starts_with("the server answered ")) else {
        return error.message();
    };
    let message = match status.code {
        404 => "the server could not find the requested resource",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        _ => return error.message(),
    };
    format!("{message} (get {described})")
}
