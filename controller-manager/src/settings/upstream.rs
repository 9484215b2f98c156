//! The controllers of upstream.

use kcm_framework::AbsentController;

/// A controller that upstream knows, whether it is linked or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamController {
    /// Canonical name of the controller.
    pub name: &'static str,
    /// Other names that `--controllers` accepts.
    pub aliases: &'static [&'static str],
    /// Condition under which upstream starts it.
    pub start: UpstreamStart,
}

/// Condition under which upstream starts a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamStart {
    /// With `*`, if all these feature gates are on.
    ByDefault {
        /// The names of the gates.
        gates: &'static [&'static str],
    },
    /// Only if `--controllers` names it, and all these feature gates are on.
    Named {
        /// The names of the gates.
        gates: &'static [&'static str],
    },
}

impl UpstreamController {
    /// The name and the aliases, for [`Selection::parse`](kcm_framework::Selection::parse).
    #[must_use]
    pub const fn names(&self) -> AbsentController {
        (self.name, self.aliases)
    }

    const fn new(name: &'static str, aliases: &'static [&'static str], start: UpstreamStart) -> Self {
        Self { name, aliases, start }
    }
}

const BY_DEFAULT: UpstreamStart = UpstreamStart::ByDefault { gates: &[] };
const NAMED: UpstreamStart = UpstreamStart::Named { gates: &[] };

/// Starts with `*` if these gates are on.
const fn gated(gates: &'static [&'static str]) -> UpstreamStart {
    UpstreamStart::ByDefault { gates }
}

