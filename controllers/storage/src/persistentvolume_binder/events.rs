//! The events about claims and volumes.

use std::borrow::Cow;
use std::fmt::Display;

use kcm_framework::events::{Event, EventText};

/// An event with upstream's reason and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BinderEvent {
    pub(super) is_warning: bool,
    pub(super) reason: &'static str,
    pub(super) message: Cow<'static, str>,
}

impl Event for BinderEvent {
    fn text(&self) -> EventText<'_> {
        if self.is_warning {
            EventText::warning(self.reason, &*self.message)
        } else {
            EventText::normal(self.reason, &*self.message)
        }
    }
}

impl BinderEvent {
    pub(super) fn normal(reason: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { is_warning: false, reason, message: message.into() }
    }

    pub(super) fn warning(reason: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { is_warning: true, reason, message: message.into() }
    }

    pub(super) fn no_volume() -> Self {
        Self::normal("FailedBinding", "no persistent volumes available for this claim and no storage class is set")
    }

    pub(super) fn waits_for_consumer(pods: &[String]) -> Self {
        match pods {
            [] => Self::normal("WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
            [pod] => Self::normal("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled")),
            pods => Self::normal("WaitForPodScheduled", format!("waiting for pods {} to be scheduled", pods.join(","))),
        }
    }

    pub(super) fn cannot_bind(volume: &str, error: &dyn Display) -> Self {
        Self::warning("VolumeMismatch", format!("Cannot bind to requested volume {volume:?}: {error}"))
    }

    pub(super) fn already_bound(volume: &str) -> Self {
        Self::warning("FailedBinding", format!("volume {volume:?} already bound to a different claim."))
    }

    pub(super) fn lost_reference() -> Self {
        Self::warning("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
    }

    pub(super) fn lost_volume() -> Self {
        Self::warning("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
    }

    pub(super) fn misbound() -> Self {
        Self::warning("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
    }

    pub(super) fn mode_mismatch_of_volume(claim: &str) -> Self {
        let message = format!(
            "Cannot bind PersistentVolume to requested PersistentVolumeClaim {claim:?} due to incompatible volumeMode."
        );
        Self::warning("VolumeMismatch", message)
    }

    pub(super) fn mode_mismatch_of_claim(volume: &str) -> Self {
        let message = format!(
            "Cannot bind PersistentVolume {volume:?} to requested PersistentVolumeClaim due to incompatible volumeMode."
        );
        Self::warning("VolumeMismatch", message)
    }

    pub(super) fn provisioning_failed(message: impl Into<Cow<'static, str>>) -> Self {
        Self::warning("ProvisioningFailed", message)
    }

    pub(super) fn external_provisioning(provisioner: &str) -> Self {
        let message = format!(
            "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the \
             system administrator. If volume creation is delayed, please verify that the provisioner is running and \
             correctly registered."
        );
        Self::normal("ExternalProvisioning", message)
    }

    pub(super) fn provisioned(volume: &str, plugin: &str) -> Self {
        Self::normal("ProvisioningSucceeded", format!("Successfully provisioned volume {volume} using {plugin}"))
    }

    pub(super) fn unknown_policy() -> Self {
        Self::warning("VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy")
    }

    pub(super) fn failed_delete(error: &dyn Display) -> Self {
        Self::warning("VolumeFailedDelete", error.to_string())
    }

    pub(super) fn used_by_pods(pods: &[String]) -> Self {
        Self::normal("VolumeFailedRecycle", format!("Volume is used by pods: {}", pods.join(",")))
    }

    pub(super) fn no_recycler() -> Self {
        Self::warning("VolumeFailedRecycle", "No recycler plugin found for the volume!")
    }

    pub(super) fn recycle_failed(error: &dyn Display) -> Self {
        Self::warning("VolumeFailedRecycle", format!("Recycle failed: {error}"))
    }

    pub(super) fn recycled() -> Self {
        Self::normal("VolumeRecycled", "Volume recycled")
    }
}
