//! Event mapping by controller reference.

use std::sync::Arc;

use kcm_api::{Meta, ObjectKey, View};
use kcm_informers::{Cache, Change};

use crate::ownership::controller_key;

/// The objects of the caches `owners` that control the changed object: before the change, if that differs, and after it.
pub(super) fn controllers<V: View>(change: &Change<V>, owners: &[Arc<dyn Cache>]) -> Vec<ObjectKey> {
    let (old, new) = match change {
        // The guard of the loop holds the controller of an undecodable object, and says so.
        Change::Added(object) | Change::Undecodable { last: object } | Change::Deleted { last: object, .. } => {
            (None, object.meta())
        }
        Change::Updated { old, new } => {
            let has_other_owner = old.meta().controller() != new.meta().controller();
            (has_other_owner.then_some(old.meta()), new.meta())
        }
    };
    old.into_iter().chain([new]).filter_map(|object| controller_in(owners, object)).collect()
}

/// The controller of an object, if it is of the resource of `owners` and in one of these caches: kind, name and uid must
/// match.
fn controller_in(owners: &[Arc<dyn Cache>], object: &Meta) -> Option<ObjectKey> {
    let key = controller_key(owners.first()?.resource(), object)?;
    let owner = owners.iter().find_map(|owners| owners.object_state(&key))?;
    object.controller().is_some_and(|reference| reference.uid == owner.uid).then_some(key)
}
