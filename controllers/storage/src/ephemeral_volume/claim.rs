//! The claim that is created from the template of an ephemeral volume.

use std::collections::BTreeMap;

use kcm_framework::api::views::{PersistentVolumeClaim, Pod};
use kcm_framework::api::{KnownView as _, OwnerReference, Resource, Uid};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A Pod as the API server has it, with the templates of its claims.
#[derive(Debug, Deserialize)]
pub(super) struct LivePod<'a> {
    metadata: LiveMetadata,
    #[serde(borrow)]
    spec: LiveSpec<'a>,
}

#[derive(Debug, Deserialize)]
struct LiveMetadata {
    uid: Uid,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LiveSpec<'a> {
    #[serde(borrow)]
    volumes: Option<Vec<LiveVolume<'a>>>,
}

#[derive(Debug, Deserialize)]
struct LiveVolume<'a> {
    name: &'a str,
    #[serde(borrow)]
    ephemeral: Option<Ephemeral<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Ephemeral<'a> {
    #[serde(borrow)]
    volume_claim_template: Option<Template<'a>>,
}

/// The template of a claim.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Template<'a> {
    metadata: TemplateMetadata,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TemplateMetadata {
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

impl<'a> LivePod<'a> {
    pub(super) fn is(&self, uid: &Uid) -> bool {
        self.metadata.uid == *uid
    }

    /// The template of the volume with that name.
    pub(super) fn template(&self, volume: &str) -> Option<&Template<'a>> {
        let mut volumes = self.spec.volumes.iter().flatten();
        volumes.find(|present| present.name == volume)?.ephemeral.as_ref()?.volume_claim_template.as_ref()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewClaim<'a> {
    api_version: String,
    kind: &'a str,
    metadata: NewMetadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewMetadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a BTreeMap<String, String>>,
    owner_references: [OwnerReference; 1],
}

/// Returns the JSON of the claim `name` of a Pod.
pub(super) fn new_claim(name: &str, template: &Template<'_>, pod: &Pod) -> Box<RawValue> {
    const CLAIM: Resource = PersistentVolumeClaim::RESOURCE;
    let owner = OwnerReference::controller_of(const { &Pod::RESOURCE }, pod.metadata.key.name(), &pod.metadata.uid);
    let claim = NewClaim {
        api_version: CLAIM.api_version(),
        kind: &CLAIM.kind,
        metadata: NewMetadata {
            name,
            labels: template.metadata.labels.as_ref(),
            annotations: template.metadata.annotations.as_ref(),
            owner_references: [owner],
        },
        spec: template.spec,
    };
    serde_json::value::to_raw_value(&claim).expect("maps with text as keys are valid JSON")
}
