//! Event mapping of slices: the services that a change enqueues.

use std::collections::HashMap;
use std::sync::Arc;

use kcm_framework::api::views::EndpointSlice;
use kcm_framework::api::{ObjectKey, ResourceVersion, Uid};
use kcm_framework::informers::Change;
use parking_lot::Mutex;

use super::{is_managed_by, service_of};

/// The last write of the controller to each of its slices, so that the events of its own writes enqueue nothing.
///
/// An event that arrives before the response of its write enqueues the service, which is then reconciled once more.
///
/// # Upstream
/// The part of `EndpointSliceTracker` that event handlers use. The other part, which delays a service until the cache shows
/// its writes, is done by the framework.
#[derive(Debug, Default)]
pub(crate) struct OwnWrites(Mutex<HashMap<Uid, LastWrite>>);

#[derive(Debug, PartialEq)]
enum LastWrite {
    Version(ResourceVersion),
    Deletion,
}

impl OwnWrites {
    /// Notes the version of a slice that was created or updated.
    pub(crate) fn wrote(&self, uid: Uid, version: ResourceVersion) {
        self.0.lock().insert(uid, LastWrite::Version(version));
    }

    /// Notes that a slice was deleted. A slice that is not known has left the cache, or was written before a restart.
    pub(crate) fn deleted(&self, uid: &Uid) {
        if let Some(last) = self.0.lock().get_mut(uid) {
            *last = LastWrite::Deletion;
        }
    }

    /// Forgets all slices: the events of their deletion may have been missed.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    fn made(&self, slice: &EndpointSlice) -> bool {
        matches!(self.0.lock().get(&slice.metadata.uid), Some(LastWrite::Version(version))
            if *version == slice.metadata.resource_version)
    }

    fn made_deletion(&self, slice: &EndpointSlice) -> bool {
        self.0.lock().remove(&slice.metadata.uid) == Some(LastWrite::Deletion)
    }
}

/// A change of endpoints, ports or labels by another client enqueues the service of the slice, and so does a deletion.
/// Changes of other metadata do not change the generation.
///
/// # Upstream
/// `onEndpointSliceAdd`, `onEndpointSliceUpdate` and `onEndpointSliceDelete` of both controllers.
pub(crate) fn keys_for_slice(
    change: &Change<EndpointSlice>,
    controller: &str,
    own_writes: &OwnWrites,
) -> Vec<ObjectKey> {
    let is_managed = |slice: &EndpointSlice| is_managed_by(slice, controller);
    let concerned: [Option<&Arc<EndpointSlice>>; 2] = match change {
        Change::Added(slice) => [Some(slice).filter(|slice| is_managed(slice) && !own_writes.made(slice)), None],
        Change::Undecodable { last } => [Some(last).filter(|last| is_managed(last)), None],
        Change::Deleted { last, .. } => {
            let is_own = own_writes.made_deletion(last);
            [Some(last).filter(|last| is_managed(last) && !is_own), None]
        }
        Change::Updated { old, new } if service_of(old) != service_of(new) => [Some(old), Some(new)],
        Change::Updated { old, new } => {
            let changes_hands = is_managed(old) != is_managed(new);
            let has_changed = old.metadata.generation != new.metadata.generation;
            let concerns = |new: &&Arc<EndpointSlice>| is_managed(new) && has_changed && !own_writes.made(new);
            [Some(new).filter(|new| changes_hands || concerns(new)), None]
        }
    };
    concerned.into_iter().flatten().filter_map(|slice| service_of(slice)).collect()
}
