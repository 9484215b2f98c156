//! Slim views: of each kind the fields that some controller reads, one view for all of them.

mod conditions;
mod deployment;
mod job;
mod namespace;
mod node;
mod pod;
mod pod_parts;
mod replica_set;
mod replication_controller;

pub use deployment::{Deployment, DeploymentStatus, DeploymentStrategy, DeploymentView};
pub use job::{Job, JobCompletion};
pub use namespace::{Namespace, NamespacePhase};
pub use node::{Node, Taint};
pub use pod::{Pod, PodPhase, Readiness};
pub use pod_parts::{ContainerPort, PodAddresses, PodDisruption, PodVolume, PodVolumes};
pub use replica_set::{ReplicaSet, ReplicaSetStatus, ReplicaSetView};
pub use replication_controller::{ReplicationController, ReplicationControllerView};
