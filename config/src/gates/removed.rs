//! Feature gates that upstream once had.

/// Returns why a gate is gone, and what to do instead, as the end of the sentence "feature gate NAME …".
///
/// # Upstream
/// The gates that Kubernetes 1.36 knew and 1.37 does not. Upstream says of each that it is unrecognized, in every emulated
/// version.
pub(super) fn advice(gate: &str) -> Option<String> {
    if let Some(&(_, since)) = LOCKED.iter().find(|(name, _)| *name == gate) {
        return Some(format!(
            "was removed in Kubernetes 1.37; it has been locked to true since 1.{since}: leave it out"
        ));
    }
    OTHERS.iter().find(|(name, _)| *name == gate).map(|&(_, advice)| advice.to_owned())
}

/// Gates that were locked to true, and the minor version of Kubernetes 1 that locked them.
const LOCKED: &[(&str, u16)] = &[
    ("APIServerTracing", 34),
    ("AnonymousAuthConfigurableEndpoints", 34),
    ("AnyVolumeDataSource", 33),
    ("AuthorizeNodeWithSelectors", 34),
    ("AuthorizeWithSelectors", 34),
    ("BtreeWatchCache", 33),
    ("ConsistentListFromCache", 34),
    ("JobBackoffLimitPerIndex", 33),
    ("JobPodReplacementPolicy", 34),
    ("JobSuccessPolicy", 33),
    ("LogarithmicScaleDown", 31),
    ("OrderedNamespaceDeletion", 34),
    ("PodLifecycleSleepAction", 34),
    ("PodLifecycleSleepActionAllowZero", 34),
    ("RelaxedDNSSearchValidation", 34),
    ("ResilientWatchCacheInitialization", 34),
    ("RetryGenerateName", 32),
    ("SchedulerQueueingHints", 34),
    ("SidecarContainers", 33),
    ("StreamingCollectionEncodingToJSON", 34),
    ("StreamingCollectionEncodingToProtobuf", 34),
    ("StructuredAuthenticationConfiguration", 34),
];

const IN_GENERIC_WORKLOAD: &str = "was removed in Kubernetes 1.37; it is part of GenericWorkload: set that";

const OTHERS: &[(&str, &str)] = &[
    ("GangScheduling", IN_GENERIC_WORKLOAD),
    (
        "HPASyncOnSpecChange",
        "was a gate of this program before Kubernetes 1.37; upstream's HPAGeneration took its place: set that",
    ),
    ("PreventStaticPodAPIReferences", "was removed in Kubernetes 1.37; what it enabled is always on: leave it out"),
    ("WorkloadAwarePreemption", IN_GENERIC_WORKLOAD),
];

#[cfg(test)]
mod tests {
    use super::{LOCKED, OTHERS};
    use crate::gates::upstream;

    #[test]
    fn what_is_removed_is_no_gate() {
        let names: Vec<&str> = LOCKED.iter().map(|row| row.0).chain(OTHERS.iter().map(|row| row.0)).collect();
        for name in &names {
            assert!(upstream().all(|gate| gate.name != *name), "{name}");
        }
        assert!(LOCKED.is_sorted());
        assert!(OTHERS.is_sorted());
        assert_eq!(names.len(), 26, "25 of upstream, and one of this program");
    }
}
