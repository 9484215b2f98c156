//! The uses of volumes by Pods, and their conflicts. In memory; no I/O.

use std::collections::{BTreeMap, BTreeSet};

use kcm_framework::api::{ObjectKey, Uid};

use super::conflict::{Conflict, Property};
use super::label;

/// The policy of a volume that is relabelled file by file.
const RECURSIVE: &str = "Recursive";
/// The policy of a Pod that does not name one.
const MOUNT_OPTION: &str = "MountOption";
/// Number of conflicts of one volume that are kept and reported. Every two Pods of a volume may conflict.
const MOST_CONFLICTS: usize = 1000;

/// The label and the policy that a Pod uses a volume with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    label: Box<str>,
    policy: Box<str>,
    /// `true` if the plugin of the volume mounts it with a label.
    is_mountable: bool,
}

impl Use {
    /// Returns the label and the policy that apply to a volume.
    ///
    /// # Upstream
    /// `syncVolume` and `GetMountSELinuxLabel`: a Pod that does not mount with a label counts as relabelling.
    pub(super) fn new(label: &str, policy: Option<&str>, is_mountable: bool) -> Self {
        let is_mounted = is_mountable && policy != Some(RECURSIVE);
        let label = if is_mounted { label } else { "" };
        let policy = if label.is_empty() { RECURSIVE } else { policy.unwrap_or(MOUNT_OPTION) };
        Self { label: label.into(), policy: policy.into(), is_mountable }
    }
}

/// A volume that a Pod uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UsedVolume {
    /// Unique name of the volume, which equal storage shares.
    pub(super) name: String,
    /// Name of the CSI driver, if the volume has one.
    pub(super) driver: Option<String>,
    pub(super) usage: Use,
}

#[derive(Debug)]
struct Volume {
    driver: Option<String>,
    pods: BTreeMap<ObjectKey, Use>,
    conflicts: Vec<Conflict>,
}

#[derive(Debug)]
struct UsingPod {
    uid: Uid,
    volumes: BTreeSet<String>,
}

/// The volumes of all Pods that run or wait.
///
/// # Upstream
/// `volumeCache`, which keeps entries of a Pod that was recreated under its name.
#[derive(Debug, Default)]
pub(super) struct Uses {
    volumes: BTreeMap<String, Volume>,
    pods: BTreeMap<ObjectKey, UsingPod>,
}

impl Uses {
    /// Adds a volume of a Pod, or replaces its use. Returns the conflicts, once for each of the two Pods. A use that has
    /// not changed returns none.
    pub(super) fn add(&mut self, pod: &ObjectKey, uid: &Uid, used: UsedVolume) -> Vec<Conflict> {
        if self.pods.get(pod).is_some_and(|known| known.uid != *uid) {
            self.remove(pod);
        }
        let known = self.pods.entry(pod.clone());
        let known = known.or_insert_with(|| UsingPod { uid: uid.clone(), volumes: BTreeSet::new() });
        known.volumes.insert(used.name.clone());
        let UsedVolume { name, driver, usage } = used;
        let volume = self.volumes.entry(name);
        let volume = volume.or_insert_with(|| Volume { driver, pods: BTreeMap::new(), conflicts: Vec::new() });
        if volume.pods.get(pod) == Some(&usage) {
            return Vec::new();
        }
        volume.pods.insert(pod.clone(), usage.clone());
        volume.conflicts.retain(|conflict| !conflict.concerns(pod));
        let room = MOST_CONFLICTS.saturating_sub(volume.conflicts.len());
        let others = volume.pods.iter().filter(|(other, _)| *other != pod);
        let found = others.flat_map(|(other, theirs)| conflicts((pod, &usage), (other, theirs)));
        let found = found.flat_map(|conflict| [conflict.clone(), conflict.reversed()]);
        let found: Vec<Conflict> = found.take(room).collect();
        volume.conflicts.extend(found.iter().cloned());
        found
    }

    /// Removes a Pod with its conflicts.
    pub(super) fn remove(&mut self, pod: &ObjectKey) {
        let Some(UsingPod { volumes, .. }) = self.pods.remove(pod) else { return };
        for name in volumes {
            self.leave(&name, pod);
        }
    }

    /// Removes one volume of a Pod with its conflicts.
    pub(super) fn remove_volume(&mut self, pod: &ObjectKey, name: &str) {
        let Some(known) = self.pods.get_mut(pod) else { return };
        if known.volumes.remove(name) {
            if known.volumes.is_empty() {
                self.pods.remove(pod);
            }
            self.leave(name, pod);
        }
    }

    fn leave(&mut self, name: &str, pod: &ObjectKey) {
        let Some(volume) = self.volumes.get_mut(name) else { return };
        volume.pods.remove(pod);
        volume.conflicts.retain(|conflict| !conflict.concerns(pod));
        if volume.pods.is_empty() {
            self.volumes.remove(name);
        }
    }

    /// Returns the Pods that use volumes of a CSI driver.
    pub(super) fn pods_of_driver(&self, driver: &str) -> Vec<ObjectKey> {
        let volumes = self.volumes.values().filter(|volume| volume.driver.as_deref() == Some(driver));
        let pods: BTreeSet<&ObjectKey> = volumes.flat_map(|volume| volume.pods.keys()).collect();
        pods.into_iter().cloned().collect()
    }

    /// Returns all conflicts. Pods that conflict about several volumes in the same way have one.
    pub(super) fn conflicts(&self) -> BTreeSet<&Conflict> {
        self.volumes.values().flat_map(|volume| &volume.conflicts).collect()
    }
}

/// Returns the conflicts of two uses of a volume.
///
/// Uses that were decided before and after a change of the CSI driver are not compared: the change enqueues both Pods.
fn conflicts((pod, usage): (&ObjectKey, &Use), (other, theirs): (&ObjectKey, &Use)) -> Vec<Conflict> {
    if usage.is_mountable != theirs.is_mountable {
        return Vec::new();
    }
    let conflict = |property, value: &str, other_value: &str| Conflict {
        property,
        pod: pod.clone(),
        value: value.into(),
        other: other.clone(),
        other_value: other_value.into(),
    };
    let policies =
        (usage.policy != theirs.policy).then(|| conflict(Property::ChangePolicy, &usage.policy, &theirs.policy));
    let labels =
        label::conflict(&usage.label, &theirs.label).then(|| conflict(Property::Label, &usage.label, &theirs.label));
    policies.into_iter().chain(labels).collect()
}
