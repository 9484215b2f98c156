//! Replica sets.

use serde::Deserialize;

use crate::decode::null_as_default;
use crate::{
    Condition, DecodeError, Documented, InvalidSelector, KnownView, LabelSelector, Labels, Meta, Resource, Selector,
    View,
};

/// A replica set, whole: its status is put, and its template becomes pods as it stands.
pub type ReplicaSet = Documented<ReplicaSetView>;

/// What decisions read of a replica set.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReplicaSetView {
    /// Metadata of the replica set.
    pub metadata: Meta,
    /// `spec.replicas`, 1 where it is absent.
    pub replicas: i32,
    /// `spec.minReadySeconds`.
    pub min_ready_seconds: i32,
    /// `spec.selector`; one that is invalid does not keep the rest of the object from being read.
    pub selector: Result<Selector, InvalidSelector>,
    /// `spec.template.metadata.labels`.
    pub template_labels: Labels,
    /// `status`.
    pub status: ReplicaSetStatus,
}

/// The status of a replica set.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReplicaSetStatus {
    /// How many pods there are.
    #[serde(default, deserialize_with = "null_as_default")]
    pub replicas: i32,
    /// How many of them have all labels of the template.
    #[serde(default, deserialize_with = "null_as_default")]
    pub fully_labeled_replicas: i32,
    /// How many of them are ready.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ready_replicas: i32,
    /// How many of them have been ready for long enough.
    #[serde(default, deserialize_with = "null_as_default")]
    pub available_replicas: i32,
    /// How many further pods are terminating; absent where they are not counted.
    pub terminating_replicas: Option<i32>,
    /// The generation that this status was computed from.
    #[serde(default, deserialize_with = "null_as_default")]
    pub observed_generation: i64,
    /// Conditions, in the order served.
    #[serde(default, deserialize_with = "null_as_default")]
    pub conditions: Box<[Condition]>,
}

#[derive(Deserialize)]
struct RawReplicaSet {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: ReplicaSetStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    replicas: Option<i32>,
    #[serde(default, deserialize_with = "null_as_default")]
    min_ready_seconds: i32,
    selector: Option<LabelSelector>,
    #[serde(default, deserialize_with = "null_as_default")]
    template: super::LabelsOfTemplate,
}

impl View for ReplicaSetView {
    fn decode(json: &str) -> Result<Self, DecodeError> {
        let RawReplicaSet { metadata, spec, status } = serde_json::from_str(json)?;
        Ok(Self {
            metadata,
            replicas: spec.replicas.unwrap_or(1),
            min_ready_seconds: spec.min_ready_seconds,
            selector: Selector::try_from(spec.selector.as_ref()),
            template_labels: spec.template.labels(),
            status,
        })
    }

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl KnownView for ReplicaSetView {
    const RESOURCE: Resource = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
}
