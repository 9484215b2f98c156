//! The changes of volumes and claims, as edits of their JSON. Pure.
//!
//! Each function returns the changed document, or `None` if nothing differs.

use kcm_framework::api::views::{ClaimPhase, PersistentVolume, PersistentVolumeClaim, ReclaimPolicy, VolumePhase};
use kcm_framework::api::{Document, EditError, ResourceQuantity};
use serde_json::json;

use super::plugins::driver_of;
use super::vocabulary::{
    Annotations, BETA_PROVISIONER, BIND_COMPLETED, BOUND_BY_CONTROLLER, EXTERNAL_FINALIZER, IN_TREE_FINALIZER,
    IN_TREE_PREFIX, MIGRATED_TO, PRE_RESIZE_CAPACITY, PROVISIONED_BY, PROVISIONER, SELECTED_NODE, YES, is_bound_to,
    names,
};

/// An edit that cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidEdit {
    #[error(transparent)]
    Document(#[from] EditError),
    /// The message is upstream's.
    #[error("PersistentVolume {0:?} is without a storage capacity")]
    NoCapacity(String),
}

pub(super) type Edit = Result<Option<Document>, InvalidEdit>;

const ANNOTATIONS: [&str; 2] = ["metadata", "annotations"];

fn annotation(key: &str) -> [&str; 3] {
    [ANNOTATIONS[0], ANNOTATIONS[1], key]
}

/// Removes an annotation, and the map if it becomes empty.
fn remove_annotation(document: &mut Document, key: &str) -> Result<(), EditError> {
    let annotations = Annotations::of(document);
    let is_last = annotations.has(key) && annotations.len() == 1;
    if is_last { document.remove(&ANNOTATIONS) } else { document.remove(&annotation(key)) }
}

/// Returns the value of a field, without `null`.
fn field<'a>(document: &'a Document, path: &[&str]) -> Option<&'a str> {
    document.get(path).filter(|value| *value != "null")
}

/// The first write of a binding: the volume references the claim.
///
/// The annotation says that the reference was made here. A volume that was reserved for the claim by its author does not
/// get it.
pub(super) fn bind_volume(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Edit {
    let is_bound = volume.claim.as_ref().is_some_and(|it| names(it, claim) && it.uid == claim.metadata.uid);
    let is_annotated = is_bound_to(volume, claim) || volume.annotation(BOUND_BY_CONTROLLER).is_some();
    if is_bound && is_annotated {
        return Ok(None);
    }
    let mut document = volume.document.clone();
    if !is_bound {
        let meta = &claim.metadata;
        let reference = json!({
            "kind": "PersistentVolumeClaim", "apiVersion": "v1",
            "namespace": meta.key.namespace(), "name": meta.key.name(),
            "uid": meta.uid, "resourceVersion": meta.resource_version,
        });
        document.set(&["spec", "claimRef"], &reference)?;
    }
    if !is_annotated {
        document.set(&annotation(BOUND_BY_CONTROLLER), YES)?;
    }
    Ok(Some(document))
}

/// The phase of a volume, with a message. A message alone is not written.
pub(super) fn volume_phase(document: &Document, now: VolumePhase, phase: VolumePhase, message: &str) -> Edit {
    if now == phase {
        return Ok(None);
    }
    let mut document = document.clone();
    document.set(&["status", "phase"], name_of_volume_phase(phase))?;
    if message.is_empty() {
        document.remove(&["status", "message"])?;
    } else {
        document.set(&["status", "message"], message)?;
    }
    Ok(Some(document))
}

const fn name_of_volume_phase(phase: VolumePhase) -> &'static str {
    match phase {
        VolumePhase::Available => "Available",
        VolumePhase::Bound => "Bound",
        VolumePhase::Released => "Released",
        VolumePhase::Failed => "Failed",
        VolumePhase::Pending | VolumePhase::Other | _ => "Pending",
    }
}

