//! The seven in-tree sources, and the CSI source of each.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{AccessMode, CsiSource, CsiSpec, SecretReference, Translated, TranslationError, handle};

/// The in-tree sources of a volume. At most one is set.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Sources {
    aws_elastic_block_store: Option<Ebs>,
    gce_persistent_disk: Option<GceDisk>,
    cinder: Option<Cinder>,
    azure_disk: Option<AzureDisk>,
    azure_file: Option<AzureFile>,
    vsphere_volume: Option<Vsphere>,
    portworx_volume: Option<Portworx>,
}

/// The rest of the volume that the source belongs to.
pub(super) enum Context<'a> {
    Persistent {
        name: &'a str,
        labels: BTreeMap<String, String>,
        annotations: BTreeMap<String, String>,
        claim_namespace: &'a str,
        access_modes: Option<Vec<AccessMode>>,
    },
    /// A volume of a pod.
    Inline { name: &'a str, namespace: &'a str },
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Ebs {
    #[serde(rename = "volumeID")]
    volume_id: String,
    fs_type: String,
    partition: i32,
    read_only: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GceDisk {
    pd_name: String,
    fs_type: String,
    partition: i32,
    read_only: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Cinder {
    #[serde(rename = "volumeID")]
    volume_id: String,
    fs_type: String,
    read_only: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AzureDisk {
    #[serde(rename = "diskURI")]
    disk_uri: String,
    caching_mode: Option<String>,
    fs_type: Option<String>,
    read_only: Option<bool>,
    kind: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AzureFile {
    secret_name: String,
    share_name: String,
    read_only: bool,
    secret_namespace: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Vsphere {
    volume_path: String,
    fs_type: String,
    storage_policy_name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Portworx {
    #[serde(rename = "volumeID")]
    volume_id: String,
    fs_type: String,
    read_only: bool,
}

impl Sources {
    pub(super) fn translate(&self, context: &Context<'_>) -> Result<Option<Translated>, TranslationError> {
        let (csi, inline) = if let Some(source) = &self.aws_elastic_block_store {
            (ebs(source)?, Inline::named_by_driver(AccessMode::ReadWriteOnce))
        } else if let Some(source) = &self.gce_persistent_disk {
            let inline = Inline { id: Some(source.pd_name.clone()), ..Inline::read_only_many(source.read_only) };
            (gce_disk(source, context)?, inline)
        } else if let Some(source) = &self.cinder {
            (cinder(source), Inline::named_by_driver(AccessMode::ReadWriteOnce))
        } else if let Some(source) = &self.azure_disk {
            (azure_disk(source, context)?, Inline::named_by_handle(AccessMode::ReadWriteOnce))
        } else if let Some(source) = &self.azure_file {
            (azure_file(source, context)?, Inline::named_by_handle(AccessMode::ReadWriteMany))
        } else if let Some(source) = &self.vsphere_volume {
            (vsphere(source), Inline::named_by_driver(AccessMode::ReadWriteOnce))
        } else if let Some(source) = &self.portworx_volume {
            (portworx(source, context), Inline::read_only_many(source.read_only))
        } else {
            return Ok(None);
        };
        Ok(Some(match context {
            Context::Persistent { name, access_modes, .. } => {
                let access_modes = match access_modes {
                    Some(modes) if self.gce_persistent_disk.is_some() => Some(gce_access_modes(modes)),
                    Some(_) | None => access_modes.clone(),
                };
                Translated { name: (*name).to_owned(), spec: CsiSpec { csi, access_modes, volume_mode: None } }
            }
            Context::Inline { .. } => inline.with(csi),
        }))
    }
}

/// The name and the access mode that a volume of a pod gets.
struct Inline {
    driver_in_name: bool,
    /// Id in the name, if it is not the handle.
    id: Option<String>,
    access_mode: AccessMode,
}

impl Inline {
    const fn named_by_driver(access_mode: AccessMode) -> Self {
        Self { driver_in_name: true, id: None, access_mode }
    }

    const fn named_by_handle(access_mode: AccessMode) -> Self {
        Self { driver_in_name: false, id: None, access_mode }
    }

    const fn read_only_many(read_only: bool) -> Self {
        Self::named_by_driver(if read_only { AccessMode::ReadOnlyMany } else { AccessMode::ReadWriteOnce })
    }

    fn with(self, csi: CsiSource) -> Translated {
        let id = self.id.unwrap_or_else(|| csi.volume_handle.clone());
        let name = if self.driver_in_name { format!("{}-{id}", csi.driver) } else { id };
        let access_modes = Some(vec![self.access_mode]);
        Translated { name, spec: CsiSpec { csi, access_modes, volume_mode: Some("Filesystem") } }
    }
}

fn ebs(source: &Ebs) -> Result<CsiSource, TranslationError> {
    Ok(CsiSource {
        driver: "ebs.csi.aws.com",
        volume_handle: handle::ebs(&source.volume_id)?,
        read_only: source.read_only,
        fs_type: source.fs_type.clone(),
        volume_attributes: [("partition", source.partition.to_string())].into(),
        ..CsiSource::default()
    })
}

fn gce_disk(source: &GceDisk, context: &Context<'_>) -> Result<CsiSource, TranslationError> {
    const ZONES: [&str; 2] = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"];
    let zones = match context {
        Context::Persistent { labels, .. } => {
            ZONES.iter().filter_map(|key| labels.get(*key)).find(|zones| !zones.is_empty())
        }
        Context::Inline { .. } => None,
    };
    let partition = if source.partition == 0 { String::new() } else { source.partition.to_string() };
    Ok(CsiSource {
        driver: "pd.csi.storage.gke.io",
        volume_handle: handle::gce_disk(&source.pd_name, zones.map_or("", String::as_str))?,
        read_only: source.read_only,
        fs_type: source.fs_type.clone(),
        volume_attributes: [("partition", partition)].into(),
        ..CsiSource::default()
    })
}

/// Returns the access modes of a GCE disk, which the driver accepts.
///
/// # Upstream
/// `backwardCompatibleAccessModes`: in-tree disks ignored all modes but these two.
fn gce_access_modes(modes: &[AccessMode]) -> Vec<AccessMode> {
    let writable = |mode: &AccessMode| matches!(mode, AccessMode::ReadWriteOnce | AccessMode::ReadWriteMany);
    if !modes.iter().any(writable) && modes.contains(&AccessMode::ReadOnlyMany) {
        vec![AccessMode::ReadOnlyMany]
    } else {
        vec![AccessMode::ReadWriteOnce]
    }
}

fn cinder(source: &Cinder) -> CsiSource {
    CsiSource {
        driver: "cinder.csi.openstack.org",
        volume_handle: source.volume_id.clone(),
        read_only: source.read_only,
        fs_type: source.fs_type.clone(),
        ..CsiSource::default()
    }
}

fn azure_disk(source: &AzureDisk, context: &Context<'_>) -> Result<CsiSource, TranslationError> {
    if let Some(kind) = source.kind.as_ref().filter(|kind| !kind.eq_ignore_ascii_case("Managed")) {
        return Err(TranslationError::DiskKind { kind: kind.clone() });
    }
    let mut volume_attributes = BTreeMap::from([("kind", "Managed".to_owned())]);
    // Upstream keeps an empty mode of a persistent volume, and drops it for a pod's volume.
    let keeps_empty = matches!(context, Context::Persistent { .. });
    if let Some(mode) = source.caching_mode.as_ref().filter(|mode| keeps_empty || !mode.is_empty()) {
        volume_attributes.insert("cachingmode", mode.clone());
    }
    if let Some(fs_type) = &source.fs_type {
        volume_attributes.insert("fstype", fs_type.clone());
    }
    Ok(CsiSource {
        driver: "disk.csi.azure.com",
        volume_handle: source.disk_uri.clone(),
        read_only: source.read_only.unwrap_or(false),
        fs_type: source.fs_type.clone().unwrap_or_default(),
        volume_attributes,
        ..CsiSource::default()
    })
}

fn azure_file(source: &AzureFile, context: &Context<'_>) -> Result<CsiSource, TranslationError> {
    let (group, volume, namespace) = match context {
        Context::Persistent { name, annotations, claim_namespace, .. } => {
            let group = annotations.get("kubernetes.io/azure-file-resource-group").map_or("", String::as_str);
            (group, *name, source.secret_namespace.as_deref().unwrap_or(claim_namespace))
        }
        Context::Inline { name, namespace: "" } => ("", *name, "default"),
        Context::Inline { name, namespace } => ("", *name, *namespace),
    };
    if namespace.is_empty() {
        return Err(TranslationError::NoSecretNamespace);
    }
    let account = handle::azure_account(&source.secret_name);
    Ok(CsiSource {
        driver: "file.csi.azure.com",
        volume_handle: format!("{group}#{account}#{}#{volume}#{namespace}", source.share_name),
        read_only: source.read_only,
        volume_attributes: [("sharename", source.share_name.clone())].into(),
        node_stage_secret_ref: Some(SecretReference {
            name: source.secret_name.clone(),
            namespace: namespace.to_owned(),
        }),
        ..CsiSource::default()
    })
}

fn vsphere(source: &Vsphere) -> CsiSource {
    let policy = Some(&source.storage_policy_name).filter(|policy| !policy.is_empty());
    CsiSource {
        driver: "csi.vsphere.vmware.com",
        volume_handle: source.volume_path.clone(),
        fs_type: source.fs_type.clone(),
        volume_attributes: policy.map(|policy| ("storagepolicyname", policy.clone())).into_iter().collect(),
        ..CsiSource::default()
    }
}

fn portworx(source: &Portworx, context: &Context<'_>) -> CsiSource {
    let secret = match context {
        Context::Persistent { annotations, .. } => {
            let name = annotations.get("openstorage.io/auth-secret-name");
            let namespace = annotations.get("openstorage.io/auth-secret-namespace");
            name.zip(namespace)
                .map(|(name, namespace)| SecretReference { name: name.clone(), namespace: namespace.clone() })
        }
        Context::Inline { .. } => None,
    };
    CsiSource {
        driver: "pxd.portworx.com",
        volume_handle: source.volume_id.clone(),
        fs_type: source.fs_type.clone(),
        controller_publish_secret_ref: secret.clone(),
        node_stage_secret_ref: secret.clone(),
        node_publish_secret_ref: secret.clone(),
        controller_expand_secret_ref: secret.clone(),
        node_expand_secret_ref: secret,
        ..CsiSource::default()
    }
}
