//! The view of a `ResourceQuota`.

use serde::Deserialize;

use crate::documented::Documented;
use crate::intern::InternedStr;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;
use crate::resource_list::ResourceList;

/// A `ResourceQuota` with its JSON. The controller updates its status.
pub type ResourceQuota = Documented<ResourceQuotaView>;

crate::view! {
    /// Fields of a `ResourceQuota` that decisions read.
    pub struct ResourceQuotaView {
        resource: Resource::namespaced("", "v1", "resourcequotas", "ResourceQuota");

        "spec" @ 2 {
            /// Limits by resource, from `spec.hard`.
            pub hard: ResourceList = "hard" @ 1;
            /// `spec.scopes`, empty if it is absent.
            pub scopes: Box<[InternedStr]> = "scopes" @ 2;
            "scopeSelector" @ 3 {
                /// `spec.scopeSelector.matchExpressions`, empty if it is absent.
                pub scope_selector: Box<[ScopeRequirement]> = "matchExpressions" @ 1;
            }
        }
        "status" @ 3 {
            /// `status.hard`: the limits that the usage was computed for.
            pub status_hard: ResourceList = "hard" @ 1;
            /// Usage by resource, from `status.used`.
            pub status_used: ResourceList = "used" @ 2;
        }
    }
}

crate::message! {
    /// A requirement of a scope selector: which objects a quota counts.
    pub struct ScopeRequirement {
        /// `scopeName`, empty if it is absent.
        pub scope_name: InternedStr = "scopeName" @ 1;
        /// Operator between scope and values: `operator`.
        pub operator: ScopeOperator = "operator" @ 2;
        /// `values`, empty if it is absent.
        pub values: Box<[InternedStr]> = "values" @ 3;
    }
}

/// The operator of a scope requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ScopeOperator {
    /// The value is among the named values.
    In,
    /// The value is not among the named values.
    NotIn,
    /// There is a value.
    Exists,
    /// There is no value.
    DoesNotExist,
    /// Not said, or a word that we do not know.
    #[default]
    #[serde(other)]
    Other,
}

impl ProtobufType for ScopeOperator {
    const KIND: Kind = Kind::Text;
}
