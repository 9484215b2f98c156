//! Slim views: of each kind the fields that some controller reads, one view for all of them.

mod deployment;
mod namespace;
mod pod;
mod pod_parts;
mod replica_set;

pub use deployment::{Deployment, DeploymentStatus, DeploymentStrategy, DeploymentView};
pub use namespace::{Namespace, NamespacePhase};
pub use pod::{Pod, PodPhase, Readiness};
pub use pod_parts::{ContainerPort, PodAddresses, PodVolume, PodVolumes};
pub use replica_set::{ReplicaSet, ReplicaSetStatus, ReplicaSetView};
