//! Volumes, claims and what provides them.

use serde_json::{Value, json};

use super::default_text;
use crate::json::{at, set, set_default};

pub(super) fn claim(claim: &mut Value) {
    let Some(spec) = claim.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    set_default(spec, &["volumeMode"], "Filesystem");
    // The older field and the newer one say the same; what one of them says is copied.
    let (from, to) = if at(spec, &["dataSource"]).is_some() {
        ("dataSource", "dataSourceRef")
    } else {
        ("dataSourceRef", "dataSource")
    };
    let is_local = |source: &Value| source.get("namespace").is_none();
    if at(spec, &[to]).is_none()
        && let Some(source) = at(spec, &[from]).filter(|source| is_local(source)).cloned()
    {
        set(spec, &[to], Some(source));
    }
}

pub(super) fn volume(volume: &mut Value) {
    let Some(spec) = volume.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    default_text(spec, &["persistentVolumeReclaimPolicy"], "Retain");
    set_default(spec, &["volumeMode"], "Filesystem");
    source(spec);
}

/// Volumes of pods and of the cluster state alike where they come from.
pub(super) fn source(volume: &mut Value) {
    let defaults: [(&str, &[(&str, &str)]); 5] = [
        ("hostPath", &[("type", "")]),
        ("iscsi", &[("iscsiInterface", "default")]),
        ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
        ("azureDisk", &[("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4")]),
        ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
    ];
    for (name, fields) in defaults {
        if let Some(source) = volume.get_mut(name).filter(|source| source.is_object()) {
            for (field, text) in fields {
                set_default(source, &[field], *text);
            }
        }
    }
}

pub(super) fn class(class: &mut Value) {
    set_default(class, &["reclaimPolicy"], "Delete");
    set_default(class, &["volumeBindingMode"], "Immediate");
}

pub(super) fn csi_driver(driver: &mut Value) {
    let Some(spec) = driver.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    set_default(spec, &["attachRequired"], true);
    for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        set_default(spec, &[field], false);
    }
    set_default(spec, &["fsGroupPolicy"], "ReadWriteOnceWithFSType");
    if crate::json::list(spec, &["volumeLifecycleModes"]).is_empty() {
        set(spec, &["volumeLifecycleModes"], Some(json!(["Persistent"])));
    }
}
