//! The `SELinux` labels of the volumes of pods.

use std::collections::BTreeSet;

use crate::intern::InternedStr;

crate::message! {
    /// The `SELinux` labels that a pod mounts its volumes with.
    pub struct PodSelinux {
        "spec" @ 2 {
            let volumes: Vec<Volume> = "volumes" @ 1;
            let containers: Vec<Container> = "containers" @ 2;
            "securityContext" @ 14 {
                let options: Option<SelinuxOptions> = "seLinuxOptions" @ 1;
                /// `spec.securityContext.seLinuxChangePolicy`, `None` if it is absent.
                pub change_policy: Option<InternedStr> = "seLinuxChangePolicy" @ 13;
            }
            let init_containers: Vec<Container> = "initContainers" @ 20;
            let ephemeral_containers: Vec<EphemeralContainer> = "ephemeralContainers" @ 34;
        }
        /// The volumes that a container mounts, in the order of `spec.volumes`. Volumes that can neither be shared
        /// with another pod nor have several labels are left out.
        pub mounts: Box<[SelinuxMount]> = {
            let mut users: Vec<User<'_>> = containers.iter().chain(&init_containers).map(User::from).collect();
            users.extend(ephemeral_containers.iter().map(User::from));
            volumes.iter().filter_map(|volume| mount(volume, &users, options.as_ref())).collect()
        };
    }
}

/// A volume that containers of a pod mount.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelinuxMount {
    /// Name of the volume in the pod.
    pub volume: InternedStr,
    /// Label of the containers that mount the volume.
    pub label: MountLabel,
    /// Source of the volume.
    pub source: MountSource,
}

/// The `SELinux` label of the containers that mount a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountLabel {
    /// `user:role:type:level` of all containers that have `SELinux` options. Empty if none has any.
    One(InternedStr),
    /// The containers have different labels.
    Several,
}

/// The source of a volume that containers of a pod mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountSource {
    /// A claim of this name.
    Claim(Box<str>),
    /// A claim that is named after the pod and the volume.
    Ephemeral,
    /// Storage that other pods can name too, and that may be mounted with a label. The pod has the details.
    Inline,
    /// Any source that is not named above.
    Other,
}

crate::message! {
    struct Volume {
        name: InternedStr = "name" @ 1;
        "" @ 2 {
            let gce: Option<Source> = "gcePersistentDisk" @ 3;
            let ebs: Option<Source> = "awsElasticBlockStore" @ 4;
            let iscsi: Option<Source> = "iscsi" @ 8;
            "persistentVolumeClaim" @ 10 {
                let claim_name: Option<Box<str>> = "claimName" @ 1;
            }
            let cinder: Option<Source> = "cinder" @ 13;
            let fc: Option<Source> = "fc" @ 17;
            let azure_file: Option<Source> = "azureFile" @ 18;
            let vsphere: Option<Source> = "vsphereVolume" @ 20;
            let azure_disk: Option<Source> = "azureDisk" @ 22;
            let portworx: Option<Source> = "portworxVolume" @ 24;
            let ephemeral: Option<Source> = "ephemeral" @ 29;
        }
        source: MountSource = {
            let inline = [gce, ebs, iscsi, cinder, fc, azure_file, vsphere, azure_disk, portworx];
            match claim_name {
                Some(claim) => MountSource::Claim(claim),
                None if ephemeral.is_some() => MountSource::Ephemeral,
                None if inline.iter().any(Option::is_some) => MountSource::Inline,
                None => MountSource::Other,
            }
        };
    }
}

crate::message! {
    struct Source {}
}

crate::message! {
    struct Container {
        mounts: Vec<VolumeMount> = "volumeMounts" @ 9;
        "securityContext" @ 15 {
            options: Option<SelinuxOptions> = "seLinuxOptions" @ 3;
        }
    }
}

crate::message! {
    struct EphemeralContainer {
        "" @ 1 {
            mounts: Vec<VolumeMount> = "volumeMounts" @ 9;
            "securityContext" @ 15 {
                options: Option<SelinuxOptions> = "seLinuxOptions" @ 3;
            }
        }
    }
}

crate::message! {
    struct VolumeMount {
        name: InternedStr = "name" @ 1;
    }
}

crate::message! {
    struct SelinuxOptions {
        user: InternedStr = "user" @ 1;
        role: InternedStr = "role" @ 2;
        kind: InternedStr = "type" @ 3;
        level: InternedStr = "level" @ 4;
    }
}

impl SelinuxOptions {
    /// # Upstream
    /// The manager cannot know the defaults of nodes, so missing parts stay empty. Options without parts count as no
    /// label.
    fn label(&self) -> String {
        let parts = [&self.user, &self.role, &self.kind, &self.level];
        if parts.iter().all(|part| part.is_empty()) {
            return String::new();
        }
        parts.map(|part| &**part).join(":")
    }
}

/// A container of any kind.
struct User<'a> {
    mounts: &'a [VolumeMount],
    options: Option<&'a SelinuxOptions>,
}

impl<'a> From<&'a Container> for User<'a> {
    fn from(container: &'a Container) -> Self {
        Self { mounts: &container.mounts, options: container.options.as_ref() }
    }
}

