//! The part of pods that jobs read.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer};

use super::pod_failure_policy::PodConditionPattern;
use super::pod_phase::PodPhase;
use crate::decode::text;
use crate::intern::InternedStr;
use crate::protobuf::{Kind, ProtobufType};

crate::message! {
    /// End of a pod. Empty for most running pods.
    pub struct PodTermination {
        "metadata" @ 1 {
            let deletion_timestamp: Option<Timestamp> = "deletionTimestamp" @ 9;
            let grace_period_seconds: Option<i64> = "deletionGracePeriodSeconds" @ 10;
        }
        "spec" @ 2 {
            let init_containers: Vec<InitContainer> = "initContainers" @ 20;
        }
        "status" @ 3 {
            let phase: PodPhase = "phase" @ 1;
            let all_conditions: Vec<PodCondition> = "conditions" @ 2;
            let statuses: Vec<ContainerStatus> = "containerStatuses" @ 8;
            let init_statuses: Vec<ContainerStatus> = "initContainerStatuses" @ 10;
        }
        /// Time at which the last container ended, else the pod stopped being ready, else its deletion was requested.
        /// `None` if none of these is known, and for pods that are neither finished nor terminating.
        pub finished_at: Option<Timestamp> = {
            let ends = phase.is_final() || deletion_timestamp.is_some();
            let of_containers = || containers_finished_at(&statuses, &init_statuses, &init_containers);
            let deletion = || {
                let grace = SignedDuration::from_secs(grace_period_seconds.unwrap_or(0));
                deletion_timestamp.and_then(|gone_at| gone_at.checked_sub(grace).ok())
            };
            let finished_at = || of_containers().or_else(|| not_ready_since(&all_conditions)).or_else(deletion);
            ends.then(finished_at).flatten()
        };
        /// Containers that ended with an exit code other than 0: first regular containers, then init containers.
        pub failed_containers: Box<[FailedContainer]> = failed(&statuses).chain(failed(&init_statuses)).collect();
        /// Conditions of the pod. If the pod has not failed, without the conditions that every pod has.
        pub conditions: Box<[PodConditionPattern]> = {
            let conditions = all_conditions.iter().filter(|condition| {
                phase == PodPhase::Failed || !OF_EVERY_POD.contains(&condition.pattern.type_.as_str())
            });
            conditions.map(|condition| condition.pattern.clone()).collect()
        };
        /// The restarts of all containers, init containers included.
        pub restarts: i32 = {
            let all = statuses.iter().chain(&init_statuses).map(|status| status.restart_count);
            all.fold(0, i32::saturating_add)
        };
    }
}

/// The conditions that the kubelet and the scheduler set on every pod.
const OF_EVERY_POD: [&str; 5] =
    ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];

crate::message! {
    /// A container that ended with an exit code other than 0.
    #[derive(Eq)]
    pub struct FailedContainer {
        /// `name`, empty if it is absent.
        pub name: InternedStr = "name" @ 1;
        /// `state.terminated.exitCode`, 0 if it is absent.
        pub exit_code: i32 = "exitCode" @ 2;
    }
}

crate::message! {
    struct InitContainer {
        name: InternedStr = "name" @ 1;
        let restart_policy: InternedStr = "restartPolicy" @ 24;
        is_sidecar: bool = restart_policy == "Always";
    }
}

crate::message! {
    struct PodCondition {
        let type_: InternedStr = "type" @ 1;
        let status: InternedStr = "status" @ 2;
        pattern: PodConditionPattern = PodConditionPattern { type_, status };
        let last_transition_time: ValidTime = "lastTransitionTime" @ 4;
        since: Option<Timestamp> = last_transition_time.0;
    }
}

crate::message! {
    struct ContainerStatus {
        name: InternedStr = "name" @ 1;
        "state" @ 2 {
            terminated: Option<Terminated> = "terminated" @ 3;
        }
        restart_count: i32 = "restartCount" @ 5;
    }
}

crate::message! {
    struct Terminated {
        exit_code: i32 = "exitCode" @ 1;
        let finished_at: ValidTime = "finishedAt" @ 6;
        finished_at: Option<Timestamp> = finished_at.0;
    }
}

/// A time. An invalid one must not hide the object: it counts as unset.
#[derive(Default)]
struct ValidTime(Option<Timestamp>);

impl ProtobufType for ValidTime {
    const KIND: Kind = Kind::Time;
}

impl<'de> Deserialize<'de> for ValidTime {
    fn deserialize<D: Deserializer<'de>>(time: D) -> Result<Self, D::Error> {
        Ok(Self(text(time)?.and_then(|time| time.parse().ok())))
    }
}

fn failed(statuses: &[ContainerStatus]) -> impl Iterator<Item = FailedContainer> {
    statuses.iter().filter_map(|status| {
        let exit_code = status.terminated.as_ref()?.exit_code;
        (exit_code != 0).then(|| FailedContainer { name: status.name.clone(), exit_code })
    })
}

/// Returns the time at which the last container or sidecar ended, or `None` if one of them has not ended.
///
/// # Upstream
/// `getFinishTimeFromContainers`: an unfinished regular container does not hide the end of the sidecars.
fn containers_finished_at(
    statuses: &[ContainerStatus],
    init_statuses: &[ContainerStatus],
    init_containers: &[InitContainer],
) -> Option<Timestamp> {
    let is_sidecar =
        |status: &&ContainerStatus| init_containers.iter().any(|init| init.is_sidecar && init.name == status.name);
    let regular = latest(None, statuses.iter());
    latest(regular, init_statuses.iter().filter(is_sidecar))
}

fn latest<'a>(before: Option<Timestamp>, mut statuses: impl Iterator<Item = &'a ContainerStatus>) -> Option<Timestamp> {
    statuses
        .try_fold(before, |latest, status| Some(latest.max(Some(status.terminated.as_ref()?.finished_at?))))
        .flatten()
}

fn not_ready_since(conditions: &[PodCondition]) -> Option<Timestamp> {
    let ready = conditions.iter().find(|condition| condition.pattern.type_ == "Ready")?;
    ready.since.filter(|_| ready.pattern.status == "False")
}
