//! The volume that a source describes. Pure.

use kcm_framework::api::views::PersistentVolume;
use serde::Deserialize;

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

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Sources {
    csi: Option<Csi>,
    fc: Option<FibreChannel>,
    iscsi: Option<Iscsi>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Csi {
    driver: String,
    volume_handle: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FibreChannel {
    #[serde(rename = "targetWWNs")]
    target_wwns: Vec<String>,
    lun: Option<i32>,
    wwids: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Iscsi {
    target_portal: String,
    iqn: String,
    lun: i32,
}

impl Sources {
    /// Returns the storage of a Fibre Channel or iSCSI volume. A source without identity names no storage.
    fn without_driver(&self) -> Option<Storage> {
        let fc = self.fc.as_ref().and_then(|fc| match fc.lun {
            Some(lun) if !fc.target_wwns.is_empty() => Some(format!("fc/[{}]:{lun}", fc.target_wwns.join(" "))),
            Some(_) | None => (!fc.wwids.is_empty()).then(|| format!("fc/[{}]", fc.wwids.join(" "))),
        });
        let iscsi =
            self.iscsi.as_ref().map(|iscsi| format!("iscsi/{}:{}:{}", iscsi.target_portal, iscsi.iqn, iscsi.lun));
        fc.or(iscsi).map(|name| Storage { name: format!("kubernetes.io/{name}"), driver: None })
    }
}

/// Returns the storage of a persistent volume, or `None` if it is never mounted with a label.
pub(super) fn persistent(volume: &PersistentVolume) -> Result<Option<Storage>, TranslationError> {
    if let Some(translated) = translation::volume(volume)? {
        return Ok(Some(csi(translated.spec.csi.driver, &translated.spec.csi.volume_handle)));
    }
    let Some(json) = volume.raw(&["spec"]) else { return Ok(None) };
    let sources: Sources = serde_json::from_str(json.get())?;
    let of_csi = sources.csi.as_ref().map(|source| csi(&source.driver, &source.volume_handle));
    Ok(of_csi.or_else(|| sources.without_driver()))
}

/// Returns the storage of a volume that a Pod describes itself, or `None` if it is never mounted with a label.
///
/// A CSI volume of a Pod belongs to this Pod alone.
pub(super) fn of_pod(volume: &str, namespace: &str) -> Result<Option<Storage>, TranslationError> {
    if let Some(translated) = translation::inline(volume, namespace)? {
        return Ok(Some(csi(translated.spec.csi.driver, &translated.spec.csi.volume_handle)));
    }
    let sources: Sources = serde_json::from_str(volume)?;
    Ok(sources.without_driver())
}

fn csi(driver: &str, handle: &str) -> Storage {
    Storage { name: format!("kubernetes.io/csi/{driver}^{handle}"), driver: Some(driver.to_owned()) }
}