/// The third write of a binding: the claim references the volume.
pub(super) fn bind_claim(claim: &PersistentVolumeClaim, document: &Document, volume: &str) -> Edit {
    let annotations = Annotations::of(document);
    let is_named = *claim.volume_name == *volume;
    let is_completed = annotations.has(BIND_COMPLETED);
    if is_named && is_completed {
        return Ok(None);
    }
    let has_bound_by = annotations.has(BOUND_BY_CONTROLLER);
    let mut changed = document.clone();
    if !is_named {
        changed.set(&["spec", "volumeName"], volume)?;
        if !has_bound_by {
            changed.set(&annotation(BOUND_BY_CONTROLLER), YES)?;
        }
    }
    if !is_completed {
        changed.set(&annotation(BIND_COMPLETED), YES)?;
    }
    Ok(Some(changed))
}

/// The status of a claim that is bound to a volume: the fourth write of a binding.
///
/// Capacity follows the volume only when the phase changes: the kubelet and the resizer own it afterwards.
pub(super) fn bound_status(claim: &PersistentVolumeClaim, document: &Document, volume: &PersistentVolume) -> Edit {
    let mut changed = document.clone();
    let mut differs = false;
    let is_new = claim.phase != ClaimPhase::Bound;
    if is_new {
        changed.set(&["status", "phase"], "Bound")?;
        differs = true;
    }
    let modes = volume.raw(&["spec", "accessModes"]);
    if modes.map(serde_json::value::RawValue::get) != field(document, &["status", "accessModes"]) {
        match modes {
            Some(modes) => changed.set(&["status", "accessModes"], modes)?,
            None => changed.remove(&["status", "accessModes"])?,
        }
        differs = true;
    }
    if is_new {
        differs |= set_capacity(claim, &mut changed, volume)?;
    }
    if claim.phase == ClaimPhase::Pending
        && let Some(class) = volume.volume_attributes_class()
        && claim.current_volume_attributes_class_name.as_deref() != Some(class)
    {
        changed.set(&["status", "currentVolumeAttributesClassName"], class)?;
        differs = true;
    }
    Ok(differs.then_some(changed))
}

fn set_capacity(
    claim: &PersistentVolumeClaim,
    changed: &mut Document,
    volume: &PersistentVolume,
) -> Result<bool, InvalidEdit> {
    let Some(mut capacity) = volume.capacity.get("storage") else {
        return Err(InvalidEdit::NoCapacity(volume.metadata.key.name().to_owned()));
    };
    let before = volume.annotation(PRE_RESIZE_CAPACITY);
    let before = before.and_then(|text| text.parse::<ResourceQuantity>().ok());
    if let Some(before) = before {
        capacity = before;
    }
    if claim.capacity.get("storage") == Some(capacity) {
        return Ok(false);
    }
    match (before, volume.raw(&["spec", "capacity"])) {
        (None, Some(all)) => changed.set(&["status", "capacity"], all)?,
        _ => changed.set(&["status", "capacity"], &json!({ "storage": capacity }))?,
    }
    Ok(true)
}

/// The status of a claim without a volume.
pub(super) fn unbound_status(claim: &PersistentVolumeClaim, document: &Document, phase: ClaimPhase) -> Edit {
    let mut changed = document.clone();
    let mut differs = false;
    if claim.phase != phase {
        changed.set(&["status", "phase"], if phase == ClaimPhase::Lost { "Lost" } else { "Pending" })?;
        differs = true;
    }
    for name in ["accessModes", "capacity", "currentVolumeAttributesClassName"] {
        if field(document, &["status", name]).is_some() {
            changed.remove(&["status", name])?;
            differs = true;
        }
    }
    Ok(differs.then_some(changed))
}

/// Unbinds a volume: a reference that a controller made is removed, and a reference of the author loses its uid.
pub(super) fn unbind_volume(volume: &PersistentVolume) -> Edit {
    if volume.claim.is_none() {
        return Ok(None);
    }
    let mut document = volume.document.clone();
    if volume.annotation(BOUND_BY_CONTROLLER).is_some() {
        document.remove(&["spec", "claimRef"])?;
        remove_annotation(&mut document, BOUND_BY_CONTROLLER)?;
    } else {
        document.remove(&["spec", "claimRef", "uid"])?;
    }
    Ok(Some(document))
}

/// Sets or removes the annotation that names the driver of a migrated provisioner.
fn migrate(document: &mut Document, provisioner: &str) -> Result<bool, EditError> {
    let now = Annotations::of(document).get(MIGRATED_TO).map(str::to_owned);
    match driver_of(provisioner) {
        Some(driver) if now.as_deref() != Some(driver) => document.set(&annotation(MIGRATED_TO), driver)?,
        None if now.is_some_and(|driver| !driver.is_empty()) => remove_annotation(document, MIGRATED_TO)?,
        Some(_) | None => return Ok(false),
    }
    Ok(true)
}

