//! The view of a `PodDisruptionBudget`.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::condition::Condition;
use crate::documented::Documented;
use crate::int_or_percent::IntOrPercent;
use crate::protobuf::{Field, Kind};
use crate::resource::Resource;
use crate::selector::{InvalidSelector, LabelSelector, Selector};

/// A `PodDisruptionBudget` with its JSON. The controller updates its status.
pub type PodDisruptionBudget = Documented<PodDisruptionBudgetView>;

crate::view! {
    /// Fields of a `PodDisruptionBudget` that decisions read.
    pub struct PodDisruptionBudgetView {
        resource: Resource::namespaced("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget");

        "spec" @ 2 {
            /// `spec.minAvailable`, `None` if it is absent.
            pub min_available: Option<IntOrPercent> = "minAvailable" @ 1;
            let selector: Option<LabelSelector> = "selector" @ 2;
            /// `spec.selector`. An absent selector selects nothing, an empty selector selects every pod of the
            /// namespace.
            pub selector: Result<Selector, InvalidSelector> = Selector::try_from(selector.as_ref());
            /// `spec.maxUnavailable`, `None` if it is absent.
            pub max_unavailable: Option<IntOrPercent> = "maxUnavailable" @ 3;
        }
        /// Status of the `PodDisruptionBudget`, from `status`.
        pub status: PodDisruptionBudgetStatus = "status" @ 3;
    }
}

crate::message! {
    /// The status of a pod disruption budget.
    pub struct PodDisruptionBudgetStatus {
        /// The generation that this status was computed from.
        pub observed_generation: i64 = "observedGeneration" @ 1;
        /// Names of pods whose eviction was admitted, with the time. They are about to be deleted.
        pub disrupted_pods: BTreeMap<Box<str>, Option<Timestamp>> = "disruptedPods" @ 2;
        /// Number of further pods that may be evicted now.
        pub disruptions_allowed: i32 = "disruptionsAllowed" @ 3;
        /// Number of pods that are healthy.
        pub current_healthy: i32 = "currentHealthy" @ 4;
        /// Minimum number of healthy pods.
        pub desired_healthy: i32 = "desiredHealthy" @ 5;
        /// Number of pods that should exist.
        pub expected_pods: i32 = "expectedPods" @ 6;
        /// Conditions, in the order served.
        pub conditions: Box<[Condition]> = "conditions" @ 7 as Kind::List(&CONDITION);
    }
}

/// Message of a `metav1.Condition`.
pub(super) const CONDITION: Kind = Kind::One(&[
    Field::text(1, "type"),
    Field::text(2, "status"),
    Field::integer(3, "observedGeneration"),
    Field::time(4, "lastTransitionTime"),
    Field::text(5, "reason"),
    Field::text(6, "message"),
]);