/// Every controller that upstream knows: the names that `--controllers` accepts.
///
/// # Upstream
/// `NewControllerDescriptors` and `ControllersAliases` of kube-controller-manager 1.37.2.
pub const UPSTREAM: &[UpstreamController] = &[
    UpstreamController::new("bootstrap-signer-controller", &["bootstrapsigner"], NAMED),
    UpstreamController::new("certificatesigningrequest-approving-controller", &["csrapproving"], BY_DEFAULT),
    UpstreamController::new("certificatesigningrequest-cleaner-controller", &["csrcleaner"], BY_DEFAULT),
    UpstreamController::new("certificatesigningrequest-signing-controller", &["csrsigning"], BY_DEFAULT),
    UpstreamController::new("clusterrole-aggregation-controller", &["clusterrole-aggregation"], BY_DEFAULT),
    UpstreamController::new("cronjob-controller", &["cronjob"], BY_DEFAULT),
    UpstreamController::new("daemonset-controller", &["daemonset"], BY_DEFAULT),
    UpstreamController::new("deployment-controller", &["deployment"], BY_DEFAULT),
    UpstreamController::new(
        "device-taint-eviction-controller",
        &[],
        gated(&["DynamicResourceAllocation", "DRADeviceTaints"]),
    ),
    UpstreamController::new("disruption-controller", &["disruption"], BY_DEFAULT),
    UpstreamController::new("endpoints-controller", &["endpoint"], BY_DEFAULT),
    UpstreamController::new("endpointslice-controller", &["endpointslice"], BY_DEFAULT),
    UpstreamController::new("endpointslice-mirroring-controller", &["endpointslicemirroring"], BY_DEFAULT),
    UpstreamController::new("ephemeral-volume-controller", &["ephemeral-volume"], BY_DEFAULT),
    UpstreamController::new("garbage-collector-controller", &["garbagecollector"], BY_DEFAULT),
    UpstreamController::new("horizontal-pod-autoscaler-controller", &["horizontalpodautoscaling"], BY_DEFAULT),
    UpstreamController::new("job-controller", &["job"], BY_DEFAULT),
    UpstreamController::new(
        "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        &[],
        gated(&["ClusterTrustBundle"]),
    ),
    UpstreamController::new(
        "legacy-serviceaccount-token-cleaner-controller",
        &["legacy-service-account-token-cleaner"],
        BY_DEFAULT,
    ),
    UpstreamController::new("namespace-controller", &["namespace"], BY_DEFAULT),
    UpstreamController::new("node-ipam-controller", &["nodeipam"], BY_DEFAULT),
    UpstreamController::new("node-lifecycle-controller", &["nodelifecycle"], BY_DEFAULT),
    UpstreamController::new("persistentvolume-attach-detach-controller", &["attachdetach"], BY_DEFAULT),
    UpstreamController::new("persistentvolume-binder-controller", &["persistentvolume-binder"], BY_DEFAULT),
    UpstreamController::new("persistentvolume-expander-controller", &["persistentvolume-expander"], BY_DEFAULT),
    UpstreamController::new("persistentvolume-protection-controller", &["pv-protection"], BY_DEFAULT),
    UpstreamController::new("persistentvolumeclaim-protection-controller", &["pvc-protection"], BY_DEFAULT),
    UpstreamController::new("pod-garbage-collector-controller", &["podgc"], BY_DEFAULT),
    UpstreamController::new("podcertificaterequest-cleaner-controller", &[], gated(&["PodCertificateRequest"])),
    UpstreamController::new("podgroup-protection-controller", &[], gated(&["GenericWorkload"])),
    UpstreamController::new("replicaset-controller", &["replicaset"], BY_DEFAULT),
    UpstreamController::new("replicationcontroller-controller", &["replicationcontroller"], BY_DEFAULT),
    UpstreamController::new(
        "resourceclaim-controller",
        &["resource-claim-controller"],
        gated(&["DynamicResourceAllocation"]),
    ),
    UpstreamController::new("resourcepoolstatusrequest-controller", &[], gated(&["DRAResourcePoolStatus"])),
    UpstreamController::new("resourcequota-controller", &["resourcequota"], BY_DEFAULT),
    UpstreamController::new("root-ca-certificate-publisher-controller", &["root-ca-cert-publisher"], BY_DEFAULT),
    UpstreamController::new(
        "selinux-warning-controller",
        &[],
        UpstreamStart::Named { gates: &["SELinuxChangePolicy"] },
    ),
    UpstreamController::new("service-cidr-controller", &[], gated(&["MultiCIDRServiceAllocator"])),
    UpstreamController::new("serviceaccount-controller", &["serviceaccount"], BY_DEFAULT),
    UpstreamController::new("serviceaccount-token-controller", &["serviceaccount-token"], BY_DEFAULT),
    UpstreamController::new("statefulset-controller", &["statefulset"], BY_DEFAULT),
    UpstreamController::new("storage-version-migrator-controller", &["svm"], BY_DEFAULT),
    UpstreamController::new(
        "storageversion-garbage-collector-controller",
        &["storage-version-gc"],
        gated(&["APIServerIdentity", "StorageVersionAPI"]),
    ),
    UpstreamController::new("taint-eviction-controller", &[], gated(&["SeparateTaintEvictionController"])),
    UpstreamController::new("token-cleaner-controller", &["tokencleaner"], NAMED),
    UpstreamController::new("ttl-after-finished-controller", &["ttl-after-finished"], BY_DEFAULT),
    UpstreamController::new("ttl-controller", &["ttl"], BY_DEFAULT),
    UpstreamController::new("validatingadmissionpolicy-status-controller", &[], BY_DEFAULT),
    UpstreamController::new("volumeattributesclass-protection-controller", &[], gated(&["VolumeAttributesClass"])),
];

/// Controllers of cloud controller managers, with their aliases. Upstream knew their names until Kubernetes 1.36, never
/// started them, and refuses them now. Distributions still turn them off, so `--controllers` accepts them.
pub(crate) const OF_CLOUDS: &[AbsentController] = &[
    ("cloud-node-lifecycle-controller", &["cloud-node-lifecycle"]),
    ("node-route-controller", &["route"]),
    ("service-lb-controller", &["service"]),
];
