//! The translation of the seven in-tree volume sources to the CSI volumes that replace them.
//!
//! [`volume`] translates a persistent volume and [`inline`] a volume that a pod defines itself. Both are pure and read
//! JSON. The result has the fields that identify an attachment, and the source as the API server expects it in a
//! `VolumeAttachment`.
//!
//! The node affinity of a persistent volume is not translated: an attachment names the volume, so no write shows it.
//!
//! # Upstream
//! `k8s.io/csi-translation-lib`, with one difference: upstream reads the storage policy of an inline vSphere volume
//! from the volume under construction, which dereferences nil. Here the policy comes from the pod's volume.

mod handle;
mod in_tree;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use kcm_framework::api::views::PersistentVolume;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use in_tree::{Context, Sources};

/// A volume that a CSI driver serves instead of an in-tree plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Translated {
    /// Name of the volume: its own, or a generated name for a volume of a pod.
    pub(crate) name: String,
    /// The spec, as `VolumeAttachment.spec.source.inlineVolumeSpec` holds it.
    pub(crate) spec: CsiSpec,
}

/// The fields of a volume's spec that a translation decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CsiSpec {
    pub(crate) csi: CsiSource,
    /// `None` for a persistent volume without access modes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) access_modes: Option<Vec<AccessMode>>,
    /// `Filesystem` for the volume of a pod. `None` for a persistent volume, which keeps its mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) volume_mode: Option<&'static str>,
}

/// `spec.csi` of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CsiSource {
    pub(crate) driver: &'static str,
    pub(crate) volume_handle: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) read_only: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) fs_type: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) volume_attributes: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) controller_publish_secret_ref: Option<SecretReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_stage_secret_ref: Option<SecretReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_publish_secret_ref: Option<SecretReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) controller_expand_secret_ref: Option<SecretReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_expand_secret_ref: Option<SecretReference>,
}

/// A secret that a driver needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SecretReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
}

/// Access mode of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum AccessMode {
    ReadWriteOnce,
    ReadOnlyMany,
    ReadWriteMany,
    ReadWriteOncePod,
    /// A mode that this version does not know.
    #[serde(other)]
    Other,
}

/// Reason why a volume cannot be translated.
///
/// # Upstream
/// The text of each variant is upstream's, because the log shows it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum TranslationError {
    #[error("failed to translate Kubernetes ID to EBS Volume ID Invalid disk name ({id})")]
    EbsUrl { id: String },
    #[error("failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({id})")]
    EbsFormat { id: String },
    #[error(
        "failed to get region from zones: zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
    )]
    Zone { zone: String },
    #[error("failed to get region from zones: multiple or no regions gotten from zones, got: map[{regions}]")]
    Regions { regions: String },
    #[error("kind({kind}) is not supported in csi migration")]
    DiskKind { kind: String },
    #[error("could not find a secret namespace in PersistentVolumeSource or ClaimRef")]
    NoSecretNamespace,
    /// The JSON does not have the types of the API.
    #[error("the source of the volume cannot be decoded: {reason}")]
    Malformed { reason: String },
}

impl From<serde_json::Error> for TranslationError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed { reason: error.to_string() }
    }
}

/// Translates a persistent volume. Returns `None` if its source is not one of the seven.
///
/// # Upstream
/// `TranslateInTreePVToCSI`.
pub(crate) fn volume(volume: &PersistentVolume) -> Result<Option<Translated>, TranslationError> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        #[serde(flatten)]
        sources: Sources,
        access_modes: Option<Vec<AccessMode>>,
    }
    let Some(json) = volume.raw(&["spec"]) else { return Ok(None) };
    let Spec { sources, access_modes } = serde_json::from_str(json.get())?;
    let context = Context::Persistent {
        name: volume.metadata.key.name(),
        labels: strings(volume.raw(&["metadata", "labels"]))?,
        annotations: strings(volume.raw(&["metadata", "annotations"]))?,
        claim_namespace: volume.claim.as_ref().map_or("", |claim| &claim.namespace),
        access_modes,
    };
    sources.translate(&context)
}

/// Translates a volume of a pod, given its JSON. Returns `None` if its source is not one of the seven.
///
/// # Upstream
/// `TranslateInTreeInlineVolumeToCSI`.
pub(crate) fn inline(volume: &str, pod_namespace: &str) -> Result<Option<Translated>, TranslationError> {
    #[derive(Deserialize)]
    struct Volume<'a> {
        #[serde(borrow, default)]
        name: Cow<'a, str>,
        #[serde(flatten)]
        sources: Sources,
    }
    let Volume { name, sources } = serde_json::from_str(volume)?;
    sources.translate(&Context::Inline { name: &name, namespace: pod_namespace })
}

fn strings(json: Option<&RawValue>) -> Result<BTreeMap<String, String>, TranslationError> {
    let Some(json) = json else { return Ok(BTreeMap::new()) };
    let strings: Option<BTreeMap<String, String>> = serde_json::from_str(json.get())?;
    Ok(strings.unwrap_or_default())
}