impl<'a> From<&'a EphemeralContainer> for User<'a> {
    fn from(container: &'a EphemeralContainer) -> Self {
        Self { mounts: &container.mounts, options: container.options.as_ref() }
    }
}

/// Returns the mount of a volume, or `None` if the volume is not mounted or does not matter.
///
/// A container without its own options has the options of the pod. A container without any options adds no label.
fn mount(volume: &Volume, users: &[User<'_>], of_pod: Option<&SelinuxOptions>) -> Option<SelinuxMount> {
    let mut is_mounted = false;
    let mut labels = BTreeSet::new();
    for user in users.iter().filter(|user| user.mounts.iter().any(|mount| mount.name == volume.name)) {
        is_mounted = true;
        labels.extend(user.options.or(of_pod).map(SelinuxOptions::label));
    }
    let several = labels.len() > 1;
    let label =
        if several { MountLabel::Several } else { MountLabel::One(labels.pop_first().unwrap_or_default().into()) };
    let matters = is_mounted && (several || volume.source != MountSource::Other);
    matters.then(|| SelinuxMount { volume: volume.name.clone(), label, source: volume.source.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MountLabel, MountSource, PodSelinux};
    use crate::View as _;
    use crate::needs::Needs;
    use crate::views::Pod;
    use crate::{Need, PartReader};

    fn part(spec: &Value) -> PodSelinux {
        let reader: PartReader<PodSelinux> =
            [Need::part::<PodSelinux>()].into_iter().collect::<Needs>().reader().unwrap();
        let pod = json!({ "metadata": { "name": "web", "namespace": "shop" }, "spec": spec });
        reader.of(&Pod::decode(&pod.to_string()).unwrap()).clone()
    }

    /// A container that mounts the volume `data`, with `SELinux` options.
    fn container(options: &Value) -> Value {
        json!({ "volumeMounts": [{ "name": "data" }], "securityContext": { "seLinuxOptions": options } })
    }

    fn label(pod: &Value, containers: &Value) -> MountLabel {
        let spec = json!({
            "securityContext": { "seLinuxOptions": pod },
            "containers": containers,
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }],
        });
        part(&spec).mounts[0].label.clone()
    }

    #[test]
    fn containers_have_their_own_options_or_those_of_the_pod() {
        let (none, level) = (Value::Null, json!({ "level": "s0" }));
        let whole = json!({ "user": "u", "role": "r", "type": "t", "level": "s0:c1,c2" });
        for (name, pod, containers, expected) in [
            ("no options", &none, json!([container(&none)]), Some("")),
            ("options without parts", &none, json!([container(&json!({}))]), Some("")),
            ("options of the pod", &level, json!([container(&none)]), Some(":::s0")),
            ("options of the container", &level, json!([container(&whole)]), Some("u:r:t:s0:c1,c2")),
            ("equal ones", &level, json!([container(&none), container(&level)]), Some(":::s0")),
            ("one without options", &none, json!([container(&none), container(&level)]), Some(":::s0")),
            ("different ones", &level, json!([container(&none), container(&whole)]), None),
            ("empty ones and others", &level, json!([container(&none), container(&json!({}))]), None),
        ] {
            let expected = expected.map_or(MountLabel::Several, |label| MountLabel::One(label.into()));
            assert_eq!(label(pod, &containers), expected, "{name}");
        }
    }

    #[test]
    fn init_and_ephemeral_containers_count() {
        for kind in ["initContainers", "ephemeralContainers"] {
            let spec = json!({
                "containers": [container(&json!({ "level": "s0" }))],
                kind: [container(&json!({ "level": "s1" }))],
                "volumes": [{ "name": "data", "emptyDir": {} }],
            });
            assert_eq!(part(&spec).mounts[0].label, MountLabel::Several, "{kind}");
        }
    }

    #[test]
    fn volumes_that_do_not_matter_are_left_out() {
        let source = |name: &str, volume: Value| {
            let mut volume = volume;
            volume["name"] = json!("data");
            let mut spec = json!({ "containers": [container(&Value::Null)], "volumes": [volume] });
            if name == "not mounted" {
                spec["containers"] = json!([{ "volumeDevices": [{ "name": "data" }] }]);
            }
            part(&spec).mounts.first().map(|mount| mount.source.clone())
        };
        let claim = || json!({ "persistentVolumeClaim": { "claimName": "data" } });
        for (name, volume, expected) in [
            ("a claim", claim(), Some(MountSource::Claim("data".into()))),
            ("not mounted", claim(), None),
            ("ephemeral", json!({ "ephemeral": { "volumeClaimTemplate": {} } }), Some(MountSource::Ephemeral)),
            ("iSCSI", json!({ "iscsi": { "iqn": "x" } }), Some(MountSource::Inline)),
            ("a migrated plugin", json!({ "vsphereVolume": { "volumePath": "x" } }), Some(MountSource::Inline)),
            ("an inline CSI volume", json!({ "csi": { "driver": "x" } }), None),
            ("a host path", json!({ "hostPath": { "path": "/" } }), None),
            ("a config map", json!({ "configMap": { "name": "x" } }), None),
        ] {
            assert_eq!(source(name, volume), expected, "{name}");
        }
    }
}