/// The annotation of a claim whose provisioner is migrated.
pub(super) fn claim_migration(document: &Document) -> Edit {
    let annotations = Annotations::of(document);
    let Some(provisioner) = annotations.provisioner().map(str::to_owned) else { return Ok(None) };
    let mut changed = document.clone();
    Ok(migrate(&mut changed, &provisioner)?.then_some(changed))
}

/// The annotation of a volume whose provisioner is migrated, and the finalizers of who deletes it.
///
/// # Upstream
/// `updateMigrationAnnotationsAndFinalizers`. A finalizer is not added to a volume that is being deleted, which the API
/// server refuses.
pub(super) fn volume_migration(volume: &PersistentVolume) -> Edit {
    let Some(provisioner) = volume.annotation(PROVISIONED_BY) else { return Ok(None) };
    let mut changed = volume.document.clone();
    let mut differs = migrate(&mut changed, &provisioner)?;
    let now: Vec<&str> = volume.metadata.finalizers.iter().map(|name| &**name).collect();
    let wanted = finalizers(volume, &provisioner, &now);
    if wanted != now {
        set_finalizers(&mut changed, &wanted)?;
        differs = true;
    }
    Ok(differs.then_some(changed))
}

fn finalizers<'a>(volume: &PersistentVolume, provisioner: &str, now: &[&'a str]) -> Vec<&'a str> {
    let mut wanted = now.to_vec();
    if driver_of(provisioner).is_some() {
        wanted.retain(|name| *name != IN_TREE_FINALIZER);
    } else if provisioner.starts_with(IN_TREE_PREFIX) {
        wanted.retain(|name| *name != EXTERNAL_FINALIZER);
        match volume.reclaim_policy {
            ReclaimPolicy::Delete if !wanted.contains(&IN_TREE_FINALIZER) && !volume.metadata.is_terminating() => {
                wanted.push(IN_TREE_FINALIZER);
            }
            ReclaimPolicy::Retain | ReclaimPolicy::Recycle => wanted.retain(|name| *name != IN_TREE_FINALIZER),
            ReclaimPolicy::Delete | ReclaimPolicy::Other => {}
        }
    }
    wanted
}

fn set_finalizers(document: &mut Document, names: &[&str]) -> Result<(), EditError> {
    if names.is_empty() {
        document.remove(&["metadata", "finalizers"])
    } else {
        document.set(&["metadata", "finalizers"], names)
    }
}

/// Removes the finalizer of this controller from a volume whose storage is deleted.
pub(super) fn without_finalizer(volume: &PersistentVolume) -> Edit {
    let kept: Vec<&str> =
        volume.metadata.finalizers.iter().map(|name| &**name).filter(|name| *name != IN_TREE_FINALIZER).collect();
    if kept.len() == volume.metadata.finalizers.len() {
        return Ok(None);
    }
    let mut document = volume.document.clone();
    set_finalizers(&mut document, &kept)?;
    Ok(Some(document))
}

/// Assigns the default class to a claim without a class.
pub(super) fn claim_class(document: &Document, class: &str) -> Edit {
    let mut changed = document.clone();
    changed.set(&["spec", "storageClassName"], class)?;
    Ok(Some(changed))
}

/// Names the component that provisions a claim, in both annotations.
pub(super) fn claim_provisioner(document: &Document, provisioner: &str) -> Edit {
    if Annotations::of(document).get(PROVISIONER) == Some(provisioner) {
        return Ok(None);
    }
    let mut changed = document.clone();
    changed.set(&annotation(BETA_PROVISIONER), provisioner)?;
    changed.set(&annotation(PROVISIONER), provisioner)?;
    migrate(&mut changed, provisioner)?;
    Ok(Some(changed))
}

/// Asks the scheduler for another node.
pub(super) fn without_selected_node(document: &Document) -> Edit {
    if !Annotations::of(document).has(SELECTED_NODE) {
        return Ok(None);
    }
    let mut changed = document.clone();
    remove_annotation(&mut changed, SELECTED_NODE)?;
    Ok(Some(changed))
}
