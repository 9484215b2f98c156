//! The view of a `StatefulSet`.

use serde::Deserialize;

use crate::condition::Condition;
use crate::documented::Documented;
use crate::int_or_percent::IntOrPercent;
use crate::intern::InternedStr;
use crate::labels::Labels;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;
use crate::selector::{InvalidSelector, LabelSelector, Selector};
use crate::views::replica_set::CONDITION;

/// A `StatefulSet` with its JSON. The controller updates its status and copies its templates into pods and claims.
pub type StatefulSet = Documented<StatefulSetView>;

crate::view! {
    /// Fields of a `StatefulSet` that decisions read.
    pub struct StatefulSetView {
        resource: Resource::namespaced("apps", "v1", "statefulsets", "StatefulSet");

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
            let claims: Vec<RawClaimTemplate> = "volumeClaimTemplates" @ 4;
            /// The names of `spec.volumeClaimTemplates`, in order.
            pub claim_templates: Box<[InternedStr]> = claims.into_iter().map(|claim| claim.name).collect();
            /// Order of creating and deleting pods: `spec.podManagementPolicy`.
            pub pod_management_policy: PodManagementPolicy = "podManagementPolicy" @ 6;
            /// Rollout of a new template: `spec.updateStrategy`.
            pub update_strategy: StatefulSetUpdateStrategy = "updateStrategy" @ 7;
            let revision_history_limit: Option<i32> = "revisionHistoryLimit" @ 8;
            /// `spec.revisionHistoryLimit`, 10 if it is absent.
            pub revision_history_limit: i32 = revision_history_limit.unwrap_or(10);
            /// `spec.minReadySeconds`, 0 if it is absent.
            pub min_ready_seconds: i32 = "minReadySeconds" @ 9;
            "persistentVolumeClaimRetentionPolicy" @ 10 {
                /// `spec.persistentVolumeClaimRetentionPolicy.whenDeleted`, `Retain` if it is absent.
                pub claims_when_deleted: ClaimRetention = "whenDeleted" @ 1;
                /// `spec.persistentVolumeClaimRetentionPolicy.whenScaled`, `Retain` if it is absent.
                pub claims_when_scaled: ClaimRetention = "whenScaled" @ 2;
            }
            "ordinals" @ 11 {
                /// `spec.ordinals.start`: the first ordinal.
                pub start_ordinal: i32 = "start" @ 1;
            }
        }
        /// Status of the `StatefulSet`, from `status`.
        pub status: StatefulSetStatus = "status" @ 3;
    }
}

crate::message! {
    struct RawClaimTemplate {
        "metadata" @ 1 {
            name: InternedStr = "name" @ 1;
        }
    }
}

/// The order in which pods are created and deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
pub enum PodManagementPolicy {
    /// Pods are created and deleted all at once.
    Parallel,
    /// One after the other, each after all pods before it are available. Unknown values mean the same.
    #[default]
    #[serde(other)]
    OrderedReady,
}

impl ProtobufType for PodManagementPolicy {
    const KIND: Kind = Kind::Text;
}

/// Treatment of a claim after the `StatefulSet` or the pod is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
pub enum ClaimRetention {
    /// The claim is deleted.
    Delete,
    /// The claim is kept. Unknown values mean the same.
    #[default]
    #[serde(other)]
    Retain,
}

impl ProtobufType for ClaimRetention {
    const KIND: Kind = Kind::Text;
}

/// Way of replacing the pods of an old template.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "RawStrategy")]
pub enum StatefulSetUpdateStrategy {
    /// From the highest ordinal down, each after all pods before it are available. An empty type means the same.
    RollingUpdate {
        /// Pods with lower ordinals keep the current template. `None` if it is not set; the API server sets a default.
        partition: Option<i32>,
        /// Number of pods that may be unavailable during a rollout.
        max_unavailable: Option<IntOrPercent>,
    },
    /// After a user has deleted them.
    OnDelete,
    /// All old pods are deleted before the first new pod is created.
    Recreate,
    /// Any other string. An API server of a later release may allow it.
    Other(InternedStr),
}

crate::message! {
    struct RawStrategy {
        type_: InternedStr = "type" @ 1;
        "rollingUpdate" @ 2 {
            partition: Option<i32> = "partition" @ 1;
            max_unavailable: Option<IntOrPercent> = "maxUnavailable" @ 2;
        }
    }
}

impl From<RawStrategy> for StatefulSetUpdateStrategy {
    fn from(RawStrategy { type_, partition, max_unavailable }: RawStrategy) -> Self {
        match type_.as_str() {
            "" | "RollingUpdate" => Self::RollingUpdate { partition, max_unavailable },
            "OnDelete" => Self::OnDelete,
            "Recreate" => Self::Recreate,
            _ => Self::Other(type_),
        }
    }
}

impl Default for StatefulSetUpdateStrategy {
    fn default() -> Self {
        Self::RollingUpdate { partition: None, max_unavailable: None }
    }
}

impl ProtobufType for StatefulSetUpdateStrategy {
    const KIND: Kind = RawStrategy::KIND;
}

crate::message! {
    /// The status of a stateful set.
    pub struct StatefulSetStatus {
        /// The generation that this status was computed from.
        pub observed_generation: i64 = "observedGeneration" @ 1;
        /// Number of pods of the `StatefulSet`.
        pub replicas: i32 = "replicas" @ 2;
        /// Number of pods that run and are ready.
        pub ready_replicas: i32 = "readyReplicas" @ 3;
        /// Number of pods with the current revision.
        pub current_replicas: i32 = "currentReplicas" @ 4;
        /// Number of pods with the update revision.
        pub updated_replicas: i32 = "updatedReplicas" @ 5;
        /// The name of the revision that pods below the partition have.
        pub current_revision: InternedStr = "currentRevision" @ 6;
        /// The name of the revision of `spec.template`.
        pub update_revision: InternedStr = "updateRevision" @ 7;
        /// Number of times that the name of a revision was taken by another revision.
        pub collision_count: Option<i32> = "collisionCount" @ 9;
        /// Conditions, in the order served.
        pub conditions: Box<[Condition]> = "conditions" @ 10 as Kind::List(&CONDITION);
        /// Number of pods that have been ready for `minReadySeconds`.
        pub available_replicas: i32 = "availableReplicas" @ 11;
    }
}
