//! Requests as values: method, path, body and kind.

use http::Method;
use kcm_api::{ObjectKey, Resource};

use super::answer::RequestKind;
use super::attempts::Attempts;
use super::error::{ApiError, Cause};
use super::head::Head;
use super::payload::{DeleteOptions, ListQuery, Patch, Payload, Subresource};
use super::query::Query;
use super::target::Target;

const JSON: &str = "application/json";

/// A write that is ready to be sent, any number of times.
#[derive(Debug)]
pub struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) verb: &'static str,
    pub(crate) target: Target<'a>,
    pub(crate) query: Query,
    pub(crate) content_type: &'static str,
    pub(crate) body: Payload,
    pub(crate) kind: RequestKind,
    /// Whether the server is told the time that it has. Without it, it takes a minute at most.
    pub(crate) has_timeout: bool,
}

impl<'a> Call<'a> {
    fn new(method: Method, verb: &'static str, target: Target<'a>, body: Payload, kind: RequestKind) -> Self {
        Self { method, verb, target, query: Query::default(), content_type: JSON, body, kind, has_timeout: true }
    }

    /// The creation of an object, under the name that it carries if it `has_name`.
    #[must_use]
    pub fn create(resource: &'a Resource, namespace: Option<&'a str>, object: Payload, has_name: bool) -> Self {
        let kind = if has_name { RequestKind::Create } else { RequestKind::CreateUnnamed };
        Self::new(Method::POST, "create", Target::collection(resource, namespace), object, kind)
    }

    /// The creation of a subresource.
    #[must_use]
    pub fn post(resource: &'a Resource, key: &'a ObjectKey, subresource: Subresource, object: Payload) -> Self {
        let target = Target::object(resource, key, subresource);
        Self::new(Method::POST, "create", target, object, RequestKind::Cumulative)
    }

    /// The eviction of a pod with preconditions.
    #[must_use]
    pub fn evict(resource: &'a Resource, key: &'a ObjectKey, options: &DeleteOptions) -> Self {
        let target = Target::object(resource, key, Subresource::EVICTION);
        Self::new(Method::POST, "create", target, options.eviction(key), RequestKind::Eviction)
    }

    /// The update of an object or a subresource.
    #[must_use]
    pub fn put(resource: &'a Resource, key: &'a ObjectKey, subresource: Subresource, object: Payload) -> Self {
        let kind = if is_versioned(&object) { RequestKind::Guarded } else { RequestKind::Idempotent };
        Self::new(Method::PUT, "update", Target::object(resource, key, subresource), object, kind)
    }

    /// The patch of an object or a subresource.
    #[must_use]
    pub fn patch(resource: &'a Resource, key: &'a ObjectKey, subresource: Subresource, patch: Patch) -> Self {
        let (is_idempotent, content_type) = (patch.is_idempotent(), patch.content_type());
        let has_timeout = !matches!(patch, Patch::MergeAs { .. });
        let (query, body) = match patch {
            Patch::Merge(body) | Patch::Json(body) | Patch::Strategic(body) => (Query::default(), body),
            Patch::MergeAs { field_manager, body } => (Query::default().pair("fieldManager", &field_manager), body),
            Patch::Apply { field_manager, force, body } => {
                let query = Query::default().pair("fieldManager", &field_manager);
                (query.optional("force", force.then_some("true")), body)
            }
        };
        let kind = match (is_idempotent, is_idempotent && is_versioned(&body)) {
            (true, true) => RequestKind::Guarded,
            (true, false) => RequestKind::Idempotent,
            (false, _) => RequestKind::Cumulative,
        };
        let target = Target::object(resource, key, subresource);
        Self { query, content_type, has_timeout, ..Self::new(Method::PATCH, "patch", target, body, kind) }
    }

    /// The deletion of an object.
    #[must_use]
    pub fn delete(resource: &'a Resource, key: &'a ObjectKey, options: &DeleteOptions) -> Self {
        let has_preconditions = options.uid.is_some() || options.resource_version.is_some();
        let kind = if has_preconditions { RequestKind::Guarded } else { RequestKind::Cumulative };
        let target = Target::object(resource, key, Subresource::None);
        Self::new(Method::DELETE, "delete", target, options.payload(), kind)
    }

