//! The clients of the metrics APIs: each has a rate limiter, and a limit of requests that are sent at once.

use std::time::Duration;

use kcm_framework::ControllerContext;
use kcm_framework::client::ApiClient;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

use super::evaluate::Answered;
use super::failure_message::{message_of, shortened};
use super::limit::{Count, Limit};
use super::requests::{Api, Request};
use super::responses::{Response, read};

const JSON: &str = "application/json";
/// How many bytes of a response are read: the usage of some 20,000 pods. A response that is longer is an error.
pub(super) const LONGEST_RESPONSE: usize = 16 << 20;
/// The versions of `custom.metrics.k8s.io` that are read.
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
    limit: Limit,
}

impl Backends {
    /// The clients of a controller. Each API serves so many requests at once.
    pub(super) fn new(context: &ControllerContext, limit: &Count, period: Duration) -> Self {
        let backend = |api: Api| Backend {
            client: context.named_client(api.as_str()),
            limit: Limit::new(std::sync::Arc::clone(limit)),
        };
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
        // Boxed, so that a job that waits for its turn holds no request, which takes kilobytes.
        let response = Box::pin(self.response(&backend.client, request)).await.map_err(shortened);
        Answered { response, took: started.elapsed() }
    }

    async fn response(&self, client: &ApiClient, request: &Request) -> Result<Response, String> {
        let api = request.api();
        let failed = |message: String| format!("unable to fetch metrics from {} metrics API: {message}", api.as_str());
        let version = match api {
            Api::Custom => self.custom_version(client).await.map_err(failed)?,
            Api::Resource | Api::External => String::new(),
        };
        let body = client.get_path_within(&request.path(&version), JSON, LONGEST_RESPONSE).await;
        read(request, &body.map_err(|error| failed(message_of(&error, "get", Some(&request.described()))))?)
    }

    /// The version of the custom metrics API.
    async fn custom_version(&self, client: &ApiClient) -> Result<String, String> {
        let known = self.custom_version.lock().clone();
        if let Some((_, version)) = known.filter(|(read, _)| read.elapsed() < self.period) {
            return Ok(version);
        }
        let group = match client.get_path_within("/apis/custom.metrics.k8s.io", JSON, LONGEST_RESPONSE).await {
            Ok(group) => group,
            Err(error) if error.is_not_found() => {
                return Err("no custom metrics API (custom.metrics.k8s.io) registered".to_owned());
            }
            Err(error) => return Err(message_of(&error, "get", None)),
        };
        let version = chosen_version(&group)?;
        *self.custom_version.lock() = Some((Instant::now(), version.clone()));
        Ok(version)
    }
}

/// The version of the custom metrics API that is read, of those of its group: the one that it prefers, or the first that is
/// known.
pub(super) fn chosen_version(group: &[u8]) -> Result<String, String> {
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
    let Group { preferred_version, versions } = serde_json::from_slice(group).map_err(|error| error.to_string())?;
    let in_order = std::iter::once(preferred_version).chain(versions).map(|served| served.version);
    let known = in_order.into_iter().find(|version| CUSTOM_VERSIONS.contains(&&**version));
    known.ok_or_else(|| "no known available metric versions found".to_owned())
}
