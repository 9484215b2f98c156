//! The caches, and the volumes that objects lead to.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::api::views::{
    Node, NodeVolumes, PersistentVolume, PersistentVolumeClaim, Pod, PodDeletion, PodInlineVolumes, PodVolume,
    PodVolumes,
};
use kcm_framework::api::{InternedStr, ObjectKey, PartReader};
use kcm_framework::informers::{Index, Informer};

use super::actual::NodeState;
use super::claim::{self, NotAttached, Owner};
use super::names::Plugin;
use super::plan::Health;
use super::view::{VolumeAttachment, needs_attachment};
use super::volume::{self, Attachable, FlexVolume};
use crate::shared::csi_driver::CsiDriver;
use crate::shared::migration::VolumeSource;

/// Annotation of nodes whose volumes this controller attaches, with any value.
pub(super) const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The parts of pods and nodes that this controller reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    pub(super) claims: PartReader<PodVolumes>,
    pub(super) inline: PartReader<PodInlineVolumes>,
    pub(super) deletions: PartReader<PodDeletion>,
    pub(super) nodes: PartReader<NodeVolumes>,
}

/// The caches with their indexes.
#[derive(Clone)]
pub(super) struct World {
    pub(super) parts: Parts,
    pub(super) pods: Informer<Pod>,
    pub(super) claims: Informer<PersistentVolumeClaim>,
    pub(super) volumes: Informer<PersistentVolume>,
    pub(super) volumes_by_name: Index<PersistentVolume, String>,
    pub(super) nodes: Informer<Node>,
    pub(super) nodes_by_volume: Index<Node, InternedStr>,
    pub(super) attachments: Informer<VolumeAttachment>,
    pub(super) attachments_by_volume: Index<VolumeAttachment, Box<str>>,
    pub(super) drivers: Informer<CsiDriver>,
}

/// The volumes of a pod.
#[derive(Debug, Default)]
pub(super) struct VolumesOfPod {
    pub(super) attachable: Vec<Attachable>,
    pub(super) flex: Vec<FlexVolume>,
    /// Volumes that are not attached although a claim or a source names them, with the reasons.
    pub(super) not_attached: Vec<NotAttached>,
}

/// Returns the keys of the claims that a pod uses.
pub(super) fn claims_of(pod: &Pod, volumes: PartReader<PodVolumes>) -> Vec<ObjectKey> {
    volumes.of(pod).volumes.iter().map(|volume| claim_key(pod, volume)).collect()
}

fn claim_key(pod: &Pod, volume: &PodVolume) -> ObjectKey {
    let key = &pod.metadata.key;
    let namespace = key.namespace().unwrap_or_default().to_owned();
    match &volume.claim_name {
        Some(name) => ObjectKey::namespaced(namespace, (**name).to_owned()),
        None => ObjectKey::namespaced(namespace, format!("{}-{}", key.name(), volume.name)),
    }
}

/// Returns the unique name of a persistent volume that some plugin attaches.
pub(super) fn unique_name(volume: &PersistentVolume) -> Option<String> {
    volume::persistent(volume).ok().flatten().map(|volume| volume.unique_name)
}

/// Returns the unique names of the volumes that a node reports or uses, without volumes of unknown plugins.
pub(super) fn volumes_of_node(volumes: &NodeVolumes) -> BTreeSet<InternedStr> {
    let names = volumes.attached.iter().map(|volume| &volume.name).chain(&volumes.in_use);
    names.filter(|name| Plugin::of(name) != Plugin::Unknown).cloned().collect()
}

impl Parts {
    /// Returns `true` if the pod has volumes that may be attached.
    pub(super) fn has_volumes(self, pod: &Pod) -> bool {
        !self.claims.of(pod).volumes.is_empty() || !self.inline.of(pod).volumes.is_empty()
    }

