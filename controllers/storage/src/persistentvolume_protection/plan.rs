//! The plan for a volume: its finalizer.

use kcm_framework::api::views::{PersistentVolume, VolumePhase};

use crate::shared::protection::{self, Protection};

pub(super) const FINALIZER: &str = "kubernetes.io/pv-protection";

/// Plans for the finalizer of a volume, which is used while its phase is `Bound`.
pub(super) fn plan(volume: &PersistentVolume) -> Protection {
    protection::plan(&volume.metadata, FINALIZER, || volume.phase == VolumePhase::Bound)
}

/// Explains the plan to operators.
pub(super) const fn explain(protection: Protection) -> &'static str {
    match protection {
        Protection::Keep => "leaves the finalizer as it is",
        Protection::InUse => "keeps the finalizer of the terminating volume, whose phase is Bound",
        Protection::Add => "adds the finalizer, which the volume lacks",
        Protection::Remove => "removes the finalizer of the terminating volume, whose phase is not Bound",
    }
}
