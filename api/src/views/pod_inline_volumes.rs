//! The volumes that pods describe themselves.

use serde_json::{Map, Value};

use crate::intern::InternedStr;
use crate::protobuf::{Field, Kind, Message};

const GCE_DISK: &Message =
    &[Field::text(1, "pdName"), Field::text(2, "fsType"), Field::integer(3, "partition"), Field::flag(4, "readOnly")];
const EBS: &Message =
    &[Field::text(1, "volumeID"), Field::text(2, "fsType"), Field::integer(3, "partition"), Field::flag(4, "readOnly")];
const ISCSI: &Message = &[Field::text(1, "targetPortal"), Field::text(2, "iqn"), Field::integer(3, "lun")];
const FLEX: &Message = &[Field::text(1, "driver")];
const CINDER: &Message = &[Field::text(1, "volumeID"), Field::text(2, "fsType"), Field::flag(3, "readOnly")];
const FIBRE_CHANNEL: &Message =
    &[Field::strings(1, "targetWWNs"), Field::integer(2, "lun"), Field::strings(5, "wwids")];
const AZURE_FILE: &Message = &[Field::text(1, "secretName"), Field::text(2, "shareName"), Field::flag(3, "readOnly")];
const VSPHERE: &Message =
    &[Field::text(1, "volumePath"), Field::text(2, "fsType"), Field::text(3, "storagePolicyName")];
const AZURE_DISK: &Message = &[
    Field::text(2, "diskURI"),
    Field::text(3, "cachingMode"),
    Field::text(4, "fsType"),
    Field::flag(5, "readOnly"),
    Field::text(6, "kind"),
];
const PORTWORX: &Message = &[Field::text(1, "volumeID"), Field::text(2, "fsType"), Field::flag(3, "readOnly")];
const CSI: &Message = &[Field::text(1, "driver")];

crate::message! {
    /// The volumes that a pod describes itself and that some plugin attaches to nodes.
    pub struct PodInlineVolumes {
        "spec" @ 2 {
            let volumes: Vec<InlineVolume> = "volumes" @ 1;
            // Pods of one template have the same volumes.
            /// JSON of each volume, in order: its name, and its source without the fields that attaching does not read.
            /// Fields with the value zero are left out, except for the LUN of a Fibre Channel volume.
            pub volumes: Box<[InternedStr]> = volumes.into_iter().filter_map(|volume| volume.json).collect();
        }
    }
}

crate::message! {
    struct InlineVolume {
        let name: Box<str> = "name" @ 1;
        "" @ 2 {
            let gce_disk: Value = "gcePersistentDisk" @ 3 as Kind::One(GCE_DISK);
            let ebs: Value = "awsElasticBlockStore" @ 4 as Kind::One(EBS);
            let iscsi: Value = "iscsi" @ 8 as Kind::One(ISCSI);
            let flex: Value = "flexVolume" @ 12 as Kind::One(FLEX);
            let cinder: Value = "cinder" @ 13 as Kind::One(CINDER);
            let fc: Value = "fc" @ 17 as Kind::One(FIBRE_CHANNEL);
            let azure_file: Value = "azureFile" @ 18 as Kind::One(AZURE_FILE);
            let vsphere: Value = "vsphereVolume" @ 20 as Kind::One(VSPHERE);
            let azure_disk: Value = "azureDisk" @ 22 as Kind::One(AZURE_DISK);
            let portworx: Value = "portworxVolume" @ 24 as Kind::One(PORTWORX);
            let csi: Value = "csi" @ 28 as Kind::One(CSI);
        }
        json: Option<InternedStr> = json(&name, [
            ("gcePersistentDisk", gce_disk, GCE_DISK),
            ("awsElasticBlockStore", ebs, EBS),
            ("iscsi", iscsi, ISCSI),
            ("flexVolume", flex, FLEX),
            ("cinder", cinder, CINDER),
            ("fc", fc, FIBRE_CHANNEL),
            ("azureFile", azure_file, AZURE_FILE),
            ("vsphereVolume", vsphere, VSPHERE),
            ("azureDisk", azure_disk, AZURE_DISK),
            ("portworxVolume", portworx, PORTWORX),
            ("csi", csi, CSI),
        ]);
    }
}

/// Returns the JSON of a volume, or `None` if it has none of the sources.
fn json<const N: usize>(name: &str, sources: [(&str, Value, &Message); N]) -> Option<InternedStr> {
    let mut volume = Map::new();
    for (source, value, fields) in sources {
        if let Value::Object(value) = value {
            volume.insert(source.to_owned(), Value::Object(known(source, value, fields)));
        }
    }
    if volume.is_empty() {
        return None;
    }
    volume.insert("name".to_owned(), name.into());
    Some(Value::Object(volume).to_string().as_str().into())
}

/// Keeps the fields of a source that have a value. Protobuf has zeros that JSON leaves out.
fn known(source: &str, value: Map<String, Value>, fields: &Message) -> Map<String, Value> {
    let has_value = |key: &str, value: &Value| match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        // The number zero is a LUN, and a Fibre Channel volume without LUN is another volume.
        Value::Number(number) => source == "fc" && key == "lun" || number.as_i64() != Some(0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(_) => true,
    };
    let is_known = |key: &str| fields.iter().any(|field| field.name == key);
    value.into_iter().filter(|(key, value)| is_known(key) && has_value(key, value)).collect()
}
