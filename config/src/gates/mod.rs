//! Feature gates, with upstream's names.

mod pairs;
mod removed;
mod upstream;
mod versions;

use std::collections::BTreeMap;

use crate::error::Problem;

use crate::gate::{Gate, GateStage};
pub use upstream::{UpstreamGate, upstream};
pub use versions::Versions;

/// Serves `ClusterTrustBundles` and publishes them.
pub const CLUSTER_TRUST_BUNDLE: Gate =
    Gate { name: "ClusterTrustBundle", default: true, stage: GateStage::Ga, locked: false };

/// Serves `PodCertificateRequests` and deletes old ones.
pub const POD_CERTIFICATE_REQUEST: Gate =
    Gate { name: "PodCertificateRequest", default: true, stage: GateStage::Ga, locked: false };

/// Counts `status.terminatingReplicas` of `ReplicaSets` and Deployments.
pub const DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS: Gate =
    Gate { name: "DeploymentReplicaSetTerminatingReplicas", default: true, stage: GateStage::Beta, locked: false };

/// Ranks pods for deletion by the annotation `controller.kubernetes.io/pod-deletion-cost`.
pub const POD_DELETION_COST: Gate =
    Gate { name: "PodDeletionCost", default: true, stage: GateStage::Beta, locked: false };

/// Allows the alpha options of logs: separate streams, and buffers.
pub const LOGGING_ALPHA_OPTIONS: Gate =
    Gate { name: "LoggingAlphaOptions", default: false, stage: GateStage::Alpha, locked: false };

/// Allows the beta options of logs: JSON.
pub const LOGGING_BETA_OPTIONS: Gate =
    Gate { name: "LoggingBetaOptions", default: true, stage: GateStage::Beta, locked: false };

/// Releases the lease at the end. This program releases it unless the gate is set to false.
pub const RELEASE_LEASE_ON_EXIT: Gate = Gate {
    name: "ControllerManagerReleaseLeaderElectionLockOnExit",
    default: false,
    stage: GateStage::Alpha,
    locked: false,
};

/// Lets the API server choose the leader.
pub const COORDINATED_LEADER_ELECTION: Gate =
    Gate { name: "CoordinatedLeaderElection", default: false, stage: GateStage::Beta, locked: false };

/// Lets quotas count devices of extended resources that dynamic resource allocation serves.
pub const DRA_EXTENDED_RESOURCE: Gate =
    Gate { name: "DRAExtendedResource", default: true, stage: GateStage::Ga, locked: true };

/// Lets autoscalers set tolerances of their own.
pub const HPA_CONFIGURABLE_TOLERANCE: Gate =
    Gate { name: "HPAConfigurableTolerance", default: true, stage: GateStage::Ga, locked: true };

/// Syncs an autoscaler as soon as its spec changes, and sets `status.observedGeneration`.
pub const HPA_GENERATION: Gate = Gate { name: "HPAGeneration", default: true, stage: GateStage::Beta, locked: false };

/// Names two of the autoscalers that select the same pods instead of all of them.
pub const HPA_OPTIMIZED_SELECTOR_STORE: Gate =
    Gate { name: "HPAOptimizedSelectorStore", default: true, stage: GateStage::Beta, locked: false };

/// Lets autoscalers scale to zero.
pub const HPA_SCALE_TO_ZERO: Gate =
    Gate { name: "HPAScaleToZero", default: true, stage: GateStage::Beta, locked: false };

/// Lets resources in the status of a pod count during a resize.
pub const IN_PLACE_POD_VERTICAL_SCALING: Gate =
    Gate { name: "InPlacePodVerticalScaling", default: true, stage: GateStage::Ga, locked: true };

/// Unsets the start time of a suspended Job, so that its scheduling directives may be changed.
pub const MUTABLE_SCHEDULING_DIRECTIVES_FOR_SUSPENDED_JOBS: Gate =
    Gate { name: "MutableSchedulingDirectivesForSuspendedJobs", default: true, stage: GateStage::Beta, locked: false };

/// Leaves Jobs with another controller in `spec.managedBy` to that controller.
pub const JOB_MANAGED_BY: Gate = Gate { name: "JobManagedBy", default: true, stage: GateStage::Ga, locked: true };

