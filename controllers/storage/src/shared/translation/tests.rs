use kcm_framework::api::View as _;
use serde_json::{Value, json};

use super::*;

fn persistent(object: &Value) -> Result<Option<Translated>, TranslationError> {
    volume(&PersistentVolume::decode(&object.to_string()).unwrap())
}

/// Translates a persistent volume named `pv` with this spec.
fn spec(spec: &Value) -> Value {
    let translated = persistent(&json!({ "metadata": { "name": "pv" }, "spec": spec })).unwrap().unwrap();
    assert_eq!(translated.name, "pv");
    serde_json::to_value(translated.spec).unwrap()
}

fn of_pod(volume: &Value, namespace: &str) -> (String, Value) {
    let translated = inline(&volume.to_string(), namespace).unwrap().unwrap();
    (translated.name, serde_json::to_value(translated.spec).unwrap())
}

#[test]
fn ct_persistent_volumes() {
    for (name, source, expected) in [
        (
            "EBS",
            json!({ "awsElasticBlockStore": { "volumeID": "vol-1", "fsType": "ext4", "readOnly": true, "partition": 2 } }),
            json!({ "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "readOnly": true, "fsType": "ext4",
                "volumeAttributes": { "partition": "2" } }),
        ),
        (
            "EBS without partition",
            json!({ "awsElasticBlockStore": { "volumeID": "aws://us-west-2a/vol-1" } }),
            json!({ "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "volumeAttributes": { "partition": "0" } }),
        ),
        (
            "GCE",
            json!({ "gcePersistentDisk": { "pdName": "disk", "fsType": "ext4", "partition": 3 } }),
            json!({ "driver": "pd.csi.storage.gke.io", "fsType": "ext4", "volumeAttributes": { "partition": "3" },
                "volumeHandle": "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk" }),
        ),
        (
            "GCE without partition",
            json!({ "gcePersistentDisk": { "pdName": "disk", "readOnly": true } }),
            json!({ "driver": "pd.csi.storage.gke.io", "readOnly": true, "volumeAttributes": { "partition": "" },
                "volumeHandle": "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk" }),
        ),
        (
            "Cinder drops the secret",
            json!({ "cinder": { "volumeID": "id", "fsType": "ext4", "secretRef": { "name": "s" } } }),
            json!({ "driver": "cinder.csi.openstack.org", "volumeHandle": "id", "fsType": "ext4" }),
        ),
        (
            "Azure disk",
            json!({ "azureDisk": { "diskName": "d", "diskURI": "uri", "kind": "managed", "cachingMode": "ReadOnly",
                "fsType": "xfs", "readOnly": true } }),
            json!({ "driver": "disk.csi.azure.com", "volumeHandle": "uri", "readOnly": true, "fsType": "xfs",
                "volumeAttributes": { "kind": "Managed", "cachingmode": "ReadOnly", "fstype": "xfs" } }),
        ),
        (
            "Azure disk with an empty caching mode",
            json!({ "azureDisk": { "diskURI": "uri", "cachingMode": "" } }),
            json!({ "driver": "disk.csi.azure.com", "volumeHandle": "uri",
                "volumeAttributes": { "kind": "Managed", "cachingmode": "" } }),
        ),
        (
            "vSphere drops read-only",
            json!({ "vsphereVolume": { "volumePath": "[ds] a.vmdk", "fsType": "ext4", "storagePolicyName": "gold" } }),
            json!({ "driver": "csi.vsphere.vmware.com", "volumeHandle": "[ds] a.vmdk", "fsType": "ext4",
                "volumeAttributes": { "storagepolicyname": "gold" } }),
        ),
        (
            "Portworx drops read-only",
            json!({ "portworxVolume": { "volumeID": "id", "fsType": "ext4", "readOnly": true } }),
            json!({ "driver": "pxd.portworx.com", "volumeHandle": "id", "fsType": "ext4" }),
        ),
    ] {
        assert_eq!(spec(&source), json!({ "csi": expected }), "{name}");
    }
}

#[test]
fn ct_azure_file_handles() {
    let share = |namespace: &Value| {
        json!({ "secretName": "azure-storage-account-acc-secret", "shareName": "share", "secretNamespace": namespace,
            "readOnly": true })
    };
    for (name, namespace, claim, group, expected) in [
        ("namespace of the source", json!("ns"), json!({ "namespace": "other" }), None, "#acc#share#pv#ns"),
        ("namespace of the claim", Value::Null, json!({ "namespace": "claimns" }), None, "#acc#share#pv#claimns"),
        ("resource group", json!("ns"), Value::Null, Some("rg"), "rg#acc#share#pv#ns"),
    ] {
        let translated = persistent(&json!({
            "metadata": { "name": "pv", "annotations": { "kubernetes.io/azure-file-resource-group": group.unwrap_or("") } },
            "spec": { "azureFile": share(&namespace), "claimRef": claim },
        }));
        let csi = translated.unwrap().unwrap().spec.csi;
        assert_eq!(csi.volume_handle, expected, "{name}");
        let namespace = expected.rsplit('#').next().unwrap();
        assert_eq!(
            serde_json::to_value(csi).unwrap(),
            json!({ "driver": "file.csi.azure.com", "volumeHandle": expected, "readOnly": true,
                "volumeAttributes": { "sharename": "share" },
                "nodeStageSecretRef": { "name": "azure-storage-account-acc-secret", "namespace": namespace } }),
            "{name}"
        );
    }
}

#[test]
fn ct_azure_accounts() {
    for (secret, account) in [
        ("azure-storage-account-accountname-secret", "accountname"),
        ("azure-storage-account-accountname-dup-secret", "accountname-dup"),
        ("azure-storage-account-a-secret-secret", "a-secret"),
        ("my-azure-storage-account-a-secret-2", "a"),
        ("azure-storage-account--secret", "azure-storage-account--secret"),
        ("invalid", "invalid"),
    ] {
        assert_eq!(handle::azure_account(secret), account, "{secret}");
    }
}

#[test]
fn ct_portworx_secrets_need_both_annotations() {
    let csi = |annotations: Value| {
        let source = json!({ "portworxVolume": { "volumeID": "id" } });
        let volume = json!({ "metadata": { "name": "pv", "annotations": annotations }, "spec": source });
        persistent(&volume).unwrap().unwrap().spec.csi
    };
    let secret = Some(SecretReference { name: "s".to_owned(), namespace: "ns".to_owned() });
    let both = csi(json!({ "openstorage.io/auth-secret-name": "s", "openstorage.io/auth-secret-namespace": "ns" }));
    for reference in [
        &both.controller_publish_secret_ref,
        &both.node_stage_secret_ref,
        &both.node_publish_secret_ref,
        &both.controller_expand_secret_ref,
        &both.node_expand_secret_ref,
    ] {
        assert_eq!(*reference, secret);
    }
    let one = csi(json!({ "openstorage.io/auth-secret-name": "s" }));
    assert_eq!(one, CsiSource { driver: "pxd.portworx.com", volume_handle: "id".to_owned(), ..CsiSource::default() });
}

#[test]
fn ct_ebs_ids() {
    for (name, id, expected) in [
        ("bare", "vol-02399794d890f9375", Some("vol-02399794d890f9375")),
        ("bare ids are not checked", "anything/at all", Some("anything/at all")),
        ("URL without zone", "aws:///vol-02399794d890f9375", Some("vol-02399794d890f9375")),
        ("URL with zone", "aws://us-west-2a/vol-02399794d890f9375", Some("vol-02399794d890f9375")),
        ("slashes around", "aws://us-west-2a//vol-1/", Some("vol-1")),
        ("query and fragment", "aws://z/vol-1?a/b#c", Some("vol-1")),
        ("escape", "aws://z/vol%2D1", Some("vol-1")),
        ("no vol-", "aws://us-west-2a/02399794d890f9375", None),
        ("zone only", "aws://us-west-2a", None),
        ("two parts", "aws://z/vol-1/x", None),
        ("broken escape", "aws://z/vol-%zz", None),
        ("cut escape", "aws://z/vol-%2", None),
    ] {
        assert_eq!(handle::ebs(id).ok().as_deref(), expected, "{name}");
    }
}

#[test]
fn ct_7_gce_handles_have_the_zones_of_the_labels() {
    const BETA: &str = "failure-domain.beta.kubernetes.io/zone";
    const GA: &str = "topology.kubernetes.io/zone";
    for (name, labels, expected) in [
        ("none", json!({}), "zones/UNSPECIFIED"),
        ("GA", json!({ GA: "us-east1-a" }), "zones/us-east1-a"),
        ("beta wins", json!({ BETA: "us-east1-a", GA: "us-east1-b" }), "zones/us-east1-a"),
        ("empty beta", json!({ BETA: "", GA: "us-east1-b" }), "zones/us-east1-b"),
        ("a zone of any form", json!({ GA: "zone" }), "zones/zone"),
        ("regional", json!({ GA: "us-east1-a__us-east1-c" }), "regions/us-east1"),
    ] {
        let source = json!({ "gcePersistentDisk": { "pdName": "d" } });
        let volume = json!({ "metadata": { "name": "pv", "labels": labels }, "spec": source });
        let handle = persistent(&volume).unwrap().unwrap().spec.csi.volume_handle;
        assert_eq!(handle, format!("projects/UNSPECIFIED/{expected}/disks/d"), "{name}");
    }
}

#[test]
fn ct_gce_access_modes() {
    for (name, modes, expected) in [
        ("none", Value::Null, None),
        ("ROX", json!(["ReadOnlyMany"]), Some(json!(["ReadOnlyMany"]))),
        ("RWO", json!(["ReadWriteOnce"]), Some(json!(["ReadWriteOnce"]))),
        ("RWX", json!(["ReadWriteMany"]), Some(json!(["ReadWriteOnce"]))),
        ("RWO, ROX", json!(["ReadWriteOnce", "ReadOnlyMany"]), Some(json!(["ReadWriteOnce"]))),
        ("RWO, RWX", json!(["ReadWriteOnce", "ReadWriteMany"]), Some(json!(["ReadWriteOnce"]))),
        ("RWX, ROX", json!(["ReadWriteMany", "ReadOnlyMany"]), Some(json!(["ReadWriteOnce"]))),
        ("RWX, ROX, RWO", json!(["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"]), Some(json!(["ReadWriteOnce"]))),
        ("RWOP", json!(["ReadWriteOncePod"]), Some(json!(["ReadWriteOnce"]))),
        ("empty", json!([]), Some(json!(["ReadWriteOnce"]))),
    ] {
        let spec = spec(&json!({ "gcePersistentDisk": { "pdName": "d" }, "accessModes": modes }));
        assert_eq!(spec.get("accessModes"), expected.as_ref(), "{name}");
    }
    let other = spec(&json!({ "cinder": { "volumeID": "id" }, "accessModes": ["ReadWriteMany"] }));
    assert_eq!(other["accessModes"], json!(["ReadWriteMany"]), "another source keeps its modes");
}

#[test]
fn ct_5_errors() {
    let zones = |label: &str| json!({ "topology.kubernetes.io/zone": label });
    let disk = json!({ "gcePersistentDisk": { "pdName": "d" } });
    for (name, labels, source, expected) in [
        (
            "EBS format",
            json!({}),
            json!({ "awsElasticBlockStore": { "volumeID": "aws://z/1" } }),
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://z/1)",
        ),
        (
            "zone",
            zones("a-b__c-d-e"),
            disk.clone(),
            "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, got: a-b",
        ),
        (
            "regions",
            zones("us-east1-a__us-west1-a"),
            disk,
            "failed to get region from zones: multiple or no regions gotten from zones, got: map[us-east1:{} us-west1:{}]",
        ),
        (
            "disk kind",
            json!({}),
            json!({ "azureDisk": { "diskURI": "uri", "kind": "Dedicated" } }),
            "kind(Dedicated) is not supported in csi migration",
        ),
        (
            "secret namespace",
            json!({}),
            json!({ "azureFile": { "secretName": "s", "shareName": "sh" } }),
            "could not find a secret namespace in PersistentVolumeSource or ClaimRef",
        ),
    ] {
        let volume = json!({ "metadata": { "name": "pv", "labels": labels }, "spec": source });
        assert_eq!(persistent(&volume).unwrap_err().to_string(), expected, "{name}");
    }
    let malformed = json!({ "metadata": { "name": "pv" }, "spec": { "cinder": 5 } });
    assert!(matches!(persistent(&malformed), Err(TranslationError::Malformed { .. })));
    let inline = inline(&json!({ "name": "v", "azureDisk": { "kind": "Shared" } }).to_string(), "ns");
    assert_eq!(inline, Err(TranslationError::DiskKind { kind: "Shared".to_owned() }));
}

#[test]
fn ct_inline_volumes() {
    for (name, volume, expected_name, csi, mode) in [
        (
            "EBS",
            json!({ "name": "v", "awsElasticBlockStore": { "volumeID": "aws://z/vol-1", "fsType": "ext4" } }),
            "ebs.csi.aws.com-vol-1",
            json!({ "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "fsType": "ext4",
                "volumeAttributes": { "partition": "0" } }),
            "ReadWriteOnce",
        ),
        (
            "GCE is named after the disk",
            json!({ "name": "v", "gcePersistentDisk": { "pdName": "disk", "readOnly": true } }),
            "pd.csi.storage.gke.io-disk",
            json!({ "driver": "pd.csi.storage.gke.io", "readOnly": true, "volumeAttributes": { "partition": "" },
                "volumeHandle": "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk" }),
            "ReadOnlyMany",
        ),
        (
            "Cinder",
            json!({ "name": "v", "cinder": { "volumeID": "id", "readOnly": true } }),
            "cinder.csi.openstack.org-id",
            json!({ "driver": "cinder.csi.openstack.org", "volumeHandle": "id", "readOnly": true }),
            "ReadWriteOnce",
        ),
        (
            "Azure disk drops an empty caching mode",
            json!({ "name": "v", "azureDisk": { "diskURI": "uri", "cachingMode": "", "fsType": "ext4" } }),
            "uri",
            json!({ "driver": "disk.csi.azure.com", "volumeHandle": "uri", "fsType": "ext4",
                "volumeAttributes": { "kind": "Managed", "fstype": "ext4" } }),
            "ReadWriteOnce",
        ),
        (
            "Azure file has the namespace of the pod",
            json!({ "name": "v", "azureFile": { "secretName": "plain", "shareName": "share" } }),
            "#plain#share#v#ns",
            json!({ "driver": "file.csi.azure.com", "volumeHandle": "#plain#share#v#ns",
                "volumeAttributes": { "sharename": "share" },
                "nodeStageSecretRef": { "name": "plain", "namespace": "ns" } }),
            "ReadWriteMany",
        ),
        (
            "Portworx",
            json!({ "name": "v", "portworxVolume": { "volumeID": "id", "readOnly": true } }),
            "pxd.portworx.com-id",
            json!({ "driver": "pxd.portworx.com", "volumeHandle": "id" }),
            "ReadOnlyMany",
        ),
    ] {
        let expected = json!({ "csi": csi, "accessModes": [mode], "volumeMode": "Filesystem" });
        assert_eq!(of_pod(&volume, "ns"), (expected_name.to_owned(), expected), "{name}");
    }
    let share = json!({ "name": "v", "azureFile": { "secretName": "plain", "shareName": "share" } });
    assert_eq!(of_pod(&share, "").0, "#plain#share#v#default", "without a namespace");
}

#[test]
fn ct_8_t_1_inline_vsphere_volumes_keep_their_storage_policy() {
    let volume = json!({ "name": "v", "vsphereVolume": { "volumePath": "p", "storagePolicyName": "gold" } });
    let csi = json!({ "driver": "csi.vsphere.vmware.com", "volumeHandle": "p",
        "volumeAttributes": { "storagepolicyname": "gold" } });
    let expected = json!({ "csi": csi, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem" });
    assert_eq!(of_pod(&volume, "ns"), ("csi.vsphere.vmware.com-p".to_owned(), expected));
}

#[test]
fn ct_2_other_sources_are_not_translated() {
    for source in [json!({ "csi": { "driver": "ebs.csi.aws.com", "volumeHandle": "v" } }), json!({ "cinder": null })] {
        assert_eq!(persistent(&json!({ "metadata": { "name": "pv" }, "spec": source })), Ok(None));
    }
    assert_eq!(inline(&json!({ "name": "v", "emptyDir": {} }).to_string(), "ns"), Ok(None));
}
