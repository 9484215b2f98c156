//! Evaluators: which constraints of a quota each kind counts for, and how much.
//!
//! # Upstream
//! `pkg/quota/v1/evaluator/core`, and `apiserver/pkg/quota/v1/generic`.

pub(super) mod pods;
pub(super) mod resource_claims;
pub(super) mod scopes;
pub(super) mod services;
pub(super) mod volume_claims;

use std::fmt;

use kcm_framework::api::Resource;

use super::settings::Gates;
use pods::PodConstraint;
use resource_claims::{DeviceClasses, DeviceConstraint};
use services::ServiceConstraint;
use volume_claims::VolumeClaimConstraint;

/// What counts objects of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Evaluator {
    /// Pods, and their resources.
    Pods,
    /// Services, their node ports and load balancers.
    Services,
    /// Persistent volume claims, and what they request.
    VolumeClaims,
    /// Resource claims, and their devices.
    ResourceClaims,
    /// The objects of any other kind.
    Objects(ObjectCount),
}

/// The kind of which objects are counted: its plural name and group, as `deployments.apps`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectCount(String);

/// The kinds whose objects are also counted by their plural name alone.
const ALIASES: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

impl ObjectCount {
    /// The objects of a resource, whatever its version.
    pub(super) fn of(resource: &Resource) -> Self {
        let Resource { group, plural, .. } = resource;
        Self(if group.is_empty() { plural.to_string() } else { format!("{plural}.{group}") })
    }

    fn is_counted_by(&self, constraint: &str) -> bool {
        constraint.strip_prefix("count/") == Some(&*self.0) || (ALIASES.contains(&constraint) && self.0 == constraint)
    }
}

impl Evaluator {
    /// The evaluators whose constraints are known whether or not their kind is served.
    pub(super) const KNOWN: [Self; 4] = [Self::Pods, Self::Services, Self::VolumeClaims, Self::ResourceClaims];

    /// Whether the evaluator counts for a constraint: the name of a resource in `spec.hard`.
    pub(super) fn evaluates(&self, constraint: &str, classes: &DeviceClasses, gates: Gates) -> bool {
        match self {
            Self::Pods => PodConstraint::parse(constraint).is_some(),
            Self::Services => ServiceConstraint::parse(constraint).is_some(),
            Self::VolumeClaims => VolumeClaimConstraint::parse(constraint).is_some(),
            Self::ResourceClaims => DeviceConstraint::parse(constraint, classes, gates).is_some(),
            Self::Objects(count) => count.is_counted_by(constraint),
        }
    }
}

impl fmt::Display for Evaluator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pods => "pods",
            Self::Services => "services",
            Self::VolumeClaims => "persistentvolumeclaims",
            Self::ResourceClaims => "resourceclaims.resource.k8s.io",
            Self::Objects(count) => &count.0,
        })
    }
}
