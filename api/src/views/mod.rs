//! Slim views: of each kind the fields that some controller reads, one view for all of them.

mod deployment;
mod namespace;
mod pod;
mod replica_set;

pub use deployment::{Deployment, DeploymentStatus, DeploymentStrategy, DeploymentView};
pub use namespace::{Namespace, NamespacePhase};
pub use pod::{Pod, PodPhase, Readiness};
pub use replica_set::{ReplicaSet, ReplicaSetStatus, ReplicaSetView};

use serde::Deserialize;

use crate::Labels;
use crate::decode::null_as_default;

/// What the views of the kinds that make pods read of the template; the rest is carried as it stands.
#[derive(Default, Deserialize)]
struct LabelsOfTemplate {
    #[serde(default, deserialize_with = "null_as_default")]
    metadata: TemplateMeta,
}

#[derive(Default, Deserialize)]
struct TemplateMeta {
    #[serde(default)]
    labels: Labels,
}

impl LabelsOfTemplate {
    fn labels(self) -> Labels {
        self.metadata.labels
    }
}