    /// The deletion of the objects of a namespace, or of all, that match the selectors.
    #[must_use]
    pub fn delete_collection(
        resource: &'a Resource,
        namespace: Option<&'a str>,
        selected: &ListQuery,
        options: &DeleteOptions,
    ) -> Self {
        let target = Target::collection(resource, namespace);
        let call = Self::new(Method::DELETE, "deletecollection", target, options.payload(), RequestKind::Cumulative);
        Self { query: selected.query(), ..call }
    }

    /// No attempts yet of this request, which is not repeated when a connection breaks.
    #[must_use]
    pub const fn attempts(&self) -> Attempts {
        Attempts::of(self.kind)
    }

    /// The verb, as the API server authorizes it.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        self.verb
    }

    /// The subresource that the request addresses.
    #[must_use]
    pub const fn subresource(&self) -> Option<&'static str> {
        self.target.subresource()
    }

    /// Returns `true` if the response is the object itself, and not a subresource such as its scale.
    #[must_use]
    pub const fn is_of_object(&self) -> bool {
        self.target.is_of_object()
    }

    /// The error of this request, which failed with `cause`.
    #[must_use]
    pub fn error(&self, cause: Cause) -> ApiError {
        ApiError::new(self.target.describe(self.verb), cause)
    }
}

/// Returns `true` if the body carries a resource version, which no object has any more once the write has landed.
fn is_versioned(body: &Payload) -> bool {
    let head = body.0.as_ref().ok().and_then(|json| Head::of(json).ok());
    head.is_some_and(|head| !head.resource_version.is_unset())
}

/// Returns `true` if an object carries its own name.
pub(crate) fn has_name(object: &Payload) -> bool {
    let head = object.0.as_ref().ok().and_then(|json| Head::of(json).ok());
    head.is_some_and(|head| !head.name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

    /// A uid excludes the second landing of a deletion, and of no other write.
    #[test]
    fn a_write_is_guarded_by_a_resource_version_and_a_deletion_by_its_preconditions() {
        use RequestKind::{Cumulative, Eviction, Guarded, Idempotent};

        let pod = ObjectKey::namespaced("a", "p");
        let put = |metadata: &str| {
            let object = Payload::raw(format!(r#"{{"metadata":{metadata}}}"#));
            Call::put(&PODS, &pod, Subresource::Status, object).kind
        };
        let patch = |patch: Patch| Call::patch(&PODS, &pod, Subresource::None, patch).kind;
        let merge = |metadata: &str| patch(Patch::Merge(Payload::raw(format!(r#"{{"metadata":{metadata}}}"#))));
        let by_uid = DeleteOptions::of_uid("u".into());
        let by_version = DeleteOptions { resource_version: Some("7".into()), ..DeleteOptions::default() };
        let delete = |options: &DeleteOptions| Call::delete(&PODS, &pod, options).kind;
        let as_manager =
            |body: &str| Patch::MergeAs { field_manager: "m".to_owned(), body: Payload::raw(body.to_owned()) };
        for (name, kind, expected) in [
            (
                "patch of a manager with a version",
                patch(as_manager(r#"{"metadata":{"resourceVersion":"7"}}"#)),
                Guarded,
            ),
            ("update with a version", put(r#"{"uid":"u","resourceVersion":"7"}"#), Guarded),
            ("update with a uid", put(r#"{"uid":"u"}"#), Idempotent),
            ("update with neither", put("{}"), Idempotent),
            ("patch with a version", merge(r#"{"resourceVersion":"7"}"#), Guarded),
            ("patch with a uid", merge(r#"{"uid":"u"}"#), Idempotent),
            ("patch with neither", merge("{}"), Idempotent),
            ("operations", patch(Patch::Json(Payload::raw("[]"))), Cumulative),
            ("deletion of a uid", delete(&by_uid), Guarded),
            ("deletion of a version", delete(&by_version), Guarded),
            ("deletion of a name", delete(&DeleteOptions::default()), Cumulative),
            ("eviction", Call::evict(&PODS, &pod, &by_uid).kind, Eviction),
        ] {
            assert_eq!(kind, expected, "{name}");
        }
    }
}
