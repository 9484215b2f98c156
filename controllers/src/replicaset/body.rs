//! What is sent: new pods, and the patches of adoption and release.

use kcm_api::views::{Pod, ReplicaSet};
use kcm_api::{Istr, KnownView as _, OwnerReference, Resource, Uid};
use serde::Serialize;
use serde_json::value::RawValue;

const POD: &Resource = &Pod::RESOURCE;
const REPLICA_SET: &Resource = &ReplicaSet::RESOURCE;

/// The parts of a template that go into every pod, as the API server served them.
///
/// Nothing else of its metadata does: a name or an owner in a template means nothing.
pub(super) struct Template<'a> {
    labels: Option<&'a RawValue>,
    annotations: Option<&'a RawValue>,
    finalizers: Option<&'a RawValue>,
    spec: Option<&'a RawValue>,
    namespace: &'a str,
    generate_name: String,
    owner: OwnerReference,
}

impl<'a> Template<'a> {
    /// The template of a replica set.
    pub(super) fn of(owner: &'a ReplicaSet) -> Self {
        let metadata = |name| owner.raw(&["spec", "template", "metadata", name]);
        Self {
            labels: metadata("labels"),
            annotations: metadata("annotations"),
            finalizers: metadata("finalizers"),
            spec: owner.raw(&["spec", "template", "spec"]),
            namespace: owner.metadata.key.namespace().unwrap_or_default(),
            // Always a valid beginning of a name: names of replica sets are valid names of pods.
            generate_name: format!("{}-", owner.metadata.key.name()),
            owner: controller_reference(owner),
        }
    }

    /// What names of pods begin with.
    pub(super) fn generate_name(&self) -> &str {
        &self.generate_name
    }

    /// A new pod.
    pub(super) fn pod(&self, name: &'a str) -> impl Serialize {
        NewPod {
            api_version: POD.api_version(),
            kind: &POD.kind,
            metadata: NewMeta {
                name,
                generate_name: &self.generate_name,
                namespace: self.namespace,
                labels: self.labels,
                annotations: self.annotations,
                finalizers: self.finalizers,
                owner_references: [&self.owner],
            },
            spec: self.spec,
        }
    }
}

/// The patch that makes `owner` the controller of `pod`, if that is still the same pod.
///
/// Owners merge by uid: one that is there already as a mere owner becomes the controller, others stay, and a second
/// controller is refused.
pub(super) fn adoption(owner: &ReplicaSet, pod: &Pod) -> impl Serialize + use<> {
    Patch { metadata: AdoptionMeta { owner_references: [controller_reference(owner)], uid: pod.metadata.uid.clone() } }
}

/// The patch that takes `owner` out of the owners of `pod`, if that is still the same pod.
pub(super) fn release(owner: &ReplicaSet, pod: &Pod) -> impl Serialize + use<> {
    let removal = Removal { patch: "delete", uid: owner.metadata.uid.clone() };
    Patch { metadata: ReleaseMeta { uid: pod.metadata.uid.clone(), owner_references: [removal] } }
}

fn controller_reference(owner: &ReplicaSet) -> OwnerReference {
    OwnerReference {
        api_version: REPLICA_SET.api_version().into(),
        kind: Istr::from(&*REPLICA_SET.kind),
        name: owner.metadata.key.name().into(),
        uid: owner.metadata.uid.clone(),
        controller: true,
        block_owner_deletion: true,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewPod<'a> {
    api_version: String,
    kind: &'a str,
    metadata: NewMeta<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewMeta<'a> {
    name: &'a str,
    generate_name: &'a str,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalizers: Option<&'a RawValue>,
    owner_references: [&'a OwnerReference; 1],
}

#[derive(Serialize)]
struct Patch<M> {
    metadata: M,
}

// The uid comes last in one patch and first in the other because upstream sends them so.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdoptionMeta {
    owner_references: [OwnerReference; 1],
    uid: Uid,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReleaseMeta {
    uid: Uid,
    owner_references: [Removal; 1],
}

#[derive(Serialize)]
struct Removal {
    #[serde(rename = "$patch")]
    patch: &'static str,
    uid: Uid,
}
