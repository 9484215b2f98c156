//! Which changes of slices enqueue their service.

use std::collections::HashMap;
use std::sync::Arc;

use kcm_api::views::EndpointSlice;
use kcm_api::{ObjectKey, ResourceVersion, Uid};
use kcm_informers::Change;
use parking_lot::Mutex;

use super::{is_managed_by, service_of};

/// What the controller last wrote of each of its slices, so that the events of its own writes enqueue nothing.
///
/// An event that comes before the response of its write enqueues the service, which is processed once more then.
///
/// # Upstream
/// The part of `EndpointSliceTracker` that event handlers use. That no service is processed before the cache shows the
/// writes for it is read-your-own-writes of the framework.
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

    /// Notes that a slice was deleted; one that is not known is gone from the cache already, or was written before a
    /// restart.
    pub(crate) fn deleted(&self, uid: &Uid) {
        if let Some(last) = self.0.lock().get_mut(uid) {
            *last = LastWrite::Deletion;
        }
    }

    fn made(&self, slice: &EndpointSlice) -> bool {
        matches!(self.0.lock().get(&slice.metadata.uid), Some(LastWrite::Version(version))
            if *version == slice.metadata.resource_version)
    }

    fn made_deletion(&self, slice: &EndpointSlice) -> bool {
        self.0.lock().remove(&slice.metadata.uid) == Some(LastWrite::Deletion)
    }
}

/// The services whose slices a change of another client concerns: one of endpoints, ports or labels, or a deletion. Those
/// of other metadata leave the generation as it is.
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
