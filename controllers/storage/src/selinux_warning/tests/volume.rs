//! SE-5: names of storage.

use kcm_framework::api::View as _;
use kcm_framework::api::views::PersistentVolume;
use serde_json::{Value, json};

use crate::selinux_warning::volume::{Storage, of_pod, persistent};

type Expected = Option<(&'static str, Option<&'static str>)>;

fn storage(expected: Expected) -> Option<Storage> {
    expected.map(|(name, driver)| Storage { name: name.to_owned(), driver: driver.map(str::to_owned) })
}

fn cases() -> Vec<(&'static str, Value, Expected, Expected)> {
    let ebs = Some(("kubernetes.io/csi/ebs.csi.aws.com^vol-1", Some("ebs.csi.aws.com")));
    let iscsi = Some(("kubernetes.io/iscsi/192.0.2.1:3260:iqn.2001-04.com.example:disk:3", None));
    let csi = Some(("kubernetes.io/csi/csi.example.com^1", Some("csi.example.com")));
    vec![
        ("CSI", json!({ "csi": { "driver": "csi.example.com", "volumeHandle": "1" } }), csi, None),
        ("a migrated plugin", json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } }), ebs, ebs),
        (
            "iSCSI",
            json!({ "iscsi": { "targetPortal": "192.0.2.1:3260", "iqn": "iqn.2001-04.com.example:disk", "lun": 3 } }),
            iscsi,
            iscsi,
        ),
        (
            "Fibre Channel by WWN",
            json!({ "fc": { "targetWWNs": ["1", "2"], "lun": 0, "wwids": ["3"] } }),
            Some(("kubernetes.io/fc/[1 2]:0", None)),
            Some(("kubernetes.io/fc/[1 2]:0", None)),
        ),
        (
            "Fibre Channel by WWID",
            json!({ "fc": { "targetWWNs": ["1"], "wwids": ["3", "4"] } }),
            Some(("kubernetes.io/fc/[3 4]", None)),
            Some(("kubernetes.io/fc/[3 4]", None)),
        ),
        ("Fibre Channel without identity", json!({ "fc": {} }), None, None),
        ("a host path", json!({ "hostPath": { "path": "/tmp" } }), None, None),
        ("NFS", json!({ "nfs": { "server": "a", "path": "/" } }), None, None),
        ("no source", json!({}), None, None),
    ]
}

#[test]
fn se_5_equal_storage_has_one_name() {
    for (name, source, of_volume, inline) in cases() {
        let volume = json!({ "metadata": { "name": "pv" }, "spec": source }).to_string();
        let volume = PersistentVolume::decode(&volume).unwrap();
        assert_eq!(persistent(&volume).unwrap(), storage(of_volume), "{name}");
        assert_eq!(of_pod(&source.to_string(), "shop").unwrap(), storage(inline), "{name} of a pod");
    }
}

#[test]
fn ct_5_a_source_that_cannot_be_translated_is_an_error() {
    let source = json!({ "azureDisk": { "diskURI": "/disk", "kind": "Dedicated" } });
    assert!(of_pod(&source.to_string(), "shop").is_err());
}
