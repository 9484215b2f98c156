//! Deployments.

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

/// A deployment, whole: it is put with its status and its annotations, and its template becomes that of replica sets.
pub type Deployment = Documented<DeploymentView>;

crate::view! {
    /// What decisions read of a deployment.
    pub struct DeploymentView {
        resource: Resource::namespaced("apps", "v1", "deployments", "Deployment");
        annotations: [
            "deployment.kubernetes.io/revision",
            // asks for a rollback
            "deprecated.deployment.rollback.to",
        ];

        "spec" @ 2 {
            let replicas: Option<i32> = "replicas" @ 1;
            /// `spec.replicas`, 1 where it is absent.
            pub replicas: i32 = replicas.unwrap_or(1);
            let selector: Option<LabelSelector> = "selector" @ 2;
            /// `spec.selector`; one that is invalid does not keep the rest of the object from being read.
            pub selector: Result<Selector, InvalidSelector> = Selector::try_from(selector.as_ref());
            "template" @ 3 {
                "metadata" @ 1 {
                    /// `spec.template.metadata.labels`.
                    pub template_labels: Labels = "labels" @ 11;
                }
            }
            /// `spec.strategy`.
            pub strategy: DeploymentStrategy = "strategy" @ 4;
            /// `spec.minReadySeconds`.
            pub min_ready_seconds: i32 = "minReadySeconds" @ 5;
            /// `spec.revisionHistoryLimit`.
            pub revision_history_limit: Option<i32> = "revisionHistoryLimit" @ 6;
            /// `spec.paused`.
            pub paused: bool = "paused" @ 7;
            /// `spec.progressDeadlineSeconds`.
            pub progress_deadline_seconds: Option<i32> = "progressDeadlineSeconds" @ 9;
        }
        /// `status`.
        pub status: DeploymentStatus = "status" @ 3;
    }
}

/// How the pods of one template take the place of those of another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "RawUpdateStrategy")]
pub enum DeploymentStrategy {
    /// Step by step.
    RollingUpdate {
        /// How many pods may be missing meanwhile.
        max_unavailable: Option<IntOrPercent>,
        /// How many pods there may be above what is desired.
        max_surge: Option<IntOrPercent>,
    },
    /// All old pods go before the first new one comes.
    Recreate,
    /// Any other string, empty where none is set; the API server sets a default, so no object has this.
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
        /// How many pods there are, of any template.
        pub replicas: i32 = "replicas" @ 2;
        /// How many of them have the current template.
        pub updated_replicas: i32 = "updatedReplicas" @ 3;
        /// How many of them are ready.
        pub ready_replicas: i32 = "readyReplicas" @ 7;
        /// How many of them have been ready for long enough.
        pub available_replicas: i32 = "availableReplicas" @ 4;
        /// How many more would have to be available.
        pub unavailable_replicas: i32 = "unavailableReplicas" @ 5;
        /// How many further pods are terminating; absent where they are not counted.
        pub terminating_replicas: Option<i32> = "terminatingReplicas" @ 9;
        /// How often a hash of a template was taken by another template.
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
