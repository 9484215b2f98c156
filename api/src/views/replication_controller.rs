//! The view of a `ReplicationController`.

use super::ReplicaSetStatus;
use super::replica_set::CONDITION;
use crate::condition::Condition;
use crate::documented::Documented;
use crate::labels::Labels;
use crate::protobuf::Kind;
use crate::resource::Resource;
use crate::selector::{InvalidSelector, Selector};

/// A `ReplicationController` with its JSON. The controller updates its status and copies its template into pods.
pub type ReplicationController = Documented<ReplicationControllerView>;

crate::view! {
    /// Fields of a `ReplicationController` that decisions read.
    pub struct ReplicationControllerView {
        resource: Resource::namespaced("", "v1", "replicationcontrollers", "ReplicationController");

        "spec" @ 2 {
            let replicas: Option<i32> = "replicas" @ 1;
            /// `spec.replicas`, 1 if it is absent.
            pub replicas: i32 = replicas.unwrap_or(1);
            /// `spec.minReadySeconds`, 0 if it is absent.
            pub min_ready_seconds: i32 = "minReadySeconds" @ 4;
            let labels: Labels = "selector" @ 2;
            /// `spec.selector`, which is a set of labels here and always valid. An empty selector selects nothing.
            pub selector: Result<Selector, InvalidSelector> = Ok(by_labels(&labels));
            "template" @ 3 {
                "metadata" @ 1 {
                    /// `spec.template.metadata.labels`, empty if it is absent.
                    pub template_labels: Labels = "labels" @ 11;
                }
            }
        }
        let status: RawStatus = "status" @ 3;
        /// `status`, which never has terminating replicas.
        pub status: ReplicaSetStatus = status.into();
    }
}

fn by_labels(labels: &Labels) -> Selector {
    if labels.is_empty() { Selector::nothing() } else { Selector::of_labels(labels.iter()) }
}

crate::message! {
    /// The status of a replication controller.
    struct RawStatus {
        replicas: i32 = "replicas" @ 1;
        fully_labeled_replicas: i32 = "fullyLabeledReplicas" @ 2;
        ready_replicas: i32 = "readyReplicas" @ 4;
        available_replicas: i32 = "availableReplicas" @ 5;
        observed_generation: i64 = "observedGeneration" @ 3;
        conditions: Box<[Condition]> = "conditions" @ 6 as Kind::List(&CONDITION);
    }
}

impl From<RawStatus> for ReplicaSetStatus {
    fn from(status: RawStatus) -> Self {
        Self {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            terminating_replicas: None,
            observed_generation: status.observed_generation,
            conditions: status.conditions,
        }
    }
}