    /// Returns the node that the pod needs its volumes on. `None` if it is not scheduled, or terminated.
    ///
    /// # Upstream
    /// `GetTargetNodeForPod` and `DetermineVolumeAction`, without the obsolete annotation that keeps volumes of
    /// terminated pods.
    pub(super) fn needs_volumes_on(self, pod: &Pod) -> Option<&InternedStr> {
        pod.node_name.as_ref().filter(|_| !pod.is_terminated(self.deletions.of(pod)))
    }
}

/// Returns the health of a node that exists.
pub(super) fn health(node: &Node) -> Health {
    NodeState::health(node.metadata.annotations.get(MANAGED).is_some(), node.is_ready, node.has_taint(OUT_OF_SERVICE))
}

impl World {
    /// Returns the volumes of a pod that are attached, as its claims and their volumes are bound now.
    pub(super) fn volumes_of(&self, pod: &Pod) -> VolumesOfPod {
        let mut found = self.all_volumes_of(pod);
        found.attachable.retain(|volume| self.is_attached_by_controller(&volume.unique_name));
        found
    }

    /// Returns the volumes of a pod, also if their drivers need no attachments.
    pub(super) fn all_volumes_of(&self, pod: &Pod) -> VolumesOfPod {
        let mut found = VolumesOfPod::default();
        let owner = Owner { key: &pod.metadata.key, uid: &pod.metadata.uid };
        for volume in &self.parts.claims.of(pod).volumes {
            let owner = volume.is_ephemeral.then_some(owner);
            if let Err(reason) = self.add_claim(&claim_key(pod, volume), owner, &mut found) {
                found.not_attached.push(reason);
            }
        }
        let namespace = pod.metadata.key.namespace().unwrap_or_default();
        for json in &self.parts.inline.of(pod).volumes {
            match volume::of_pod(json, namespace) {
                Ok(Some(volume)) => found.attachable.push(volume),
                Ok(None) => found.flex.extend(volume::flex_of_pod(json)),
                Err(error) => found.not_attached.push(error.into()),
            }
        }
        found
    }

    fn add_claim(
        &self,
        key: &ObjectKey,
        owner: Option<Owner<'_>>,
        found: &mut VolumesOfPod,
    ) -> Result<(), NotAttached> {
        let claim = self.claims.get(key).ok_or_else(|| NotAttached::NoClaim { claim: key.clone() })?;
        let name = claim::volume_name(&claim, owner)?;
        let volume = self.volume(name);
        let volume = volume.ok_or_else(|| NotAttached::NoVolume { volume: name.to_owned() })?;
        match claim::attachable(&claim, &volume) {
            Ok(volume) => found.attachable.push(volume),
            Err(reason @ NotAttached::NoPlugin { .. }) => match VolumeSource::of(&volume) {
                VolumeSource::Flex { driver } => found.flex.push(FlexVolume { name: name.to_owned(), driver }),
                VolumeSource::Migrated(_) | VolumeSource::Other => return Err(reason),
            },
            Err(reason) => return Err(reason),
        }
        Ok(())
    }

    /// Returns `true` unless the driver of the volume needs no attachments.
    pub(super) fn is_attached_by_controller(&self, unique_name: &str) -> bool {
        match Plugin::of(unique_name) {
            Plugin::Csi { driver, .. } => {
                needs_attachment(self.drivers.get(&ObjectKey::cluster_scoped(driver)).as_deref())
            }
            Plugin::ReportOnly | Plugin::Unknown => true,
        }
    }

    /// Returns the persistent volume of this name.
    pub(super) fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.volumes.get(&ObjectKey::cluster_scoped(name))
    }

    /// Returns the attachments of a volume by the persistent volumes that have its unique name.
    pub(super) fn attachments_of(&self, unique_name: &str) -> Vec<Arc<VolumeAttachment>> {
        let volumes = self.volumes_by_name.get(unique_name);
        volumes.iter().flat_map(|volume| self.attachments_by_volume.get(volume.metadata.key.name())).collect()
    }
}
