use kcm_framework::api::View as _;
use kcm_framework::api::views::PersistentVolume;
use serde_json::{Value, json};

use super::super::volume::{of_pod, persistent};

#[test]
fn ad_16_persistent_volumes() {
    let csi = json!({ "driver": "d", "volumeHandle": "h" });
    for (name, spec, expected) in [
        ("CSI, no modes", json!({ "csi": csi }), Some(("kubernetes.io/csi/d^h", true))),
        ("RWO", json!({ "csi": csi, "accessModes": ["ReadWriteOnce"] }), Some(("kubernetes.io/csi/d^h", false))),
        ("RWOP", json!({ "csi": csi, "accessModes": ["ReadWriteOncePod"] }), Some(("kubernetes.io/csi/d^h", false))),
        (
            "RWO and RWX",
            json!({ "csi": csi, "accessModes": ["ReadWriteOnce", "ReadWriteMany"] }),
            Some(("kubernetes.io/csi/d^h", true)),
        ),
        ("ROX", json!({ "csi": csi, "accessModes": ["ReadOnlyMany"] }), Some(("kubernetes.io/csi/d^h", true))),
        (
            "FC",
            json!({ "fc": { "targetWWNs": ["a"], "lun": 1 }, "accessModes": ["ReadWriteOnce"] }),
            Some(("kubernetes.io/fc/[a]:1", false)),
        ),
        (
            "iSCSI",
            json!({ "iscsi": { "targetPortal": "p", "iqn": "i", "lun": 0 } }),
            Some(("kubernetes.io/iscsi/p:i:0", true)),
        ),
        (
            "migrated: a GCE disk for many writers has one",
            json!({ "gcePersistentDisk": { "pdName": "d" }, "accessModes": ["ReadWriteMany"] }),
            Some(("kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", false)),
        ),
        ("FC without name", json!({ "fc": {} }), None),
        ("NFS", json!({ "nfs": { "server": "s", "path": "/" } }), None),
        ("no source", json!({}), None),
    ] {
        let object = json!({ "metadata": { "name": "pv" }, "spec": spec });
        let volume = persistent(&PersistentVolume::decode(&object.to_string()).unwrap()).unwrap();
        let found = volume.as_ref().map(|volume| (volume.unique_name.as_str(), volume.is_shared));
        assert_eq!(found, expected, "{name}");
        if let Some(volume) = volume {
            assert_eq!((volume.spec_name.as_str(), volume.inline), ("pv", None), "{name}");
        }
    }
}

#[test]
fn ad_4_ad_16_volumes_of_pods() {
    let check = |name: &str, volume: Value, expected: Option<(&str, &str, bool, bool)>| {
        let volume = of_pod(&volume.to_string(), "ns").unwrap();
        let found = volume.as_ref().map(|volume| {
            (volume.unique_name.as_str(), volume.spec_name.as_str(), volume.is_shared, volume.inline.is_some())
        });
        assert_eq!(found, expected, "{name}");
    };
    check("FC", json!({ "name": "v", "fc": { "wwids": ["w"] } }), Some(("kubernetes.io/fc/[w]", "v", true, false)));
    check(
        "translated",
        json!({ "name": "v", "cinder": { "volumeID": "id" } }),
        Some(("kubernetes.io/csi/cinder.csi.openstack.org^id", "cinder.csi.openstack.org-id", false, true)),
    );
    check("PL-8: the kubelet serves inline CSI", json!({ "name": "v", "csi": { "driver": "d" } }), None);
    check("empty dir", json!({ "name": "v", "emptyDir": {} }), None);
}
