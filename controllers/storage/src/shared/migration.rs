//! The in-tree volume plugins whose volumes CSI drivers serve.

use std::fmt;

use kcm_framework::api::views::PersistentVolume;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// An in-tree plugin and the CSI driver that has replaced it.
///
/// # Upstream
/// `k8s.io/csi-translation-lib/plugins`; the seven migrations cannot be turned off since Kubernetes 1.31.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Migration {
    /// Name of the in-tree plugin.
    pub(crate) plugin: &'static str,
    /// Name of the CSI driver.
    pub(crate) driver: &'static str,
    /// Field of the volume's spec that holds its source.
    field: &'static str,
}

const fn migration(plugin: &'static str, driver: &'static str, field: &'static str) -> Migration {
    Migration { plugin, driver, field }
}

pub(crate) const MIGRATIONS: [Migration; 7] = [
    migration("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "awsElasticBlockStore"),
    migration("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gcePersistentDisk"),
    migration("kubernetes.io/cinder", "cinder.csi.openstack.org", "cinder"),
    migration("kubernetes.io/azure-disk", "disk.csi.azure.com", "azureDisk"),
    migration("kubernetes.io/azure-file", "file.csi.azure.com", "azureFile"),
    migration("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "vsphereVolume"),
    migration("kubernetes.io/portworx-volume", "pxd.portworx.com", "portworxVolume"),
];

/// The source of a volume, as far as it decides who serves the volume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum VolumeSource {
    /// A CSI driver serves the volumes of this plugin.
    Migrated(&'static Migration),
    /// A flex volume of this driver.
    Flex { driver: String },
    /// Any other source, or none.
    #[default]
    Other,
}

impl VolumeSource {
    /// Reads the source of a volume from its JSON.
    pub(crate) fn of(volume: &PersistentVolume) -> Self {
        let spec = volume.raw(&["spec"]);
        spec.and_then(|spec| serde_json::from_str(spec.get()).ok()).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for VolumeSource {
    fn deserialize<D: Deserializer<'de>>(spec: D) -> Result<Self, D::Error> {
        spec.deserialize_map(SpecVisitor)
    }
}

struct SpecVisitor;

#[derive(Deserialize)]
struct FlexVolume {
    #[serde(default)]
    driver: String,
}

impl<'de> Visitor<'de> for SpecVisitor {
    type Value = VolumeSource;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the spec of a volume")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<VolumeSource, A::Error> {
        let mut source = VolumeSource::Other;
        while let Some(field) = fields.next_key::<String>()? {
            if let Some(migration) = MIGRATIONS.iter().find(|migration| migration.field == field) {
                if fields.next_value::<Option<IgnoredAny>>()?.is_some() {
                    source = VolumeSource::Migrated(migration);
                }
            } else if field == "flexVolume" {
                if let Some(FlexVolume { driver }) = fields.next_value()? {
                    source = VolumeSource::Flex { driver };
                }
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(source)
    }
}

#[cfg(test)]
mod tests {
    use kcm_framework::api::View as _;
    use serde_json::{Value, json};

    use super::*;

    fn source(spec: &Value) -> VolumeSource {
        let volume = json!({ "metadata": { "name": "pv" }, "spec": spec });
        VolumeSource::of(&PersistentVolume::decode(&volume.to_string()).unwrap())
    }

    #[test]
    fn ct_1_seven_sources_are_migrated() {
        for migration in &MIGRATIONS {
            let spec = json!({ "capacity": { "storage": "1Gi" }, migration.field: { "volumeID": "vol-1" } });
            assert_eq!(source(&spec), VolumeSource::Migrated(migration), "{}", migration.plugin);
            assert_eq!(source(&json!({ migration.field: null })), VolumeSource::Other, "{}", migration.plugin);
        }
    }

    #[test]
    fn ct_2_other_sources_are_not() {
        for (name, spec, expected) in [
            ("CSI", json!({ "csi": { "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1" } }), VolumeSource::Other),
            ("host path", json!({ "hostPath": { "path": "/tmp/pv" } }), VolumeSource::Other),
            ("flex", json!({ "flexVolume": { "driver": "a/b" } }), VolumeSource::Flex { driver: "a/b".to_owned() }),
            ("no source", json!({}), VolumeSource::Other),
            ("a source of another type", json!({ "flexVolume": 5 }), VolumeSource::Other),
        ] {
            assert_eq!(source(&spec), expected, "{name}");
        }
    }
}
