//! The volume that a source describes. Pure.

use kcm_framework::api::views::PersistentVolume;

use crate::shared::sources::{Sources, csi_name};
use crate::shared::translation::{self, TranslationError};

/// Storage that Pods can share, with a plugin that may mount it with an `SELinux` label.
///
/// The other plugins never do. All users of their volumes have an empty label and the policy `Recursive`, which never
/// conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Storage {
    /// Name that equal storage shares.
    ///
    /// # Upstream
    /// `GetUniqueVolumeNameFromSpec`.
    pub(super) name: String,
    /// Name of the CSI driver. Fibre Channel and iSCSI volumes have none, and are always mounted with a label.
    pub(super) driver: Option<String>,
}

/// Returns the storage of a persistent volume, or `None` if it is never mounted with a label.
pub(super) fn persistent(volume: &PersistentVolume) -> Result<Option<Storage>, TranslationError> {
    if let Some(translated) = translation::volume(volume)? {
        return Ok(Some(csi(translated.spec.csi.driver, &translated.spec.csi.volume_handle)));
    }
    let Some(json) = volume.raw(&["spec"]) else { return Ok(None) };
    let sources: Sources = serde_json::from_str(json.get())?;
    let of_csi = sources.csi.as_ref().map(|source| csi(&source.driver, &source.volume_handle));
    Ok(of_csi.or_else(|| without_driver(&sources)))
}

/// Returns the storage of a volume that a Pod describes itself, or `None` if it is never mounted with a label.
///
/// A CSI volume of a Pod belongs to this Pod alone.
pub(super) fn of_pod(volume: &str, namespace: &str) -> Result<Option<Storage>, TranslationError> {
    if let Some(translated) = translation::inline(volume, namespace)? {
        return Ok(Some(csi(translated.spec.csi.driver, &translated.spec.csi.volume_handle)));
    }
    let sources: Sources = serde_json::from_str(volume)?;
    Ok(without_driver(&sources))
}

fn csi(driver: &str, handle: &str) -> Storage {
    Storage { name: csi_name(driver, handle), driver: Some(driver.to_owned()) }
}

fn without_driver(sources: &Sources) -> Option<Storage> {
    sources.without_driver().map(|name| Storage { name, driver: None })
}
