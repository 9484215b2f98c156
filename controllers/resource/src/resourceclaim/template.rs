//! The view of claim templates.

use std::collections::BTreeMap;

use kcm_framework::api::{Documented, Resource};
use serde_json::value::RawValue;

/// A claim template with its JSON, which is copied into claims.
pub(super) type ClaimTemplate = Documented<ClaimTemplateView>;

kcm_framework::api::view! {
    /// The fields of a claim template that decisions read.
    pub(super) struct ClaimTemplateView {
        resource: Resource::namespaced("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate");

        "spec" {
            "spec" {
                "devices" {
                    let requests: Vec<Request> = "requests";
                    /// Whether a request asks for admin access.
                    pub(super) has_admin_access: bool = requests.iter().any(Request::has_admin_access);
                    /// Whether a request has alternatives.
                    pub(super) has_alternatives: bool = requests.iter().any(|request| !request.first_available.is_empty());
                }
            }
        }
    }
}

kcm_framework::api::message! {
    struct Request {
        exactly: Option<Exactly> = "exactly";
        first_available: Vec<Alternative> = "firstAvailable";
    }
}

kcm_framework::api::message! {
    struct Exactly {
        is_admin: bool = "adminAccess";
    }
}

kcm_framework::api::message! {
    struct Alternative {}
}

impl Request {
    fn has_admin_access(&self) -> bool {
        self.exactly.as_ref().is_some_and(|exactly| exactly.is_admin)
    }
}

/// Returns the spec of the claims of the template.
pub(super) fn spec(template: &ClaimTemplate) -> Option<&RawValue> {
    template.raw(&["spec", "spec"])
}

/// Returns the labels or the annotations of the claims of the template.
pub(super) fn metadata_of_claims(template: &ClaimTemplate, field: &str) -> BTreeMap<String, String> {
    let raw = template.raw(&["spec", "metadata", field]);
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}
