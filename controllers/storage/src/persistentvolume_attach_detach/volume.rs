//! The volume that a source describes.

use kcm_framework::api::views::PersistentVolume;
use serde::Deserialize;

use crate::shared::sources::{Sources, csi_name};
use crate::shared::translation::{self, AccessMode, CsiSpec, Translated, TranslationError};

/// A volume that can be attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attachable {
    /// Name in the status of nodes.
    pub(super) unique_name: String,
    /// Name in events: the name of the persistent volume, or of the pod's volume.
    pub(super) spec_name: String,
    /// `true` if several nodes may have the volume at once.
    pub(super) is_shared: bool,
    /// The source that the attachment contains, for a translated volume of a pod. Other attachments name their volume.
    pub(super) inline: Option<CsiSpec>,
    /// `true` if a CSI driver serves the volume in place of an in-tree plugin.
    pub(super) is_migrated: bool,
}

/// A volume of a pod that a flex driver attaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlexVolume {
    /// Name of the persistent volume, or of the pod's volume.
    pub(super) name: String,
    pub(super) driver: String,
}

/// Returns the volume that a persistent volume describes. Returns `None` if no plugin attaches it.
pub(super) fn persistent(volume: &PersistentVolume) -> Result<Option<Attachable>, TranslationError> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        #[serde(flatten)]
        sources: Sources,
        access_modes: Option<Vec<AccessMode>>,
    }
    if let Some(translated) = translation::volume(volume)? {
        return Ok(Some(Attachable { inline: None, ..translated_volume(translated) }));
    }
    let Some(json) = volume.raw(&["spec"]) else { return Ok(None) };
    let spec: Spec = serde_json::from_str(json.get())?;
    let csi = spec.sources.csi.as_ref().map(|csi| csi_name(&csi.driver, &csi.volume_handle));
    Ok(csi.or_else(|| spec.sources.without_driver()).map(|unique_name| Attachable {
        unique_name,
        spec_name: volume.metadata.key.name().to_owned(),
        is_shared: is_shared(spec.access_modes.as_deref()),
        inline: None,
        is_migrated: false,
    }))
}

/// Returns the volume that a pod describes itself, given its JSON. Returns `None` if no plugin attaches it.
///
/// # Upstream
/// The kubelet alone serves a CSI volume of a pod.
pub(super) fn of_pod(volume: &str, pod_namespace: &str) -> Result<Option<Attachable>, TranslationError> {
    #[derive(Deserialize)]
    struct Volume {
        #[serde(default)]
        name: String,
        #[serde(flatten)]
        sources: Sources,
    }
    if let Some(translated) = translation::inline(volume, pod_namespace)? {
        return Ok(Some(translated_volume(translated)));
    }
    let volume: Volume = serde_json::from_str(volume)?;
    let unique_name = volume.sources.without_driver();
    Ok(unique_name.map(|unique_name| Attachable {
        unique_name,
        spec_name: volume.name,
        is_shared: true,
        inline: None,
        is_migrated: false,
    }))
}

/// Returns the flex volume that a pod describes itself, given its JSON.
pub(super) fn flex_of_pod(volume: &str) -> Option<FlexVolume> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Volume {
        name: String,
        flex_volume: Flex,
    }
    #[derive(Deserialize)]
    struct Flex {
        #[serde(default)]
        driver: String,
    }
    let Volume { name, flex_volume } = serde_json::from_str(volume).ok()?;
    Some(FlexVolume { name, driver: flex_volume.driver })
}

fn translated_volume(volume: Translated) -> Attachable {
    Attachable {
        unique_name: csi_name(volume.spec.csi.driver, &volume.spec.csi.volume_handle),
        spec_name: volume.name,
        is_shared: is_shared(volume.spec.access_modes.as_deref()),
        inline: Some(volume.spec),
        is_migrated: true,
    }
}

/// Returns `true` if several nodes may have a volume with these access modes.
///
/// # Upstream
/// `IsMultiAttachAllowed`: a volume without access modes may be on several nodes.
fn is_shared(modes: Option<&[AccessMode]>) -> bool {
    let modes = modes.unwrap_or_default();
    modes.is_empty() || modes.iter().any(|mode| matches!(mode, AccessMode::ReadWriteMany | AccessMode::ReadOnlyMany))
}
