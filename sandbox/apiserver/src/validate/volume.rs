//! Volumes of pods, and volume sources.
//!
//! # Upstream
//! `ValidateVolumes` and `validateVolumeSource` of `pkg/apis/core/validation`

use std::collections::BTreeSet;

use super::container::{descending_path, field_ref, no_way_up, resource_field_ref};
use super::field_path::{Errors, FieldPath};
use super::names;
use crate::quantity::Quantity;

/// Checks the volumes of a pod and returns their names.
pub(super) fn all<'a>(spec: &FieldPath<'a, '_>, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut known = BTreeSet::new();
    let list = spec.get("volumes");
    for volume in list.items() {
        let name = volume.get("name");
        source(&volume, spec, errors);
        if name.is_empty() {
            errors.push(name.required(""));
        } else if !kcm_api::name::is_dns_label(name.text()) {
            name.follows(names::label, errors);
        } else if !known.insert(volume.value.get("name").and_then(serde_json::Value::as_str).unwrap_or_default()) {
            errors.push(name.duplicate());
        }
    }
    known
}

/// Sources in the order in which upstream looks for them; others come after.
const ORDER: [&str; 12] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
];

/// The sources of a volume, which has other fields too.
pub(super) fn in_order<'v>(volume: &FieldPath<'v, '_>, no_sources: &[&str]) -> Vec<&'v str> {
    let fields = volume.value.as_object().into_iter().flatten();
    let mut found: Vec<&str> = fields.map(|(field, _)| field.as_str()).filter(|it| !no_sources.contains(it)).collect();
    found.sort_by_key(|field| ORDER.iter().position(|known| known == field).unwrap_or(ORDER.len()));
    found
}

/// Fields of a volume that are not its source.
const NO_SOURCES: [&str; 1] = ["name"];

fn source(volume: &FieldPath<'_, '_>, spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut sources = 0;
    for field in in_order(volume, &NO_SOURCES) {
        let field_path = volume.get(field);
        sources += 1;
        if sources > 1 {
            errors.push(field_path.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        match field {
            "persistentVolumeClaim" => {
                field_path.get("claimName").must_be_set("", errors);
            }
            "configMap" | "secret" => {
                let name = if field == "secret" { "secretName" } else { "name" };
                field_path.get(name).must_be_set("", errors);
                mode(&field_path.get("defaultMode"), errors);
                key_paths(&field_path.get("items"), errors);
            }
            "downwardAPI" => {
                mode(&field_path.get("defaultMode"), errors);
                downward(&field_path, errors);
            }
            "projected" => projected(&field_path, spec, errors),
            _ => of_any_kind(field, &field_path, errors),
        }
    }
}

/// Sources that volumes of pods and of the cluster share.
pub(super) fn of_any_kind(field: &str, field_path: &FieldPath<'_, '_>, errors: &mut Errors) {
    match field {
        "hostPath" => {
            let path = field_path.get("path");
            if path.is_empty() {
                errors.push(path.required(""));
            } else {
                no_way_up(&path, errors);
            }
            let known =
                ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
            field_path.get("type").one_of(&known, errors);
        }
        "emptyDir" => {
            let limit = field_path.get("sizeLimit");
            if Quantity::of(limit.value).is_some_and(Quantity::is_negative) {
                errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
            }
        }
        "nfs" => {
            field_path.must_have(&["server", "path"], errors);
            let path = field_path.get("path");
            if !path.text().starts_with('/') {
                errors.push(path.refused(path.text(), "must be an absolute path"));
            }
        }
        "csi" => field_path.must_have(&["driver"], errors),
        "gcePersistentDisk" => field_path.must_have(&["pdName"], errors),
        "awsElasticBlockStore" | "cinder" => field_path.must_have(&["volumeID"], errors),
        _ => {}
    }
}

fn mode(mode: &FieldPath<'_, '_>, errors: &mut Errors) {
    mode.refuse_number(
        |mode| !(0..=0o777).contains(&mode),
        "must be a number between 0 and 0777 (octal), both inclusive",
        errors,
    );
}

fn key_paths(items: &FieldPath<'_, '_>, errors: &mut Errors) {
    for item in items.items() {
        let (key, path) = (item.get("key"), item.get("path"));
        key.must_be_set("", errors);
        if path.is_empty() {
            errors.push(path.required(""));
        } else {
            descending_path(&path, errors);
        }
        if path.text().starts_with("..") && !path.text().starts_with("../") && path.text() != ".." {
            errors.push(path.invalid("must not start with '..'"));
        }
        mode(&item.get("mode"), errors);
    }
}

const DOWNWARD_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

fn downward(source: &FieldPath<'_, '_>, errors: &mut Errors) {
    for item in source.get("items").items() {
        // Upstream leaves out which of the items it is.
        let path = source.named("path").holding(item.get("path").value);
        if path.is_empty() {
            errors.push(path.required(""));
        } else {
            descending_path(&path, errors);
        }
        let field = source.named("fieldRef").holding(item.get("fieldRef").value);
        let resource = source.named("resourceFieldRef").holding(item.get("resourceFieldRef").value);
        match (field.is_given(), resource.is_given()) {
            (true, true) => {
                errors.push(source.refused("", "fieldRef and resourceFieldRef can not be specified simultaneously"));
            }
            (true, false) => field_ref(&field, &DOWNWARD_FIELDS, errors),
            (false, true) => {
                if resource.get("containerName").is_empty() {
                    errors.push(resource.get("containerName").required(""));
                } else {
                    resource_field_ref(&resource, errors);
                }
            }
            (false, false) => errors.push(source.required("one of fieldRef and resourceFieldRef is required")),
        }
    }
}

fn projected(projected: &FieldPath<'_, '_>, spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    mode(&projected.get("defaultMode"), errors);
    let sources = projected.get("sources");
    for source in sources.items() {
        for field in ["secret", "configMap"] {
            let field_path = source.get(field);
            if field_path.is_given() {
                field_path.get("name").must_be_set("", errors);
                key_paths(&field_path.get("items"), errors);
            }
        }
        let down = source.get("downwardAPI");
        if down.is_given() {
            downward(&down, errors);
        }
        let token = source.get("serviceAccountToken");
        if token.is_given() {
            if spec.get("serviceAccountName").is_empty() {
                errors.push(token.forbidden("must not be specified when serviceAccountName is not set"));
            }
            let seconds = token.get("expirationSeconds");
            seconds.refuse_number(|seconds| seconds < 600, "may not specify a duration less than 10 minutes", errors);
            token.get("path").must_be_set("", errors);
        }
    }
}
