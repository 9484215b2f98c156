//! Flags that upstream once had, and their replacements.

/// Returns the replacement of a flag (without dashes) that upstream has removed.
pub(crate) fn advice(flag: &str) -> Option<&'static str> {
    REMOVED.iter().find(|(removed, _)| *removed == flag).map(|(_, advice)| *advice)
}

const NO_EFFECT: &str = "it had no effect any more; leave it out";
const LOG_FILES: &str = "logs go to standard error, or with --log-text-split-stream to standard output as well; \
     redirect them, and leave it out";
const EVICTION_RATE: &str = "use --node-eviction-rate";

const REMOVED: &[(&str, &str)] = &[
    ("add-dir-header", LOG_FILES),
    ("address", "there is no port without encryption; use --bind-address"),
    ("alsologtostderr", LOG_FILES),
    ("concurrent-service-syncs", NO_EFFECT),
    ("deleting-pods-burst", EVICTION_RATE),
    ("deleting-pods-qps", EVICTION_RATE),
    ("deployment-controller-sync-period", NO_EFFECT),
    (
        "enable-taint-manager",
        "nodes with taints are always emptied; use --controllers=-taint-eviction-controller to stop that",
    ),
    ("experimental-cluster-signing-duration", "use --cluster-signing-duration"),
    ("horizontal-pod-autoscaler-downscale-delay", "use --horizontal-pod-autoscaler-downscale-stabilization"),
    (
        "horizontal-pod-autoscaler-upscale-delay",
        "scaling up is not delayed any more; use behavior.scaleUp of an autoscaler",
    ),
    ("horizontal-pod-autoscaler-use-rest-clients", "metrics always come from the metrics APIs; leave it out"),
    (
        "insecure-experimental-approve-all-kubelet-csrs-for-group",
        "bind the group to system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    ),
    ("log-backtrace-at", LOG_FILES),
    ("log-dir", LOG_FILES),
    ("log-file", LOG_FILES),
    ("log-file-max-size", LOG_FILES),
    ("logtostderr", LOG_FILES),
    ("one-output", LOG_FILES),
    (
        "pod-eviction-timeout",
        "pods are evicted by taints; use --default-not-ready-toleration-seconds and --default-unreachable-toleration-seconds of the API server",
    ),
    ("port", "there is no port without encryption; use --secure-port"),
    ("register-retry-count", NO_EFFECT),
    ("skip-headers", LOG_FILES),
    ("skip-log-headers", LOG_FILES),
    ("stderrthreshold", LOG_FILES),
    ("volume-host-allow-local-loopback", NO_EFFECT),
    ("volume-host-cidr-denylist", NO_EFFECT),
];

#[cfg(test)]
mod tests {
    use super::REMOVED;

    #[test]
    fn what_is_removed_is_no_flag() {
        for row in crate::generic::rows() {
            assert!(super::advice(row.name).is_none(), "--{}", row.name);
        }
        assert!(REMOVED.is_sorted());
    }
}
