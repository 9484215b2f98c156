//! The Pod that empties a volume. Pure.

use kcm_framework::api::views::PersistentVolume;
use kcm_framework::api::{KnownView as _, ObjectKey, OwnerReference, ResourceQuantity};
use kcm_framework::config::yaml_value;
use serde_json::{Value, json};

use super::matching::capacity;
use super::plugins::Plugin;

/// Prefix of the names of the Pods; the name of the volume follows.
const PREFIX: &str = "recycler-for-";

/// The template and the time limit of the Pods of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recycler {
    template: Value,
    /// Minimum time limit, in seconds.
    minimum: i32,
    /// Seconds of the time limit for each GiB.
    increment: i32,
}

/// A file that holds no template of a Pod.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidTemplate {
    #[error("cannot read the recycler pod {path:?} of --{flag}")]
    Read { flag: &'static str, path: String, source: std::io::Error },
    #[error("the recycler pod {path:?} of --{flag} is neither JSON nor YAML of a Pod")]
    Decode { flag: &'static str, path: String },
    #[error("pod specification ({path}): does not contain any volume(s)")]
    NoVolume { path: String },
}

impl Recycler {
    pub(super) fn new(template: Value, minimum: i32, increment: i32) -> Self {
        Self { template, minimum, increment }
    }

    /// Returns the key of the Pod that empties the volume.
    pub(super) fn key(&self, volume: &PersistentVolume) -> ObjectKey {
        let namespace = self.template["metadata"]["namespace"].as_str().unwrap_or_default();
        ObjectKey::namespaced(namespace.to_owned(), format!("{PREFIX}{}", volume.metadata.key.name()))
    }

    /// Returns the Pod that empties the volume, which the volume controls.
    pub(super) fn pod(&self, volume: &PersistentVolume, plugin: Plugin) -> Value {
        let meta = &volume.metadata;
        let mut pod = self.template.clone();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(self.key(volume).name());
        if let Some(metadata) = pod["metadata"].as_object_mut() {
            metadata.remove("generateName");
        }
        // The Pod is recognised by the uid of the volume. Nothing waits for its deletion.
        let mut owner = serde_json::to_value(OwnerReference::controller_of(
            const { &PersistentVolume::RESOURCE },
            meta.key.name(),
            &meta.uid,
        ))
        .unwrap_or_default();
        if let Some(owner) = owner.as_object_mut() {
            owner.remove("blockOwnerDeletion");
        }
        pod["metadata"]["ownerReferences"] = json!([owner]);
        pod["spec"]["activeDeadlineSeconds"] = json!(self.deadline(capacity(volume)));
        let text = |path: &[&str]| {
            let raw = volume.raw(path);
            raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok()).unwrap_or_default()
        };
        let name = pod["spec"]["volumes"][0]["name"].take();
        pod["spec"]["volumes"][0] = match plugin {
            Plugin::HostPath => json!({ "name": name, "hostPath": { "path": text(&["spec", "hostPath", "path"]) } }),
            Plugin::Nfs => {
                let (server, path) = (text(&["spec", "nfs", "server"]), text(&["spec", "nfs", "path"]));
                json!({ "name": name, "nfs": { "server": server, "path": path } })
            }
        };
        pod
    }

    /// Returns the time limit in seconds. Whole GiB count, rounded down: 1.9 GiB is one increment.
    fn deadline(&self, capacity: ResourceQuantity) -> i64 {
        let gibibytes = capacity.round_up().millis() / 1000 / (1 << 30);
        gibibytes.saturating_mul(i64::from(self.increment)).max(i64::from(self.minimum))
    }
}

/// Returns the name of the volume that a Pod of this name empties.
pub(super) fn volume_of(pod: &str) -> Option<&str> {
    pod.strip_prefix(PREFIX)
}

/// The template that is used without a file.
///
/// # Upstream
/// `NewPersistentVolumeRecyclerPodTemplate` of `pkg/volume/plugins.go`
pub(super) fn default_template() -> Value {
    let scrub = r#"test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1"#;
    json!({
        "metadata": { "namespace": "default" },
        "spec": {
            "restartPolicy": "Never",
            "volumes": [{ "name": "vol" }],
            "containers": [{
                "name": "pv-recycler",
                "image": "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6",
                "command": ["/bin/sh"],
                "args": ["-c", scrub],
                "volumeMounts": [{ "name": "vol", "mountPath": "/scrub" }],
            }],
        },
    })
}

/// Reads the template of a file; an empty path is the default template.
pub(super) fn read_template(flag: &'static str, path: &str) -> Result<Value, InvalidTemplate> {
    if path.is_empty() {
        return Ok(default_template());
    }
    let text = std::fs::read_to_string(path).map_err(|source| InvalidTemplate::Read {
        flag,
        path: path.to_owned(),
        source,
    })?;
    parse_template(flag, path, &text)
}

pub(super) fn parse_template(flag: &'static str, path: &str, text: &str) -> Result<Value, InvalidTemplate> {
    let path = path.to_owned();
    let template = yaml_value(text.as_bytes()).map_err(|_| InvalidTemplate::Decode { flag, path: path.clone() })?;
    if template["kind"] != "Pod" || !template["metadata"].is_object() && !template["metadata"].is_null() {
        return Err(InvalidTemplate::Decode { flag, path });
    }
    if template["spec"]["volumes"].as_array().is_none_or(Vec::is_empty) {
        return Err(InvalidTemplate::NoVolume { path });
    }
    Ok(template)
}