/// Skips syncs of `DaemonSets` for which the caches are too old. Keys wait for their own writes in any case.
pub const STALE_CONTROLLER_CONSISTENCY_DAEMON_SET: Gate =
    Gate { name: "StaleControllerConsistencyDaemonSet", default: true, stage: GateStage::Beta, locked: false };

/// The same for autoscalers.
pub const STALE_CONTROLLER_CONSISTENCY_HPA: Gate =
    Gate { name: "StaleControllerConsistencyHPA", default: true, stage: GateStage::Beta, locked: false };

/// The same for jobs.
pub const STALE_CONTROLLER_CONSISTENCY_JOB: Gate =
    Gate { name: "StaleControllerConsistencyJob", default: true, stage: GateStage::Beta, locked: false };

/// The same for replica sets.
pub const STALE_CONTROLLER_CONSISTENCY_REPLICA_SET: Gate =
    Gate { name: "StaleControllerConsistencyReplicaSet", default: true, stage: GateStage::Beta, locked: false };

/// The same for stateful sets.
pub const STALE_CONTROLLER_CONSISTENCY_STATEFUL_SET: Gate =
    Gate { name: "StaleControllerConsistencyStatefulSet", default: true, stage: GateStage::Beta, locked: false };

/// Creates workloads and pod groups for Jobs. Turning it on is refused.
pub const WORKLOAD_WITH_JOB: Gate =
    Gate { name: "WorkloadWithJob", default: false, stage: GateStage::Alpha, locked: false };

/// Lets the requests and limits of a whole pod count.
pub const POD_LEVEL_RESOURCES: Gate =
    Gate { name: "PodLevelResources", default: true, stage: GateStage::Beta, locked: false };

/// Judges the quality of service of a pod without a class in its status container by container.
pub const POD_LEVEL_RESOURCES_FIX_KUBELET_QOS_CLASS: Gate =
    Gate { name: "PodLevelResourcesFixKubeletQOSClass", default: true, stage: GateStage::Beta, locked: false };

/// Records in the condition `Unused` of a bound claim whether a pod uses it.
pub const PERSISTENT_VOLUME_CLAIM_UNUSED_SINCE_TIME: Gate =
    Gate { name: "PersistentVolumeClaimUnusedSinceTime", default: true, stage: GateStage::Beta, locked: false };

/// Lets the storage that was allocated to a claim for its expansion count.
pub const RECOVER_VOLUME_EXPANSION_FAILURE: Gate =
    Gate { name: "RecoverVolumeExpansionFailure", default: true, stage: GateStage::Ga, locked: true };

/// Lets pods choose how the `SELinux` labels of their volumes are set.
pub const SELINUX_CHANGE_POLICY: Gate =
    Gate { name: "SELinuxChangePolicy", default: true, stage: GateStage::Ga, locked: true };

/// Lets the operators `Gt` and `Lt` of tolerations compare the values of taints.
pub const TAINT_TOLERATION_COMPARISON_OPERATORS: Gate =
    Gate { name: "TaintTolerationComparisonOperators", default: false, stage: GateStage::Alpha, locked: false };

/// Lets quotas select claims by their volume attributes class.
pub const VOLUME_ATTRIBUTES_CLASS: Gate =
    Gate { name: "VolumeAttributesClass", default: true, stage: GateStage::Ga, locked: true };

/// Lets a rollout of a `StatefulSet` replace `maxUnavailable` pods at once.
pub const MAX_UNAVAILABLE_STATEFUL_SET: Gate =
    Gate { name: "MaxUnavailableStatefulSet", default: true, stage: GateStage::Beta, locked: false };

/// Lets a controller revision also equal a template with the same meaning, and not only the same bytes.
pub const STATEFUL_SET_SEMANTIC_REVISION_COMPARISON: Gate =
    Gate { name: "StatefulSetSemanticRevisionComparison", default: true, stage: GateStage::Beta, locked: false };

/// Allows the update strategy `Recreate` of a `StatefulSet`.
pub const STATEFUL_SET_RECREATE_STRATEGY: Gate =
    Gate { name: "StatefulSetRecreateStrategy", default: false, stage: GateStage::Alpha, locked: false };

