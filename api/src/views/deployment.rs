//! Deployments.

use serde::Deserialize;

use crate::decode::null_as_default;
use crate::{
    Condition, DecodeError, Documented, IntOrPercent, InternedStr, InvalidSelector, KnownView, LabelSelector, Labels,
    Meta, Resource, Selector, View,
};

/// A deployment, whole: it is put with its status and its annotations, and its template becomes that of replica sets.
pub type Deployment = Documented<DeploymentView>;

/// What decisions read of a deployment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeploymentView {
    /// Metadata of the deployment.
    pub metadata: Meta,
    /// `spec.replicas`, 1 where it is absent.
    pub replicas: i32,
    /// `spec.selector`; one that is invalid does not keep the rest of the object from being read.
    pub selector: Result<Selector, InvalidSelector>,
    /// `spec.template.metadata.labels`.
    pub template_labels: Labels,
    /// `spec.strategy`.
    pub strategy: DeploymentStrategy,
    /// `spec.minReadySeconds`.
    pub min_ready_seconds: i32,
    /// `spec.revisionHistoryLimit`.
    pub revision_history_limit: Option<i32>,
    /// `spec.paused`.
    pub paused: bool,
    /// `spec.progressDeadlineSeconds`.
    pub progress_deadline_seconds: Option<i32>,
    /// `status`.
    pub status: DeploymentStatus,
}

/// How the pods of one template take the place of those of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeploymentStrategy {
    /// Step by step.
    RollingUpdate {
        /// How many pods may be missing meanwhile.
        max_unavailable: Option<IntOrPercent>,
        /// How many pods there may be above what is desired.
        max_surge: Option<IntOrPercent>,
    },
    /// All old pods go before the first new one comes.
    Recreate,
    /// Any other string, empty where none is set; the API server sets a default, so no object has this.
    Other(InternedStr),
}

/// The status of a deployment.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeploymentStatus {
    /// The generation that this status was computed from.
    #[serde(default, deserialize_with = "null_as_default")]
    pub observed_generation: i64,
    /// How many pods there are, of any template.
    #[serde(default, deserialize_with = "null_as_default")]
    pub replicas: i32,
    /// How many of them have the current template.
    #[serde(default, deserialize_with = "null_as_default")]
    pub updated_replicas: i32,
    /// How many of them are ready.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ready_replicas: i32,
    /// How many of them have been ready for long enough.
    #[serde(default, deserialize_with = "null_as_default")]
    pub available_replicas: i32,
    /// How many more would have to be available.
    #[serde(default, deserialize_with = "null_as_default")]
    pub unavailable_replicas: i32,
    /// How many further pods are terminating; absent where they are not counted.
    pub terminating_replicas: Option<i32>,
    /// How often a hash of a template was taken by another template.
    pub collision_count: Option<i32>,
    /// Conditions, in the order served.
    #[serde(default, deserialize_with = "null_as_default")]
    pub conditions: Box<[Condition]>,
}

#[derive(Deserialize)]
struct RawDeployment {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: DeploymentStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    replicas: Option<i32>,
    selector: Option<LabelSelector>,
    #[serde(default, deserialize_with = "null_as_default")]
    template: super::LabelsOfTemplate,
    #[serde(default, deserialize_with = "null_as_default")]
    strategy: RawStrategy,
    #[serde(default, deserialize_with = "null_as_default")]
    min_ready_seconds: i32,
    revision_history_limit: Option<i32>,
    #[serde(default, deserialize_with = "null_as_default")]
    paused: bool,
    progress_deadline_seconds: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStrategy {
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    type_: InternedStr,
    #[serde(default, deserialize_with = "null_as_default")]
    rolling_update: RawRollingUpdate,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRollingUpdate {
    max_unavailable: Option<IntOrPercent>,
    max_surge: Option<IntOrPercent>,
}

impl From<RawStrategy> for DeploymentStrategy {
    fn from(RawStrategy { type_, rolling_update }: RawStrategy) -> Self {
        let RawRollingUpdate { max_unavailable, max_surge } = rolling_update;
        match type_.as_str() {
            "RollingUpdate" => Self::RollingUpdate { max_unavailable, max_surge },
            "Recreate" => Self::Recreate,
            _ => Self::Other(type_),
        }
    }
}

impl View for DeploymentView {
    fn decode(json: &str) -> Result<Self, DecodeError> {
        let RawDeployment { metadata, spec, status } = serde_json::from_str(json)?;
        Ok(Self {
            metadata,
            replicas: spec.replicas.unwrap_or(1),
            selector: Selector::try_from(spec.selector.as_ref()),
            template_labels: spec.template.labels(),
            strategy: spec.strategy.into(),
            min_ready_seconds: spec.min_ready_seconds,
            revision_history_limit: spec.revision_history_limit,
            paused: spec.paused,
            progress_deadline_seconds: spec.progress_deadline_seconds,
            status,
        })
    }

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl KnownView for DeploymentView {
    const RESOURCE: Resource = Resource::namespaced("apps", "v1", "deployments", "Deployment");
}
