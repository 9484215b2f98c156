//! Bodies of requests, and how they are to be taken.

use bytes::Bytes;
use serde::Serialize;

/// The JSON body of a request.
#[derive(Debug)]
pub struct Payload(pub(crate) Result<Bytes, serde_json::Error>);

impl Payload {
    /// The body that `value` serializes to.
    ///
    /// A value that cannot be written as JSON fails the request that it is given to.
    pub fn json(value: &impl Serialize) -> Self {
        Self(serde_json::to_vec(value).map(Bytes::from))
    }

    /// A body that is JSON already, such as a document.
    pub fn raw(json: impl Into<Bytes>) -> Self {
        Self(Ok(json.into()))
    }
}

impl Clone for Payload {
    fn clone(&self) -> Self {
        // serde_json's errors cannot be copied; their text says it all.
        Self(self.0.as_ref().map(Bytes::clone).map_err(serde::ser::Error::custom))
    }
}

/// A change to an object, by the way in which the API server is to apply it.
#[derive(Debug, Clone)]
pub enum Patch {
    /// JSON merge patch (RFC 7386).
    Merge(Payload),
    /// JSON patch (RFC 6902).
    Json(Payload),
    /// Strategic merge patch: lists merge by their keys; only for built-in kinds.
    Strategic(Payload),
    /// Server-side apply.
    Apply {
        /// Who owns the fields.
        field_manager: String,
        /// Whether fields of other managers are taken over.
        force: bool,
        /// The fields that the manager wants.
        body: Payload,
    },
}

impl Patch {
    pub(crate) const fn content_type(&self) -> &'static str {
        match self {
            Self::Merge(_) => "application/merge-patch+json",
            Self::Json(_) => "application/json-patch+json",
            Self::Strategic(_) => "application/strategic-merge-patch+json",
            // JSON is YAML.
            Self::Apply { .. } => "application/apply-patch+yaml",
        }
    }

    /// Whether applying it twice is the same as applying it once: the operations of a JSON patch may add up.
    pub(crate) const fn is_idempotent(&self) -> bool {
        match self {
            Self::Merge(_) | Self::Strategic(_) | Self::Apply { .. } => true,
            Self::Json(_) => false,
        }
    }
}

/// The subresource of an object that a request addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// The object itself.
    None,
    /// Its `status` subresource.
    Status,
    /// Its `scale` subresource.
    Scale,
    /// Another subresource, for example `eviction` or `token`.
    Other(&'static str),
}

impl Subresource {
    pub(crate) const fn path(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Status => Some("status"),
            Self::Scale => Some("scale"),
            Self::Other(name) => Some(name),
        }
    }
}

/// What happens to the objects owned by a deleted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DeletionPropagation {
    /// They stay, without owner.
    Orphan,
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
}

/// How an object is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// Only if the object is this one, and not a namesake made since.
    pub uid: Option<kcm_api::Uid>,
    /// Only if the object has not changed since.
    pub resource_version: Option<kcm_api::ResourceVersion>,
    /// Seconds that the object is given to end; 0 is at once. The kind's default where absent.
    pub grace_period_seconds: Option<i64>,
    /// What happens to dependents. The kind's default where absent.
    pub propagation: Option<DeletionPropagation>,
}

impl DeleteOptions {
    /// Deletes exactly the object of that uid.
    #[must_use]
    pub fn of_uid(uid: kcm_api::Uid) -> Self {
        Self { uid: Some(uid), ..Self::default() }
    }

    pub(crate) fn payload(&self) -> Payload {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Body<'a> {
            kind: &'static str,
            api_version: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            grace_period_seconds: Option<i64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            propagation_policy: Option<DeletionPropagation>,
            #[serde(skip_serializing_if = "Option::is_none")]
            preconditions: Option<Preconditions<'a>>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Preconditions<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            uid: Option<&'a kcm_api::Uid>,
            #[serde(skip_serializing_if = "Option::is_none")]
            resource_version: Option<&'a kcm_api::ResourceVersion>,
        }
        let preconditions = (self.uid.is_some() || self.resource_version.is_some())
            .then_some(Preconditions { uid: self.uid.as_ref(), resource_version: self.resource_version.as_ref() });
        Payload::json(&Body {
            kind: "DeleteOptions",
            api_version: "v1",
            grace_period_seconds: self.grace_period_seconds,
            propagation_policy: self.propagation,
            preconditions,
        })
    }
}

/// Which objects a list is to contain, and how fresh it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListOptions {
    /// Label selector.
    pub label_selector: Option<String>,
    /// Field selector, for example `metadata.name=web`.
    pub field_selector: Option<String>,
    /// Objects per page.
    pub limit: Option<u32>,
    /// Where the previous page ended.
    pub continue_token: Option<String>,
    /// At least this version, maybe from a cache of the server; the most recent state where absent.
    pub resource_version: Option<kcm_api::ResourceVersion>,
    /// Whether only metadata is wanted.
    pub metadata_only: bool,
}
