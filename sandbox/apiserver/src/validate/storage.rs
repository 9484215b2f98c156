//! Volumes, claims and storage classes.
//!
//! # Upstream
//! `ValidatePersistentVolume` and `ValidatePersistentVolumeClaim` of `pkg/apis/core/validation`,
//! `pkg/apis/storage/validation`. The differences of internal types that follow some messages there are left out.

use serde_json::Value;

use super::field_path::{Errors, FieldPath, IMMUTABLE, declared_immutable};
use super::{go_format, names, selector, volume};
use crate::json::{at, set, text};
use crate::quantity::Quantity;
use crate::status::FieldError;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

fn access_modes(modes: &FieldPath<'_, '_>, errors: &mut Errors) {
    for mode in modes.list() {
        if !ACCESS_MODES.contains(&mode.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported(modes.to_string(), mode.clone(), &ACCESS_MODES));
        }
    }
    if modes.list().len() > 1 && modes.list().iter().any(|mode| mode == "ReadWriteOncePod") {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

fn positive(amount: &FieldPath<'_, '_>, errors: &mut Errors) {
    if let Some(quantity) = Quantity::of(amount.value).filter(|it| it.is_negative() || it.is_zero()) {
        errors.push(amount.refused(quantity.to_string(), "must be greater than zero"));
    }
}

fn class_name(name: &FieldPath<'_, '_>, errors: &mut Errors) {
    name.may_follow(names::subdomain, errors);
}

/// Checks the spec of a persistent volume claim.
pub(super) fn claim(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let modes = spec.get("accessModes");
    modes.must_be_set("at least 1 access mode is required", errors);
    selector::check(&spec.get("selector"), errors);
    access_modes(&modes, errors);
    let requests = spec.get("resources.requests");
    let storage = requests.key("storage");
    let resources = spec.get("resources");
    let shown = resources.key("storage").holding(storage.value);
    if shown.is_absent() {
        errors.push(shown.required(""));
    } else {
        positive(&shown, errors);
    }
    class_name(&spec.get("storageClassName"), errors);
    spec.get("volumeMode").one_of(&["Block", "Filesystem"], errors);
}

pub(super) fn claim_change(old: &Value, new: &Value, errors: &mut Errors) {
    let bound = text(old, &["status", "phase"]) == Some("Bound");
    let named_now = text(old, &["spec", "volumeName"]).unwrap_or_default().is_empty();
    let unclassed = at(old, &["spec", "storageClassName"]).is_none();
    let fixed = |claim: &Value| {
        let mut spec = claim.get("spec").cloned().unwrap_or_default();
        if named_now {
            set(&mut spec, &["volumeName"], None);
        }
        if unclassed {
            set(&mut spec, &["storageClassName"], None);
        }
        if bound {
            set(&mut spec, &["resources", "requests", "storage"], None);
            set(&mut spec, &["volumeAttributesClassName"], None);
        }
        spec
    };
    let root = FieldPath::root(new);
    let spec = root.get("spec");
    if fixed(old) != fixed(new) {
        errors.push(spec.forbidden(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ));
    } else if bound {
        let amount = |claim: &Value| at(claim, &["spec", "resources", "requests", "storage"]).and_then(Quantity::of);
        if let (Some(before), Some(after)) = (amount(old), amount(new))
            && after.compare(before).is_lt()
            && at(old, &["status", "capacity", "storage"])
                .and_then(Quantity::of)
                .is_none_or(|now| after.compare(now).is_le())
        {
            errors.push(spec.get("resources.requests.storage").forbidden("field can not be less than status.capacity"));
        }
    }
    volume_mode_change(old, new, errors);
}

fn volume_mode_change(old: &Value, new: &Value, errors: &mut Errors) {
    let root = FieldPath::root(new);
    let mode = root.get("spec.volumeMode");
    if at(old, &["spec", "volumeMode"]) != Some(mode.value) {
        errors.push(root.named("volumeMode").refused(mode.value.clone(), IMMUTABLE));
    }
}

/// The fields of a volume that are not its source.
const NO_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(super) fn volume(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (modes, capacity) = (spec.get("accessModes"), spec.get("capacity"));
    modes.must_be_set("", errors);
    access_modes(&modes, errors);
    capacity.must_be_set("", errors);
    if capacity.key("storage").is_absent() || capacity.entries().count() > 1 {
        let shown = if capacity.is_absent() { serde_json::json!({}) } else { capacity.value.clone() };
        errors.push(FieldError::not_supported(capacity.to_string(), shown, &["storage"]));
    }
    for (_, amount) in capacity.entries() {
        positive(&amount, errors);
    }
    let mut sources = 0;
    for field in volume::in_order(&spec, &NO_SOURCES) {
        sources += 1;
        if sources > 1 {
            errors.push(spec.get(field).forbidden("may not specify more than 1 volume type"));
        } else {
            volume::of_any_kind(field, &spec.get(field), errors);
        }
    }
    if sources == 0 {
        errors.push(spec.required("must specify a volume type"));
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    policy.one_of(&["Delete", "Recycle", "Retain"], errors);
    if spec.get("hostPath.path").text() == "/" && policy.text() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    class_name(&spec.get("storageClassName"), errors);
    spec.get("volumeMode").one_of(&["Block", "Filesystem"], errors);
    let nodes = spec.get("nodeAffinity.required");
    if nodes.is_given() {
        super::scheduling::node_selector(&nodes, errors);
    }
}

pub(super) fn volume_change(old: &Value, new: &Value, errors: &mut Errors) {
    let source = |volume: &Value| {
        let mut spec = volume.get("spec").cloned().unwrap_or_default();
        for field in NO_SOURCES {
            set(&mut spec, &[field], None);
        }
        spec
    };
    if source(old) != source(new) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", detail));
    }
    volume_mode_change(old, new, errors);
}

pub(super) fn class(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let provisioner = object.get("provisioner");
    if provisioner.is_empty() {
        errors.push(provisioner.required(""));
    } else {
        errors.extend(
            names::qualified(&provisioner.text().to_lowercase())
                .into_iter()
                .map(|problem| provisioner.invalid(problem)),
        );
    }
    let parameters = object.get("parameters");
    for (key, _) in parameters.entries() {
        if key.is_empty() {
            errors.push(parameters.refused("", "field can not be empty."));
        }
    }
    object.get("reclaimPolicy").one_of(&["Delete", "Retain"], errors);
    object.get("volumeBindingMode").one_of(&["Immediate", "WaitForFirstConsumer"], errors);
}

pub(super) fn class_change(old: &Value, new: &Value, errors: &mut Errors) {
    for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
        declared_immutable(old, new, field, errors);
    }
}

pub(super) fn driver_change(old: &Value, new: &Value, errors: &mut Errors) {
    let root = FieldPath::root(new);
    // Upstream misspells the first.
    for (field, shown) in [
        ("spec.attachRequired", "spec.attachedRequired"),
        ("spec.fsGroupPolicy", "spec.fsGroupPolicy"),
        ("spec.volumeLifecycleModes", "spec.volumeLifecycleModes"),
    ] {
        let before = FieldPath::root(old);
        if before.get(field).value != root.get(field).value {
            let text = go_format::json(root.get(field).value);
            errors.push(FieldError::invalid_shown(shown, text, IMMUTABLE));
        }
    }
}
