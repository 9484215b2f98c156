//! Annotations and finalizers of volumes and claims, and what they mean.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kcm_framework::api::views::{ClaimReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeView};
use kcm_framework::api::{Document, ObjectKey};

/// The claim has been bound once. The value has no meaning.
pub(super) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// A controller has set the reference from claim to volume, or from volume to claim. The value has no meaning.
pub(super) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Plugin or driver that provisioned the volume.
pub(super) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// CSI driver that replaces the plugin of the volume or claim.
pub(super) const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// Plugin or driver that provisions the claim.
pub(super) const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// Older name of [`PROVISIONER`], which is written as well.
pub(super) const BETA_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// Node that the scheduler selected for the Pod of the claim.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Storage class, which takes precedence over the field.
pub(super) const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// Capacity of the claim before its volume was expanded.
pub(super) const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";
/// Finalizer of volumes that this controller deletes.
pub(super) const IN_TREE_FINALIZER: &str = "kubernetes.io/pv-controller";
/// Finalizer of volumes that an external provisioner deletes.
pub(super) const EXTERNAL_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
/// Value of annotations whose presence counts.
pub(super) const YES: &str = "yes";
/// Prefix of the names of plugins that are no external drivers.
pub(super) const IN_TREE_PREFIX: &str = "kubernetes.io/";

/// The annotations of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Annotations<'a>(BTreeMap<Cow<'a, str>, Cow<'a, str>>);

impl<'a> Annotations<'a> {
    pub(super) fn of(document: &'a Document) -> Self {
        Self(document.annotations())
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| &**value)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Returns the value of an annotation that is not empty.
    pub(super) fn filled(&self, key: &str) -> Option<&str> {
        self.get(key).filter(|value| !value.is_empty())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the name of the provisioner that the claim is annotated with.
    pub(super) fn provisioner(&self) -> Option<&str> {
        self.get(PROVISIONER).or_else(|| self.get(BETA_PROVISIONER))
    }
}

/// Returns the storage class of a volume, empty if it has none.
pub(super) fn class_of_volume(volume: &PersistentVolume) -> Box<str> {
    match volume.annotation(BETA_CLASS) {
        Some(class) => class.into(),
        None => (&*volume.storage_class_name).into(),
    }
}

/// Returns the storage class of a claim, empty if it has none.
pub(super) fn class_of_claim(claim: &PersistentVolumeClaim) -> &str {
    claim.storage_class().unwrap_or_default()
}

/// Returns `true` if the claim names a storage class, which may be the empty one.
pub(super) fn names_class(claim: &PersistentVolumeClaim) -> bool {
    claim.storage_class_name.is_some() || claim.metadata.annotations.get(BETA_CLASS).is_some()
}

/// Returns the key of the claim that a volume references.
pub(super) fn claim_key(reference: &ClaimReference) -> ObjectKey {
    ObjectKey::namespaced(reference.namespace.to_string(), reference.name.to_string())
}

/// Returns the key of a volume.
pub(super) fn volume_key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name)
}

/// Returns `true` if the volume is bound to the claim, or reserved for a claim of its name.
pub(super) fn is_bound_to(volume: &PersistentVolumeView, claim: &PersistentVolumeClaim) -> bool {
    volume.claim.as_ref().is_some_and(|reference| {
        names(reference, claim) && (reference.uid.is_unset() || reference.uid == claim.metadata.uid)
    })
}

/// Returns `true` if the reference has the namespace and the name of the claim.
pub(super) fn names(reference: &ClaimReference, claim: &PersistentVolumeClaim) -> bool {
    let key = &claim.metadata.key;
    Some(&*reference.namespace) == key.namespace() && *reference.name == *key.name()
}

/// Returns `true` if the volume references a claim by its uid.
pub(super) fn has_claim_uid(volume: &PersistentVolumeView) -> bool {
    volume.claim.as_ref().is_some_and(|reference| !reference.uid.is_unset())
}