/// The gates of upstream that something here reads.
pub const KNOWN: &[Gate] = &[
    RELEASE_LEASE_ON_EXIT,
    COORDINATED_LEADER_ELECTION,
    DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS,
    DRA_EXTENDED_RESOURCE,
    HPA_CONFIGURABLE_TOLERANCE,
    HPA_GENERATION,
    HPA_OPTIMIZED_SELECTOR_STORE,
    HPA_SCALE_TO_ZERO,
    IN_PLACE_POD_VERTICAL_SCALING,
    JOB_MANAGED_BY,
    LOGGING_ALPHA_OPTIONS,
    LOGGING_BETA_OPTIONS,
    MAX_UNAVAILABLE_STATEFUL_SET,
    MUTABLE_SCHEDULING_DIRECTIVES_FOR_SUSPENDED_JOBS,
    PERSISTENT_VOLUME_CLAIM_UNUSED_SINCE_TIME,
    POD_DELETION_COST,
    POD_LEVEL_RESOURCES,
    POD_LEVEL_RESOURCES_FIX_KUBELET_QOS_CLASS,
    RECOVER_VOLUME_EXPANSION_FAILURE,
    SELINUX_CHANGE_POLICY,
    STALE_CONTROLLER_CONSISTENCY_DAEMON_SET,
    STALE_CONTROLLER_CONSISTENCY_HPA,
    STALE_CONTROLLER_CONSISTENCY_JOB,
    STALE_CONTROLLER_CONSISTENCY_REPLICA_SET,
    STALE_CONTROLLER_CONSISTENCY_STATEFUL_SET,
    STATEFUL_SET_RECREATE_STRATEGY,
    STATEFUL_SET_SEMANTIC_REVISION_COMPARISON,
    TAINT_TOLERATION_COMPARISON_OPERATORS,
    VOLUME_ATTRIBUTES_CLASS,
    WORKLOAD_WITH_JOB,
];

const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

/// The gates that were set explicitly, and the Kubernetes version that has the defaults of all other gates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gates {
    explicit: BTreeMap<String, bool>,
    versions: Versions,
}

/// The state of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateState {
    /// The gate, as it is in the emulated version.
    pub gate: Gate,
    /// Whether it is on.
    pub is_on: bool,
}

impl Gates {
    /// Parses pairs such as `Gate=true` and checks them against upstream's gates and the gates in `own`.
    ///
    /// As upstream: the last pair for a gate counts, all names or none have the prefix `kube:`, and
    /// `AllAlpha` and `AllBeta` set every gate of their stage that is not set itself.
    ///
    /// # Errors
    ///
    /// A [`Problem`] for each malformed pair, unknown gate, change of a locked gate, and gate that is on without a gate
    /// that it requires.
    pub fn parse<P: AsRef<str>>(own: &[Gate], pairs: &[P]) -> Result<Self, Vec<Problem>> {
        Self::at(Versions::default(), own, pairs)
    }

    /// The same, for a version of Kubernetes that is emulated.
    pub(crate) fn at<P: AsRef<str>>(versions: Versions, own: &[Gate], pairs: &[P]) -> Result<Self, Vec<Problem>> {
        let explicit = pairs::read(versions, own, pairs)?;
        let gates = Self { explicit, versions };
        let problems = gates.missing_requirements();
        if problems.is_empty() { Ok(gates) } else { Err(problems) }
    }

    /// Returns `true` if the gate is on.
    #[must_use]
    pub fn enabled(&self, gate: &Gate) -> bool {
        if self.versions.is_emulation()
            && let Some(upstream) = upstream::find(gate.name)
        {
            return upstream.at(self.versions).is_some_and(|gate| self.state(&gate));
        }
        self.state(gate)
    }

