//! The undecodable objects of an informer, which the graph has by their metadata.
//!
//! A cache of a view holds only objects that can be decoded as that view. The graph needs the metadata alone: without an
//! undecodable object, its owner would go without it, and nothing would delete it afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_framework::api::{Meta, ObjectKey, PartialObjectMeta, Resource, Uid};
use kcm_framework::informers::{HookRegistration, MetadataInformer, ObjectMeta, UndecodableObject};
use kcm_framework::workqueue::Priority;
use parking_lot::Mutex;

use super::graph::{Effect, Graph};
use super::shared_graph::SharedGraph;

/// The undecodable objects of one informer, as the graph has them.
pub(super) struct UndecodableObjects {
    resource: Arc<Resource>,
    informer: MetadataInformer,
    graph: SharedGraph,
    /// `None` after the end.
    observed: Mutex<Option<BTreeMap<ObjectKey, Observed>>>,
}

/// Keeps the graph up to date until it is dropped.
pub(super) struct Followed {
    objects: Arc<UndecodableObjects>,
    _hook: HookRegistration,
}

/// An undecodable object and its node in the graph.
struct Observed {
    object: Arc<UndecodableObject>,
    /// The uid of its node; `None` if its metadata never could be decoded.
    uid: Option<Uid>,
}

/// The present state of an object that is or was undecodable.
pub(super) enum Present<'a> {
    /// The object cannot be decoded.
    Undecodable(&'a UndecodableObject),
    /// The cache holds it.
    Decoded(&'a Arc<dyn ObjectMeta>),
    /// It is in neither.
    Absent,
}

/// Returns the metadata of an undecodable object if the graph can use them.
fn readable(object: &UndecodableObject) -> Option<&Meta> {
    object.meta.as_ref().filter(|meta| !meta.uid.is_unset())
}

/// Brings the node of an object that is or was undecodable up to date. Returns the uid of its node with the effects.
///
/// A node whose metadata cannot be decoded any more keeps the last ones. An absent object was probably deleted: a live read
/// decides.
pub(super) fn update(
    graph: &mut Graph,
    resource: &Arc<Resource>,
    before: Option<Uid>,
    present: &Present<'_>,
) -> (Option<Uid>, Vec<Effect>) {
    let object: Option<Arc<dyn ObjectMeta>> = match present {
        Present::Undecodable(object) => {
            readable(object).map(|meta| Arc::new(PartialObjectMeta { metadata: meta.clone() }) as Arc<dyn ObjectMeta>)
        }
        Present::Decoded(object) => before.is_some().then(|| Arc::clone(object)),
        Present::Absent => None,
    };
    let stays = |uid: &Uid| match (&object, present) {
        (Some(object), _) => object.metadata().uid == *uid,
        (None, Present::Undecodable(object)) => object.may_be(uid),
        (None, Present::Decoded(_) | Present::Absent) => false,
    };
    let mut effects = Vec::new();
    let kept = before.filter(|uid| {
        let stays = stays(uid);
        if !stays {
            effects.extend(graph.lose(uid));
        }
        stays
    });
    effects.extend(object.iter().flat_map(|object| graph.observe(resource, object)));
    (object.map(|object| object.metadata().uid.clone()).or(kept), effects)
}

impl UndecodableObjects {
    /// Follows the undecodable objects of an informer.
    pub(super) fn follow(resource: &Arc<Resource>, informer: &MetadataInformer, graph: &SharedGraph) -> Followed {
        let objects = Arc::new(Self {
            resource: Arc::clone(resource),
            informer: informer.clone(),
            graph: graph.clone(),
            observed: Mutex::new(Some(BTreeMap::new())),
        });
        let cache = informer.cache();
        // The hook owns the informer, and lives as long as its registration.
        let of_hook = Arc::clone(&objects);
        let hook = cache.on_progress(Box::new(move |progress| {
            for key in progress.undecodable_changed {
                of_hook.update(key, Priority::Live);
            }
        }));
        // After the hook is set, so that no change is missed.
        for object in cache.undecodable_objects() {
            objects.update(&object.key, Priority::Initial);
        }
        Followed { objects, _hook: hook }
    }

    fn update(&self, key: &ObjectKey, priority: Priority) {
        // Held until the graph has the state that is read, so that a later state follows an earlier one.
        let mut observed = self.observed.lock();
        let Some(observed) = &mut *observed else { return };
        let undecodable = self.informer.cache().undecodable(key);
        let cached = self.informer.get(key);
        let present = match (&undecodable, &cached) {
            (Some(object), _) => Present::Undecodable(object),
            (None, Some(object)) => Present::Decoded(object),
            (None, None) => Present::Absent,
        };
        let before = observed.remove(key).and_then(|observed| observed.uid);
        let mut uid = None;
        self.graph.change(priority, |graph| {
            let (now, effects) = update(graph, &self.resource, before, &present);
            uid = now;
            effects
        });
        if let Some(object) = undecodable {
            observed.insert(key.clone(), Observed { object, uid });
        }
    }
}

impl Followed {
    /// Returns the undecodable objects that the graph does not have: their metadata cannot be decoded, or they have just
    /// changed.
    pub(super) fn unknown(&self) -> Vec<Arc<UndecodableObject>> {
        let mut undecodable = self.objects.informer.cache().undecodable_objects();
        let observed = self.objects.observed.lock();
        let is_known = |object: &Arc<UndecodableObject>| {
            readable(object).is_some()
                && observed.as_ref().and_then(|all| all.get(&object.key)).is_some_and(|known| known.object == *object)
        };
        undecodable.retain(|object| !is_known(object));
        undecodable
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        // A hook that runs at this moment changes the graph no more.
        *self.objects.observed.lock() = None;
    }
}
