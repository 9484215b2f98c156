//! The available volumes in the order in which claims take them.

use std::collections::{BTreeSet, HashMap};

use kcm_framework::api::views::{AccessModes, PersistentVolume, PersistentVolumeClaim, VolumeMode, VolumePhase};
use kcm_framework::api::{InternedStr, ObjectKey, ResourceQuantity};
use kcm_framework::informers::Change;

use super::matching::{capacity, requested};
use super::vocabulary::{class_of_claim, class_of_volume};

/// The properties that a volume must share with its claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Group {
    class: InternedStr,
    attributes_class: InternedStr,
    mode: VolumeMode,
    access: AccessModes,
}

type Place = (ResourceQuantity, Box<str>);

/// Available volumes without a claim, by the properties that a claim asks for and by capacity.
///
/// A match is a look-up of the first volume that is large enough, instead of a scan of all volumes.
#[derive(Debug, Default)]
pub(super) struct AvailableVolumes {
    groups: HashMap<Group, BTreeSet<Place>>,
    places: HashMap<Box<str>, (Group, ResourceQuantity)>,
}

impl AvailableVolumes {
    /// Follows a change of a volume. The same change may be shown twice.
    pub(super) fn note(&mut self, change: &Change<PersistentVolume>) {
        match change {
            Change::Added(volume) | Change::Updated { new: volume, .. } => self.put(volume),
            // A volume that cannot be decoded is bound to nothing.
            Change::Deleted { .. } | Change::Undecodable { .. } => self.remove(change.key()),
        }
    }

    pub(super) fn put(&mut self, volume: &PersistentVolume) {
        self.remove(&volume.metadata.key);
        if volume.phase != VolumePhase::Available || volume.claim.is_some() || volume.metadata.is_terminating() {
            return;
        }
        let group = Group {
            class: InternedStr::from(&*class_of_volume(volume)),
            attributes_class: InternedStr::from(volume.volume_attributes_class().unwrap_or_default()),
            mode: volume.volume_mode,
            access: volume.access_modes,
        };
        let (name, capacity): (Box<str>, _) = (volume.metadata.key.name().into(), capacity(volume));
        self.groups.entry(group.clone()).or_default().insert((capacity, name.clone()));
        self.places.insert(name, (group, capacity));
    }

    fn remove(&mut self, volume: &ObjectKey) {
        let Some((name, (group, capacity))) = self.places.remove_entry(volume.name()) else { return };
        if let Some(places) = self.groups.get_mut(&group) {
            places.remove(&(capacity, name));
            if places.is_empty() {
                self.groups.remove(&group);
            }
        }
    }

    /// Returns the names of the volumes with these access modes that are large enough for the claim, from the smallest.
    pub(super) fn candidates(
        &self,
        access: AccessModes,
        claim: &PersistentVolumeClaim,
    ) -> impl Iterator<Item = &str> + use<'_> {
        let group = Group {
            class: InternedStr::from(class_of_claim(claim)),
            attributes_class: claim.volume_attributes_class_name.clone().unwrap_or_default(),
            mode: claim.volume_mode,
            access,
        };
        let least: Place = (requested(claim), Box::default());
        self.groups
            .get(&group)
            .into_iter()
            .flat_map(move |places| places.range(least.clone()..))
            .map(|(_, name)| &**name)
    }
}