    /// Returns `true` if upstream's gate of this name is on, or if another gate was turned on.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        match upstream::find(name) {
            Some(upstream) => upstream.at(self.versions).is_some_and(|gate| self.state(&gate)),
            None => self.explicit.get(name).copied().unwrap_or(false),
        }
    }

    /// Returns the state of every gate: upstream's gates of the emulated version, and the gates in `own`.
    pub fn states(&self, own: &[Gate]) -> impl Iterator<Item = GateState> {
        let upstreams = upstream().filter_map(|upstream| upstream.at(self.versions));
        let own = own.iter().copied().filter(|gate| upstream::find(gate.name).is_none());
        upstreams.chain(own).map(|gate| GateState { gate, is_on: self.state(&gate) })
    }

    /// The versions of Kubernetes that decide which gates there are.
    #[must_use]
    pub const fn versions(&self) -> Versions {
        self.versions
    }

    /// The names of the gates that were set explicitly, sorted.
    pub fn explicit(&self) -> impl Iterator<Item = &str> {
        self.explicit.keys().map(String::as_str)
    }

    /// Returns `true` if the gate was set to false. Defaults, `AllAlpha` and `AllBeta` do not count.
    #[must_use]
    pub fn is_turned_off(&self, gate: &Gate) -> bool {
        self.explicit.get(gate.name) == Some(&false)
    }

    fn state(&self, gate: &Gate) -> bool {
        if gate.locked {
            return gate.default;
        }
        let whole_stage = match gate.stage {
            GateStage::Alpha => self.explicit.get(ALL_ALPHA),
            GateStage::Beta => self.explicit.get(ALL_BETA),
            GateStage::Ga | GateStage::Deprecated => None,
        };
        let whole_stage = whole_stage.filter(|_| ![ALL_ALPHA, ALL_BETA].contains(&gate.name));
        self.explicit.get(gate.name).or(whole_stage).copied().unwrap_or(gate.default)
    }

    /// Returns a problem for each gate that is on and requires a gate that is off.
    fn missing_requirements(&self) -> Vec<Problem> {
        let demanding = upstream().filter(|gate| gate.requires().next().is_some() && self.is_on(gate.name));
        let problems = demanding.map(|gate| {
            let off = gate.requires().filter(|required| !self.is_on(required)).map(str::to_owned).collect();
            Problem::GateRequires { gate: gate.name.to_owned(), off }
        });
        problems.filter(|problem| !matches!(problem, Problem::GateRequires { off, .. } if off.is_empty())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::excerpt;
    use crate::value::Kind;

    const ALPHA: Gate = Gate { name: "NewIdea", default: false, stage: GateStage::Alpha, locked: false };
    const BETA: Gate = Gate { name: "GoodIdea", default: true, stage: GateStage::Beta, locked: false };
    const DONE: Gate = Gate { name: "OldIdea", default: true, stage: GateStage::Ga, locked: true };
    const GATES: &[Gate] = &[ALPHA, BETA, DONE];

    fn enabled(pairs: &[&str]) -> [bool; 3] {
        let gates = Gates::parse(GATES, pairs).expect("the pairs are good");
        [&ALPHA, &BETA, &DONE].map(|gate| gates.enabled(gate))
    }

    #[test]
    fn the_last_value_of_a_gate_wins() {
        assert_eq!(enabled(&[]), [false, true, true]);
        assert_eq!(enabled(&["NewIdea=true", "GoodIdea=f"]), [true, false, true]);
        assert_eq!(enabled(&["NewIdea=true", " NewIdea = false "]), [false, true, true]);
        assert_eq!(enabled(&["kube:NewIdea=true"]), [true, true, true]);
        assert_eq!(enabled(&["OldIdea=true"]), [false, true, true]);
    }

    #[test]
    fn a_stage_sets_gates_that_are_not_set_themselves() {
        let enabled = |pairs: &[&str]| {
            let explicit = pairs::read(Versions::default(), GATES, pairs).expect("the pairs are good");
            // Upstream's gates of these stages require each other, which is another rule.
            let gates = Gates { explicit, versions: Versions::default() };
            [&ALPHA, &BETA, &DONE].map(|gate| gates.enabled(gate))
        };
        assert_eq!(enabled(&["AllAlpha=true", "AllBeta=false"]), [true, false, true]);
        assert_eq!(enabled(&["GoodIdea=true", "AllBeta=false"]), [false, true, true]);
    }

    #[test]
    fn every_bad_pair_is_reported() {
        let wrong = |given: &str| Problem::WrongType {
            setting: "feature-gates".to_owned(),
            given: excerpt(given),
            expected: Kind::FeatureGates.expected().to_owned(),
        };
        assert_eq!(
            Gates::parse(GATES, &["GoodIdae=true", "Other=true", "OldIdea=false", "NewIdea", "NewIdea=yes"]),
            Err(vec![
                Problem::UnknownGate { gate: "GoodIdae".to_owned(), nearest: Some("GoodIdea".to_owned()) },
                Problem::UnknownGate { gate: "Other".to_owned(), nearest: None },
                Problem::LockedGate { gate: "OldIdea".to_owned(), locked_to: true },
                wrong("NewIdea"),
                wrong("NewIdea=yes"),
            ])
        );
    }

    fn at(minor: u16, pairs: &[&str]) -> Result<Gates, Vec<Problem>> {
        Gates::at(Versions::emulating(minor), GATES, pairs)
    }

    #[test]
    fn defaults_follow_from_the_emulated_version() {
        let gate = "DeploymentReplicaSetTerminatingReplicas";
        let on = |minor| at(minor, &[]).expect("nothing is good").is_on(gate);
        assert_eq!([34, 35, 36, 37].map(on), [false, true, true, true]);
        let emulated = at(34, &[]).expect("nothing is good");
        assert!(!emulated.enabled(&DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS));
        assert!(emulated.enabled(&BETA), "a gate of a plugin has no versions");
        assert_eq!(emulated.states(GATES).filter(|state| state.gate.name == "NewIdea").count(), 1);
    }

    #[test]
    fn a_gate_that_is_not_there_yet_cannot_be_set() {
        let problem = Problem::GateTooNew { gate: "AtomicFIFO".to_owned(), version: "1.35".to_owned() };
        assert_eq!(at(35, &["AtomicFIFO=true"]), Err(vec![problem]));
        assert!(!at(35, &[]).expect("nothing is good").is_on("AtomicFIFO"));
        // Locked since 1.37.
        assert!(at(36, &["HPAConfigurableTolerance=false"]).is_ok());
        let locked = Problem::LockedGate { gate: "HPAConfigurableTolerance".to_owned(), locked_to: true };
        assert_eq!(at(37, &["HPAConfigurableTolerance=false"]), Err(vec![locked]));
    }

    #[test]
    fn a_gate_of_a_later_version_cannot_be_set_to_either_value() {
        for pair in ["HPAGeneration=true", "HPAGeneration=false"] {
            let problem = Problem::GateTooNew { gate: "HPAGeneration".to_owned(), version: "1.36".to_owned() };
            assert_eq!(at(36, &[pair]), Err(vec![problem]), "{pair}");
        }
        let emulated = at(36, &[]).expect("nothing is good");
        for gate in [&HPA_GENERATION, &HPA_SCALE_TO_ZERO, &MAX_UNAVAILABLE_STATEFUL_SET] {
            assert!(!emulated.enabled(gate) && Gates::default().enabled(gate), "{}", gate.name);
        }
        assert!(emulated.enabled(&HPA_CONFIGURABLE_TOLERANCE));
    }

    #[test]
    fn a_removed_gate_is_refused_in_every_version() {
        let sentence = |minor, pair: &str| match at(minor, &[pair]) {
            Err(problems) => problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"),
            Ok(_) => panic!("{pair} is taken"),
        };
        for minor in [34, 37] {
            assert_eq!(
                sentence(minor, "SidecarContainers=true"),
                "feature gate SidecarContainers was removed in Kubernetes 1.37; it has been locked to true since 1.33: \
                 leave it out"
            );
            assert_eq!(
                sentence(minor, "GangScheduling=false"),
                "feature gate GangScheduling was removed in Kubernetes 1.37; it is part of GenericWorkload: set that"
            );
        }
    }

    #[test]
    fn a_gate_needs_those_that_it_requires() {
        let problem = |gate: &str, off: &[&str]| Problem::GateRequires {
            gate: gate.to_owned(),
            off: off.iter().map(|&name| name.to_owned()).collect(),
        };
        let refused = Gates::parse(GATES, &["ClusterTrustBundle=false"]);
        assert_eq!(refused, Err(vec![problem("ClusterTrustBundleProjection", &["ClusterTrustBundle"])]));
        assert!(Gates::parse(GATES, &["ClusterTrustBundleProjection=false", "ClusterTrustBundle=false"]).is_ok());
    }

    #[test]
    fn components_are_named_of_all_pairs_or_of_none() {
        assert!(Gates::parse(GATES, &["kube:NewIdea=true", "kube:GoodIdea=true"]).is_ok());
        assert_eq!(Gates::parse(GATES, &["kube:NewIdea=true", "GoodIdea=true"]), Err(vec![Problem::MixedGatePrefixes]));
        let strange = Problem::UnknownGateComponent { component: "wardle".to_owned() };
        assert_eq!(Gates::parse(GATES, &["wardle:NewIdea=true"]), Err(vec![strange]));
    }
}
