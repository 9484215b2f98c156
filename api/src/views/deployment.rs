//! The view of a Deployment.

use serde::Deserialize;

use super::update_strategy::RawUpdateStrategy;
use crate::condition::Condition;
use crate::documented::Documented;
use crate::int_or_percent::IntOrPercent;
use crate::intern::InternedStr;
use crate::labels::Labels;
use crate::protobuf::{Field, Kind, ProtobufType};
use crate::resource::Resource;
use crate::selector::{InvalidSelector, LabelSelector, Selector};

/// A Deployment with its JSON. The controller updates the whole object and copies its pod template into `ReplicaSets`.
pub type Deployment = Documented<DeploymentView>;

crate::view! {
    /// Fields of a Deployment that decisions read.
    pub struct DeploymentView {
        resource: Resource::namespaced("apps", "v1", "deployments", "Deployment");
        annotations: [
            "deployment.kubernetes.io/revision",
            // asks for a rollback
            "deprecated.deployment.rollback.to",
        ];

        "spec" @ 2 {
            let replicas: Option<i32> = "replicas" @ 1;
            /// `spec.replicas`, 1 if it is absent.
            pub replicas: i32 = replicas.unwrap_or(1);
            let selector: Option<LabelSelector> = "selector" @ 2;
            /// `spec.selector`. The object is read even if its selector is invalid.
            pub selector: Result<Selector, InvalidSelector> = Selector::try_from(selector.as_ref());
            "template" @ 3 {
                "metadata" @ 1 {
                    /// `spec.template.metadata.labels`, empty if it is absent.
                    pub template_labels: Labels = "labels" @ 11;
                }
            }
            /// Rollout of a new template: `spec.strategy`.
            pub strategy: DeploymentStrategy = "strategy" @ 4;
            /// `spec.minReadySeconds`, 0 if it is absent.
            pub min_ready_seconds: i32 = "minReadySeconds" @ 5;
            /// `spec.revisionHistoryLimit`, `None` if it is absent.
            pub revision_history_limit: Option<i32> = "revisionHistoryLimit" @ 6;
            /// `spec.paused`, `false` if it is absent.
            pub paused: bool = "paused" @ 7;
            /// `spec.progressDeadlineSeconds`, `None` if it is absent.
            pub progress_deadline_seconds: Option<i32> = "progressDeadlineSeconds" @ 9;
        }
        /// Status of the Deployment, from `status`.
        pub status: DeploymentStatus = "status" @ 3;
    }
}

/// Way of replacing the pods of an old template.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "RawUpdateStrategy")]
pub enum DeploymentStrategy {
    /// Pods are replaced a few at a time.
    RollingUpdate {
        /// Number of pods that may be unavailable during a rollout.
        max_unavailable: Option<IntOrPercent>,
        /// Number of pods above `spec.replicas` that may exist during a rollout.
        max_surge: Option<IntOrPercent>,
    },
    /// All old pods are deleted before the first new pod is created.
    Recreate,
    /// Any other string, empty if none is set. The API server sets a default, so no stored object has this.
    Other(InternedStr),
}

impl From<RawUpdateStrategy> for DeploymentStrategy {
    fn from(RawUpdateStrategy { type_, max_unavailable, max_surge }: RawUpdateStrategy) -> Self {
        match type_.as_str() {
            "RollingUpdate" => Self::RollingUpdate { max_unavailable, max_surge },
            "Recreate" => Self::Recreate,
            _ => Self::Other(type_),
        }
    }
}

impl Default for DeploymentStrategy {
    fn default() -> Self {
        Self::Other(InternedStr::default())
    }
}

impl ProtobufType for DeploymentStrategy {
    const KIND: Kind = RawUpdateStrategy::KIND;
}

crate::message! {
    /// The status of a deployment.
    pub struct DeploymentStatus {
        /// The generation that this status was computed from.
        pub observed_generation: i64 = "observedGeneration" @ 1;
        /// Number of pods of any template.
        pub replicas: i32 = "replicas" @ 2;
        /// Number of pods with the current template.
        pub updated_replicas: i32 = "updatedReplicas" @ 3;
        /// Number of pods that are ready.
        pub ready_replicas: i32 = "readyReplicas" @ 7;
        /// Number of pods that have been ready for `minReadySeconds`.
        pub available_replicas: i32 = "availableReplicas" @ 4;
        /// Number of pods that are missing or not available.
        pub unavailable_replicas: i32 = "unavailableReplicas" @ 5;
        /// Number of further pods that are terminating; `None` if they are not counted.
        pub terminating_replicas: Option<i32> = "terminatingReplicas" @ 9;
        /// Number of times that the hash of a template was taken by another template.
        pub collision_count: Option<i32> = "collisionCount" @ 8;
        /// Conditions, in the order served.
        pub conditions: Box<[Condition]> = "conditions" @ 6 as Kind::List(&CONDITION);
    }
}

const CONDITION: Kind = Kind::One(&[
    Field::text(1, "type"),
    Field::text(2, "status"),
    Field::time(6, "lastUpdateTime"),
    Field::time(7, "lastTransitionTime"),
    Field::text(4, "reason"),
    Field::text(5, "message"),
]);
