//! The bodies and options of requests.

use bytes::Bytes;
use serde::Serialize;

use super::query::Query;

/// The JSON body of a request.
#[derive(Debug)]
pub struct Payload(pub(crate) Result<Bytes, serde_json::Error>);

impl Payload {
    /// The body that `value` serializes to.
    ///
    /// A value that cannot be serialized fails its request.
    pub fn json(value: &impl Serialize) -> Self {
        Self(serde_json::to_vec(value).map(Bytes::from))
    }

    /// The body as text; `None` if the value cannot be serialized.
    #[must_use]
    pub fn json_str(&self) -> Option<&str> {
        self.0.as_ref().ok().and_then(|json| std::str::from_utf8(json).ok())
    }

    /// A body of JSON, such as a document.
    pub fn raw(json: impl Into<Bytes>) -> Self {
        Self(Ok(json.into()))
    }
}

impl Clone for Payload {
    fn clone(&self) -> Self {
        // serde_json's errors cannot be cloned; the message is kept.
        Self(self.0.as_ref().map(Bytes::clone).map_err(serde::ser::Error::custom))
    }
}

/// A patch, by type.
#[derive(Debug, Clone)]
pub enum Patch {
    /// JSON merge patch (RFC 7386).
    Merge(Payload),
    /// JSON merge patch of a field manager, with no other parameter in its URL.
    ///
    /// # Upstream
    /// The storage version migrator. Audit policies and upstream's tests know its requests by their URL.
    MergeAs {
        /// Name of the field manager.
        field_manager: String,
        /// The changes.
        body: Payload,
    },
    /// JSON patch (RFC 6902).
    Json(Payload),
    /// Strategic merge patch: lists merge by their keys; only for built-in kinds.
    Strategic(Payload),
    /// Server-side apply, with a field manager.
    Apply {
        /// Name of the field manager.
        field_manager: String,
        /// Whether to take over fields of other managers.
        force: bool,
        /// The configuration to apply.
        body: Payload,
    },
}

impl Patch {
    /// Server-side apply of `configuration`, which takes over the fields of other managers, as a controller does for
    /// the fields that it owns.
    ///
    /// The configuration has `apiVersion`, `kind`, name and the fields that the manager wants; a field that it applied
    /// before and now leaves out is removed. An object that does not exist is created. With a uid in the metadata, an
    /// object recreated under the same name is a conflict, and no object is created.
    pub fn apply(field_manager: impl Into<String>, configuration: &impl Serialize) -> Self {
        Self::Apply { field_manager: field_manager.into(), force: true, body: Payload::json(configuration) }
    }

    pub(crate) const fn content_type(&self) -> &'static str {
        match self {
            Self::Merge(_) | Self::MergeAs { .. } => "application/merge-patch+json",
            Self::Json(_) => "application/json-patch+json",
            Self::Strategic(_) => "application/strategic-merge-patch+json",
            // JSON is YAML.
            Self::Apply { .. } => "application/apply-patch+yaml",
        }
    }

    /// Returns `true` if applying it twice equals applying it once. This does not hold for JSON patches.
    pub(crate) const fn is_idempotent(&self) -> bool {
        match self {
            Self::Merge(_) | Self::MergeAs { .. } | Self::Strategic(_) | Self::Apply { .. } => true,
            Self::Json(_) => false,
        }
    }
}

/// The subresource of an object that a request addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// The object itself, without a subresource.
    None,
    /// The `status` subresource of the object.
    Status,
    /// The `scale` subresource of the object.
    Scale,
    /// Another subresource, for example `eviction` or `token`.
    Other(&'static str),
}

impl Subresource {
    /// The eviction of a pod.
    pub const EVICTION: Self = Self::Other("eviction");

    /// The binding of a pod to a node.
    pub const BINDING: Self = Self::Other("binding");

    /// The finalizers in the `spec` of a namespace.
    pub const FINALIZE: Self = Self::Other("finalize");

    /// The tokens of a service account.
    pub const TOKEN: Self = Self::Other("token");

    pub(crate) const fn path(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Status => Some("status"),
            Self::Scale => Some("scale"),
            Self::Other(name) => Some(name),
        }
    }
}

/// How a deletion propagates to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DeletionPropagation {
    /// The dependents are kept and orphaned.
    Orphan,
    /// Dependents are deleted after the owner.
    Background,
    /// Dependents are deleted before the owner.
    Foreground,
}

/// The options of a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// Precondition: the uid of the object, so that an object recreated under the same name is kept.
    pub uid: Option<kcm_api::Uid>,
    /// Precondition: the resource version of the object.
    pub resource_version: Option<kcm_api::ResourceVersion>,
    /// The grace period in seconds; 0 deletes at once. `None` is the default of the kind.
    pub grace_period_seconds: Option<i64>,
    /// The propagation policy. `None` is the default of the kind.
    pub propagation: Option<DeletionPropagation>,
}

impl DeleteOptions {
    /// Options with that uid as the precondition.
    #[must_use]
    pub fn of_uid(uid: kcm_api::Uid) -> Self {
        Self { uid: Some(uid), ..Self::default() }
    }

    pub(crate) fn payload(&self) -> Payload {
        Payload::json(&self.body())
    }

    /// The `Eviction` of the pod `key` with these options.
    pub(crate) fn eviction(&self, key: &kcm_api::ObjectKey) -> Payload {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Eviction<'a> {
            kind: &'static str,
            api_version: &'static str,
            metadata: Metadata<'a>,
            delete_options: DeleteOptionsBody<'a>,
        }
        #[derive(Serialize)]
        struct Metadata<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            namespace: Option<&'a str>,
        }
        Payload::json(&Eviction {
            kind: "Eviction",
            api_version: "policy/v1",
            metadata: Metadata { name: key.name(), namespace: key.namespace() },
            delete_options: self.body(),
        })
    }

    fn body(&self) -> DeleteOptionsBody<'_> {
        let preconditions = (self.uid.is_some() || self.resource_version.is_some())
            .then_some(Preconditions { uid: self.uid.as_ref(), resource_version: self.resource_version.as_ref() });
        DeleteOptionsBody {
            kind: "DeleteOptions",
            api_version: "v1",
            grace_period_seconds: self.grace_period_seconds,
            propagation_policy: self.propagation,
            preconditions,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteOptionsBody<'a> {
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

/// The options of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListQuery {
    /// Label selector, for example `app=web`.
    pub label_selector: Option<String>,
    /// Field selector, for example `metadata.name=web`.
    pub field_selector: Option<String>,
    /// Largest number of objects per page.
    pub limit: Option<u32>,
    /// The `continue` token of the previous page.
    pub continue_token: Option<String>,
    /// The least resource version, for lists from the watch cache of the server. `None` reads the most recent state.
    pub resource_version: Option<kcm_api::ResourceVersion>,
    /// Whether to request metadata only.
    pub metadata_only: bool,
}

impl ListQuery {
    pub(crate) fn query(&self) -> Query {
        let limit = self.limit.map(|limit| limit.to_string());
        let version = self.resource_version.as_ref().map(ToString::to_string);
        Query::default()
            .optional("labelSelector", self.label_selector.as_deref())
            .optional("fieldSelector", self.field_selector.as_deref())
            .optional("limit", limit.as_deref())
            .optional("continue", self.continue_token.as_deref())
            .optional("resourceVersion", version.as_deref())
    }
}
