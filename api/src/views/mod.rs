//! Slim views: of each kind the fields that some controller reads, one view for all of them.

mod autoscaled_pod;
mod charged_pod;
mod conditions;
mod controller_revision;
mod cron_job;
mod daemon_set;
mod deployment;
mod device_class;
mod endpoint_slice;
mod endpoints;
mod horizontal_pod_autoscaler;
mod job;
mod lease;
mod namespace;
mod node;
mod node_parts;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_claims;
mod pod_deletion;
mod pod_disruption_budget;
mod pod_failure_policy;
mod pod_group;
mod pod_group_membership;
mod pod_parts;
mod pod_phase;
mod pod_selinux;
mod pod_termination;
mod replica_set;
mod replication_controller;
mod resource_claim;
mod resource_quota;
mod service;
mod service_cidr;
mod stateful_set;
mod update_strategy;
mod volume_access;

pub use crate::scheduling::Taint;
pub use autoscaled_pod::{AutoscaledPod, PodRequests, ReadyCondition};
pub use charged_pod::{ChargedPod, QosClass, QuotaFields, ResourceRequirements};
pub use controller_revision::{ControllerRevision, ControllerRevisionView};
pub use cron_job::{ActiveJob, ConcurrencyPolicy, CronJob, CronJobStatus, CronJobView};
pub use daemon_set::{DaemonSet, DaemonSetStatus, DaemonSetUpdateStrategy, DaemonSetView};
pub use deployment::{Deployment, DeploymentStatus, DeploymentStrategy, DeploymentView};
pub use device_class::DeviceClass;
pub use endpoint_slice::{AddressType, EndpointSlice, EndpointSliceView};
pub use endpoints::{Endpoints, EndpointsView};
pub use horizontal_pod_autoscaler::{HorizontalPodAutoscaler, HorizontalPodAutoscalerView};
pub use job::{
    CompletionMode, Job, JobCompletion, JobStatus, JobView, PodReplacementPolicy, SuccessPolicyRule,
    UncountedTerminatedPods,
};
pub use lease::Lease;
pub use namespace::{Namespace, NamespacePhase};
pub use node::Node;
pub use node_parts::{NodeConditionStatus, NodeHealth, NodePodCidrs, NodeReady};
pub use persistent_volume::{ClaimReference, PersistentVolume, PersistentVolumeView, ReclaimPolicy, VolumePhase};
pub use persistent_volume_claim::{ClaimPhase, PersistentVolumeClaim, PersistentVolumeClaimView};
pub use pod::{Pod, Readiness};
pub use pod_claims::{ClaimEntry, ClaimEntryStatus, PodClaims};
pub use pod_deletion::PodDeletion;
pub use pod_disruption_budget::{PodDisruptionBudget, PodDisruptionBudgetStatus, PodDisruptionBudgetView};
pub use pod_failure_policy::{
    ExitCodesOperator, OnExitCodes, PodConditionPattern, PodFailurePolicy, PodFailurePolicyAction, PodFailurePolicyRule,
};
pub use pod_group::{GroupClaimEntry, PodGroup};
pub use pod_group_membership::PodGroupMembership;
pub use pod_parts::{PodAddresses, PodDisruption, PodDomain, PodTargetNode, PodTolerations, PodVolume, PodVolumes};
pub use pod_phase::PodPhase;
pub use pod_selinux::{MountLabel, MountSource, PodSelinux, SelinuxMount};
pub use pod_termination::{FailedContainer, PodTermination};
pub use replica_set::{ReplicaSet, ReplicaSetStatus, ReplicaSetView};
pub use replication_controller::{ReplicationController, ReplicationControllerView};
pub use resource_claim::{AllocatedDevice, ClaimConsumer, ClaimDevices, ResourceClaim};
pub use resource_quota::{ResourceQuota, ResourceQuotaView, ScopeOperator, ScopeRequirement};
pub use service::{Service, ServicePort, ServiceType, TargetPort};
pub use service_cidr::ServiceCidr;
pub use stateful_set::{
    ClaimRetention, PodManagementPolicy, StatefulSet, StatefulSetStatus, StatefulSetUpdateStrategy, StatefulSetView,
};
pub use volume_access::{AccessModes, VolumeMode};
