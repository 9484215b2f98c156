//! Volumes, their claims and classes.

use serde_json::Value;

use super::column::{AGE, Column, NAME, boolean, integer, text};
use super::phrase::{self, NONE, UNSET, or, text_of};
use super::{Columns, PLAIN};

pub(super) fn of(plural: &str) -> Columns {
    match plural {
        "persistentvolumes" => PERSISTENT_VOLUMES,
        "persistentvolumeclaims" => PERSISTENT_VOLUME_CLAIMS,
        "storageclasses" => STORAGE_CLASSES,
        "volumeattributesclasses" => VOLUME_ATTRIBUTES_CLASSES,
        "volumeattachments" => VOLUME_ATTACHMENTS,
        "csidrivers" => CSI_DRIVERS,
        "csinodes" => CSI_NODES,
        _ => PLAIN,
    }
}

const PERSISTENT_VOLUMES: Columns = &[
    NAME,
    text("Capacity", "How much the volume holds.", |row| phrase::amount(row.at("/spec/capacity"), "storage").into()),
    text("Access Modes", "How the volume can be mounted.", |row| access_modes(row.list("/spec/accessModes")).into()),
    text("Reclaim Policy", "What becomes of the volume without its claim.", |row| {
        row.text("/spec/persistentVolumeReclaimPolicy")
    }),
    STATUS,
    text("Claim", "The claim that the volume is bound to.", |row| match row.at("/spec/claimRef") {
        None => "".into(),
        Some(claim) => format!("{}/{}", text_of(claim, "namespace"), text_of(claim, "name")).into(),
    }),
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
    text("Reason", "Why the volume is in its state.", |row| row.text("/status/reason")),
    AGE,
    VOLUME_MODE,
];

const PERSISTENT_VOLUME_CLAIMS: Columns = &[
    NAME,
    STATUS,
    text("Volume", "The volume that the claim is bound to.", |row| row.text("/spec/volumeName")),
    text("Capacity", "How much the volume holds.", |row| match row.str("/spec/volumeName") {
        None | Some("") => "".into(),
        Some(_) => phrase::amount(row.at("/status/capacity"), "storage").into(),
    }),
    text("Access Modes", "How the volume can be mounted.", |row| match row.str("/spec/volumeName") {
        None | Some("") => "".into(),
        Some(_) => access_modes(row.list("/status/accessModes")).into(),
    }),
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
];

const STATUS: Column = text("Status", "The phase, or that the object is being deleted.", |row| {
    if row.is_terminating() { "Terminating".into() } else { row.text("/status/phase") }
});
const STORAGE_CLASS: Column = text("StorageClass", "The class of the storage.", |row| {
    let annotation = row.str("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    annotation.or_else(|| row.str("/spec/storageClassName")).unwrap_or_default().into()
});
const VOLUME_ATTRIBUTES_CLASS: Column = text("VolumeAttributesClass", "The class of the attributes.", |row| {
    row.text_or("/spec/volumeAttributesClassName", UNSET)
});
const VOLUME_MODE: Column =
    text("VolumeMode", "A file system or a block device.", |row| row.text_or("/spec/volumeMode", UNSET)).wide();

const STORAGE_CLASSES: Columns = &[
    text("Name", "Name of the class.", |row| {
        row.name_of_default(&[
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ])
    })
    .named(),
    text("Provisioner", "Who makes the volumes.", |row| row.text("/provisioner")),
    text("ReclaimPolicy", "What becomes of volumes without their claims.", |row| {
        row.text_or("/reclaimPolicy", "Delete")
    }),
    text("VolumeBindingMode", "When claims are bound.", |row| row.text_or("/volumeBindingMode", "Immediate")),
    text("AllowVolumeExpansion", "Whether claims may grow.", |row| row.flag("/allowVolumeExpansion").into()),
    AGE,
];

const VOLUME_ATTRIBUTES_CLASSES: Columns =
    &[NAME, text("DriverName", "The driver of the volumes.", |row| row.text("/driverName")), AGE];

const VOLUME_ATTACHMENTS: Columns = &[
    NAME,
    text("Attacher", "Who attaches the volume.", |row| row.text("/spec/attacher")).named(),
    text("PV", "The volume.", |row| row.text("/spec/source/persistentVolumeName")),
    text("Node", "The node.", |row| row.text("/spec/nodeName")),
    boolean("Attached", "Whether the volume is attached.", |row| row.flag("/status/attached").into()),
    AGE,
];

const CSI_DRIVERS: Columns = &[
    NAME,
    boolean("AttachRequired", "Whether volumes are attached.", |row| {
        row.at("/spec/attachRequired").and_then(Value::as_bool).unwrap_or(true).into()
    }),
    boolean("PodInfoOnMount", "Whether mounts tell of their pod.", |row| row.flag("/spec/podInfoOnMount").into()),
    boolean("StorageCapacity", "Whether capacity is reported.", |row| row.flag("/spec/storageCapacity").into()),
    text("TokenRequests", "Audiences of the tokens that mounts get.", |row| match row.at("/spec/tokenRequests") {
        None => UNSET.into(),
        Some(_) => row.joined("/spec/tokenRequests", "audience"),
    }),
    boolean("RequiresRepublish", "Whether mounts are renewed.", |row| row.flag("/spec/requiresRepublish").into()),
    text("Modes", "The lives that volumes can have.", |row| {
        let modes: Vec<&str> = row.list("/spec/volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
        or(&modes.join(","), NONE).into()
    }),
    AGE,
];

const CSI_NODES: Columns =
    &[NAME, integer("Drivers", "Drivers that the node has.", |row| row.count("/spec/drivers")), AGE];

fn access_modes(modes: &[Value]) -> String {
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let given = short.into_iter().filter(|(mode, _)| modes.iter().any(|given| given == mode));
    given.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}
