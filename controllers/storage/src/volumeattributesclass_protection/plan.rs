//! The plan for a class: its finalizer, and the objects that use it.

use kcm_framework::api::InternedStr;
use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};

use super::view::VolumeAttributesClass;
use crate::shared::protection::{self, Protection};

pub(super) const FINALIZER: &str = "kubernetes.io/vac-protection";

/// The classes that a claim names.
pub(super) fn classes_of_claim(claim: &PersistentVolumeClaim) -> Vec<InternedStr> {
    claim.volume_attributes_classes().map(InternedStr::from).collect()
}

/// The class that a volume names.
pub(super) fn classes_of_volume(volume: &PersistentVolume) -> Vec<InternedStr> {
    volume.volume_attributes_class().map(InternedStr::from).into_iter().collect()
}

/// Plans for the finalizer of a class. `is_used` is asked for terminating classes only.
pub(super) fn plan(class: &VolumeAttributesClass, is_used: impl FnOnce() -> bool) -> Protection {
    protection::plan(&class.metadata, FINALIZER, is_used)
}

/// Explains the plan to operators.
pub(super) const fn explain(protection: Protection) -> &'static str {
    match protection {
        Protection::Keep => "leaves the finalizer as it is",
        Protection::InUse => "keeps the finalizer of the terminating class, which a claim or a volume names",
        Protection::Add => "adds the finalizer, which the class lacks",
        Protection::Remove => "removes the finalizer of the terminating class, which nothing names",
    }
}
