//! The volume plugins of this controller, and who provisions and deletes a volume.

use kcm_framework::api::views::PersistentVolume;

use super::vocabulary::{Annotations, IN_TREE_PREFIX, MIGRATED_TO, PROVISIONED_BY};
use crate::shared::migration::MIGRATIONS;

/// A plugin that this controller runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plugin {
    /// Directories of the host.
    HostPath,
    /// Exports of NFS servers.
    Nfs,
}

/// Returns the CSI driver that replaces a plugin, or `None` if the plugin is not migrated.
pub(super) fn driver_of(plugin: &str) -> Option<&'static str> {
    MIGRATIONS.iter().find(|migration| migration.plugin == plugin).map(|migration| migration.driver)
}

/// No plugin can do what is asked for. The message is upstream's, because events and statuses have it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoPlugin {
    #[error("no volume plugin matched name: {0}")]
    Unknown(String),
    #[error("no volume plugin matched")]
    Unsupported,
    #[error("no provisionable volume plugin matched")]
    NotProvisionable,
    #[error("no deletable volume plugin matched")]
    NotDeletable,
    #[error("error getting deleter volume plugin for volume {volume:?}: {cause}")]
    Deleter { volume: String, cause: Box<NoPlugin> },
}

/// The component that acts on a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor<'a> {
    /// This controller, with its host path plugin.
    HostPath,
    /// An external driver of that name.
    External(&'a str),
}

impl Plugin {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::HostPath => "kubernetes.io/host-path",
            Self::Nfs => "kubernetes.io/nfs",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::HostPath, Self::Nfs].into_iter().find(|plugin| plugin.name() == name)
    }

    /// Returns the plugin that supports the source of the volume.
    pub(super) fn of_source(volume: &PersistentVolume) -> Option<Self> {
        let has = |source: &str| volume.document.get(&["spec", source]).is_some_and(|value| value != "null");
        if has("hostPath") {
            Some(Self::HostPath)
        } else if has("nfs") {
            Some(Self::Nfs)
        } else {
            None
        }
    }
}

/// Returns the component that provisions volumes of classes with this provisioner.
pub(super) fn provisioner(name: &str) -> Result<Actor<'_>, NoPlugin> {
    if let Some(driver) = driver_of(name) {
        return Ok(Actor::External(driver));
    }
    match Plugin::named(name) {
        Some(Plugin::HostPath) => Ok(Actor::HostPath),
        Some(Plugin::Nfs) => Err(NoPlugin::NotProvisionable),
        None if name.starts_with(IN_TREE_PREFIX) => Err(NoPlugin::Unknown(name.to_owned())),
        None => Ok(Actor::External(name)),
    }
}

/// Returns the component that deletes the storage of a volume.
pub(super) fn deleter<'a>(volume: &PersistentVolume, annotations: &'a Annotations<'_>) -> Result<Actor<'a>, NoPlugin> {
    if let Some(name) = annotations.filled(PROVISIONED_BY) {
        return match Plugin::named(name) {
            Some(Plugin::HostPath) => Ok(Actor::HostPath),
            Some(Plugin::Nfs) => Err(NoPlugin::NotDeletable),
            None if name.starts_with(IN_TREE_PREFIX) => Err(NoPlugin::Unknown(name.to_owned())),
            None => Ok(Actor::External(name)),
        };
    }
    if let Some(driver) = annotations.get(MIGRATED_TO) {
        return Ok(Actor::External(driver));
    }
    if volume.document.get(&["spec", "csi"]).is_some_and(|value| value != "null") {
        return Ok(Actor::External("kubernetes.io/csi"));
    }
    let cause = match Plugin::of_source(volume) {
        Some(Plugin::HostPath) => return Ok(Actor::HostPath),
        Some(Plugin::Nfs) => NoPlugin::NotDeletable,
        None => NoPlugin::Unsupported,
    };
    Err(NoPlugin::Deleter { volume: volume.metadata.key.name().to_owned(), cause: Box::new(cause) })
}
