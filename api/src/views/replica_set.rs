//! The view of a `ReplicaSet`.

use crate::condition::Condition;
use crate::documented::Documented;
use crate::labels::Labels;
use crate::protobuf::{Field, Kind};
use crate::resource::Resource;
use crate::selector::{InvalidSelector, LabelSelector, Selector};

/// A `ReplicaSet` with its JSON. The controller updates its status and copies its template into pods.
pub type ReplicaSet = Documented<ReplicaSetView>;

crate::view! {
    /// Fields of a `ReplicaSet` that decisions read.
    pub struct ReplicaSetView {
        resource: Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
        annotations: [
            // order and size the replica sets of a deployment
            "deployment.kubernetes.io/revision",
            "deployment.kubernetes.io/desired-replicas",
            "deployment.kubernetes.io/max-replicas",
        ];

        "spec" @ 2 {
            let replicas: Option<i32> = "replicas" @ 1;
            /// `spec.replicas`, 1 if it is absent.
            pub replicas: i32 = replicas.unwrap_or(1);
            /// `spec.minReadySeconds`, 0 if it is absent.
            pub min_ready_seconds: i32 = "minReadySeconds" @ 4;
            let selector: Option<LabelSelector> = "selector" @ 2;
            /// `spec.selector`. The object is read even if its selector is invalid.
            pub selector: Result<Selector, InvalidSelector> = Selector::try_from(selector.as_ref());
            "template" @ 3 {
                "metadata" @ 1 {
                    /// `spec.template.metadata.labels`, empty if it is absent.
                    pub template_labels: Labels = "labels" @ 11;
                }
            }
        }
        /// Status of the `ReplicaSet`, from `status`.
        pub status: ReplicaSetStatus = "status" @ 3;
    }
}

crate::message! {
    /// The status of a replica set.
    pub struct ReplicaSetStatus {
        /// Number of pods of the `ReplicaSet`.
        pub replicas: i32 = "replicas" @ 1;
        /// Number of pods that have all labels of the template.
        pub fully_labeled_replicas: i32 = "fullyLabeledReplicas" @ 2;
        /// Number of pods that are ready.
        pub ready_replicas: i32 = "readyReplicas" @ 4;
        /// Number of pods that have been ready for `minReadySeconds`.
        pub available_replicas: i32 = "availableReplicas" @ 5;
        /// Number of further pods that are terminating; `None` if they are not counted.
        pub terminating_replicas: Option<i32> = "terminatingReplicas" @ 7;
        /// The generation that this status was computed from.
        pub observed_generation: i64 = "observedGeneration" @ 3;
        /// Conditions, in the order served.
        pub conditions: Box<[Condition]> = "conditions" @ 6 as Kind::List(&CONDITION);
    }
}

pub(super) const CONDITION: Kind = Kind::One(&[
    Field::text(1, "type"),
    Field::text(2, "status"),
    Field::time(3, "lastTransitionTime"),
    Field::text(4, "reason"),
    Field::text(5, "message"),
]);
