//! The view of a `DaemonSet`.

use serde::Deserialize;

use super::update_strategy::RawUpdateStrategy;
use crate::documented::Documented;
use crate::int_or_percent::IntOrPercent;
use crate::intern::InternedStr;
use crate::labels::Labels;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;
use crate::scheduling::{NodeSelector, RequiredNodeAffinity, Toleration};
use crate::selector::{InvalidSelector, LabelSelector, Selector};

/// A `DaemonSet` with its JSON. The controller updates its status and copies its template into pods and revisions.
pub type DaemonSet = Documented<DaemonSetView>;

crate::view! {
    /// Fields of a `DaemonSet` that decisions read.
    pub struct DaemonSetView {
        resource: Resource::namespaced("apps", "v1", "daemonsets", "DaemonSet");
        annotations: [
            // identifies the template of pods that were made before there were revisions
            "deprecated.daemonset.template.generation",
        ];

        "spec" @ 2 {
            let selector: Option<LabelSelector> = "selector" @ 1;
            /// `spec.selector`. The object is read even if its selector is invalid.
            pub selector: Result<Selector, InvalidSelector> = Selector::try_from(selector.as_ref());
            "template" @ 2 {
                "spec" @ 2 {
                    let node_selector: Labels = "nodeSelector" @ 7;
                    let node_name: Option<InternedStr> = "nodeName" @ 10;
                    /// `spec.template.spec.nodeName`: the only node that the daemon runs on.
                    pub node_name: Option<InternedStr> = node_name.filter(|name| !name.is_empty());
                    /// `spec.template.spec.hostNetwork`, `false` if it is absent.
                    pub host_network: bool = "hostNetwork" @ 11;
                    "affinity" @ 18 {
                        "nodeAffinity" @ 1 {
                            let required: Option<NodeSelector> =
                                "requiredDuringSchedulingIgnoredDuringExecution" @ 1;
                            /// The nodes that the template requires by its node selector and node affinity.
                            pub node_affinity: RequiredNodeAffinity =
                                RequiredNodeAffinity::new(&node_selector, required.as_ref());
                        }
                    }
                    /// `spec.template.spec.tolerations`, empty if it is absent.
                    pub tolerations: Box<[Toleration]> = "tolerations" @ 22;
                }
            }
            /// Rollout of a new template: `spec.updateStrategy`.
            pub update_strategy: DaemonSetUpdateStrategy = "updateStrategy" @ 3;
            /// `spec.minReadySeconds`, 0 if it is absent.
            pub min_ready_seconds: i32 = "minReadySeconds" @ 4;
            let revision_history_limit: Option<i32> = "revisionHistoryLimit" @ 6;
            /// `spec.revisionHistoryLimit`, 10 if it is absent.
            pub revision_history_limit: i32 = revision_history_limit.unwrap_or(10);
        }
        /// Status of the `DaemonSet`, from `status`.
        pub status: DaemonSetStatus = "status" @ 3;
    }
}

/// Time at which the pods of an old template are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "RawUpdateStrategy")]
pub enum DaemonSetUpdateStrategy {
    /// Nodes are updated a few at a time.
    RollingUpdate {
        /// Number of nodes that may be without an available pod because of the update; `None` if it is not set.
        max_unavailable: Option<IntOrPercent>,
        /// Number of nodes that may have an old and a new pod; `None` if it is not set.
        max_surge: Option<IntOrPercent>,
    },
    /// After a user has deleted them.
    OnDelete,
    /// Any other string, empty if none is set. The API server sets a default, so no stored object has this.
    Other(InternedStr),
}

impl From<RawUpdateStrategy> for DaemonSetUpdateStrategy {
    fn from(RawUpdateStrategy { type_, max_unavailable, max_surge }: RawUpdateStrategy) -> Self {
        match type_.as_str() {
            "RollingUpdate" => Self::RollingUpdate { max_unavailable, max_surge },
            "OnDelete" => Self::OnDelete,
            _ => Self::Other(type_),
        }
    }
}

impl Default for DaemonSetUpdateStrategy {
    fn default() -> Self {
        Self::Other(InternedStr::default())
    }
}

impl ProtobufType for DaemonSetUpdateStrategy {
    const KIND: Kind = RawUpdateStrategy::KIND;
}

crate::message! {
    /// The status of a daemon set.
    #[derive(Eq)]
    pub struct DaemonSetStatus {
        /// Number of nodes that should run the daemon and have a pod.
        pub current_number_scheduled: i32 = "currentNumberScheduled" @ 1;
        /// Number of nodes that have a pod but should not run the daemon.
        pub number_misscheduled: i32 = "numberMisscheduled" @ 2;
        /// Number of nodes that should run the daemon.
        pub desired_number_scheduled: i32 = "desiredNumberScheduled" @ 3;
        /// Number of nodes that should run the daemon and have a ready pod.
        pub number_ready: i32 = "numberReady" @ 4;
        /// The generation that this status was computed from.
        pub observed_generation: i64 = "observedGeneration" @ 5;
        /// Number of nodes that should run the daemon and have a pod of the current template.
        pub updated_number_scheduled: i32 = "updatedNumberScheduled" @ 6;
        /// Number of nodes that should run the daemon and have a pod that has been ready for `minReadySeconds`.
        pub number_available: i32 = "numberAvailable" @ 7;
        /// Number of nodes that should run the daemon and have no available pod.
        pub number_unavailable: i32 = "numberUnavailable" @ 8;
        /// Number of times that the name of a revision was taken by another revision.
        pub collision_count: Option<i32> = "collisionCount" @ 9;
    }
}
