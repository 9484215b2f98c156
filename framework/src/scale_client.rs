//! The scale client: reads the scale of an object of any kind.

use kcm_api::{ObjectKey, Resource};
use kcm_client::{ApiClient, ApiError, ErrorClass, Scale};

use crate::discovery::Discovery;
use crate::reconcile::{Class, ReconcileError};

/// Group and version of every kind `Scale`.
const SCALE_VERSIONS: [(&str, &str); 4] =
    [("autoscaling", "v1"), ("extensions", "v1beta1"), ("apps", "v1beta1"), ("apps", "v1beta2")];

/// Reads scales of objects whose kind is known at run time only, as owner references and scale targets name it.
///
/// Discovery maps the kind to its resource. The scale is written with [`SessionOf::update_scale`](crate::SessionOf::update_scale).
///
/// # Upstream
/// The scale client over the REST mapper of the controller context, which is read every 30 s as discovery is here.
#[derive(Clone)]
pub struct ScaleClient {
    api: ApiClient,
    discovery: Discovery,
}

/// The error of reading a scale. The messages are upstream's, which prints them in events and conditions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// The API server serves no such kind.
    #[error("no matches for kind \"{kind}\" in version \"{api_version}\"")]
    NoKindMatch {
        /// `apiVersion` of the object.
        api_version: String,
        /// Kind of the object.
        kind: String,
    },
    /// The kind has no scale, or its scale is of another kind than `Scale`.
    #[error("{resource} does not implement the scale subresource")]
    NotScalable {
        /// The resource of the kind, as `websites.example.com`.
        resource: String,
    },
    /// The request failed. An object that does not exist is [`ErrorClass::NotFound`].
    #[error("{}", .0.message())]
    Request(#[source] ApiError),
}

impl ScaleError {
    /// Returns `true` if the object does not exist but its kind has a scale.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Request(error) => error.class() == ErrorClass::NotFound,
            Self::NoKindMatch { .. } | Self::NotScalable { .. } => false,
        }
    }
}

impl From<ScaleError> for ReconcileError {
    /// A kind that is not served, or has no scale, is retried with back-off: it may be installed without an event.
    fn from(error: ScaleError) -> Self {
        let class = match &error {
            ScaleError::Request(error) => Class::from(error),
            ScaleError::NoKindMatch { .. } | ScaleError::NotScalable { .. } => Class::Transient,
        };
        Self::new(class, error)
    }
}

impl ScaleClient {
    /// A scale client that requests through `api`.
    #[must_use]
    pub const fn new(api: ApiClient, discovery: Discovery) -> Self {
        Self { api, discovery }
    }

    /// Returns the resource of a kind: in the version of `api_version` if it is served, else in the version that its
    /// group prefers.
    ///
    /// # Errors
    /// [`ScaleError::NoKindMatch`] if the last snapshot of discovery has no such kind.
    pub fn resource(&self, api_version: &str, kind: &str) -> Result<Resource, ScaleError> {
        let resources = self.discovery.resources();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let found = resources.resource_of(api_version, kind).or_else(|| resources.resource_of_kind(group, kind));
        let no_match = || ScaleError::NoKindMatch { api_version: api_version.to_owned(), kind: kind.to_owned() };
        found.cloned().ok_or_else(no_match)
    }

    /// Reads the scale of the object `key` of a kind, and the resource to write it to.
    ///
    /// # Errors
    /// As [`resource`](Self::resource). [`ScaleError::NotScalable`] if the object is not found and the kind has no
    /// `scale` subresource of a known format. [`ScaleError::is_not_found`] if the object does not exist.
    pub async fn get(&self, api_version: &str, kind: &str, key: &ObjectKey) -> Result<(Resource, Scale), ScaleError> {
        let resource = self.resource(api_version, kind)?;
        match self.api.scale(&resource, key).await {
            Ok(scale) => Ok((resource, scale)),
            // The response is the same for an object that does not exist and for a kind without a scale.
            Err(error) if error.is_not_found() && !self.is_scalable(&resource) => {
                Err(ScaleError::NotScalable { resource: resource.to_string() })
            }
            Err(error) => Err(ScaleError::Request(error)),
        }
    }

    fn is_scalable(&self, resource: &Resource) -> bool {
        let resources = self.discovery.resources();
        let scale = resources.get(resource).and_then(|served| served.subresources.get("scale"));
        scale.is_some_and(|scale| &*scale.kind == "Scale" && SCALE_VERSIONS.contains(&(&*scale.group, &*scale.version)))
    }
}

impl std::fmt::Debug for ScaleClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScaleClient").finish_non_exhaustive()
    }
}
