//! The part of pods that controllers of volumes read.

use jiff::Timestamp;

crate::message! {
    /// Progress of the deletion of a pod. Empty for pods that are not terminating.
    pub struct PodDeletion {
        "metadata" @ 1 {
            let deletion_timestamp: Option<Timestamp> = "deletionTimestamp" @ 9;
            let grace_period_seconds: Option<i64> = "deletionGracePeriodSeconds" @ 10;
        }
        "status" @ 3 {
            let statuses: Vec<ContainerState> = "containerStatuses" @ 8;
            let init_statuses: Vec<ContainerState> = "initContainerStatuses" @ 10;
            let ephemeral_statuses: Vec<ContainerState> = "ephemeralContainerStatuses" @ 13;
        }
        /// `true` if the pod is terminating and a container of any kind runs.
        pub has_running_containers: bool = {
            let mut all = statuses.iter().chain(&init_statuses).chain(&ephemeral_statuses);
            deletion_timestamp.is_some() && all.any(|state| state.is_running)
        };
        /// `true` if the pod is terminating without a grace period: the kubelet has finished with it, or it was deleted
        /// by force.
        pub is_shut_down: bool = deletion_timestamp.is_some() && grace_period_seconds == Some(0);
    }
}

crate::message! {
    struct ContainerState {
        "state" @ 2 {
            let waiting: Option<State> = "waiting" @ 1;
            let terminated: Option<State> = "terminated" @ 3;
        }
        is_running: bool = waiting.is_none() && terminated.is_none();
    }
}

crate::message! {
    struct State {}
}
