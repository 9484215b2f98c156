//! The objects that cannot be decoded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kcm_api::{Meta, ObjectKey, ResourceVersion, Uid};
use parking_lot::RwLock;

/// An object that cannot be decoded as the view of its cache, and so is not in it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UndecodableObject {
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// The uid; unset if it cannot be read either.
    pub uid: Uid,
    /// The resource version; unset if it cannot be read either.
    pub resource_version: ResourceVersion,
    /// The metadata; `None` if they cannot be decoded either.
    pub meta: Option<Meta>,
    /// Why the object cannot be decoded.
    pub error: String,
}

impl UndecodableObject {
    /// Returns `true` if the object is being deleted, as far as its metadata can be decoded.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.meta.as_ref().is_some_and(Meta::is_terminating)
    }

    /// Returns `true` if its metadata names the object with that uid as its controller.
    #[must_use]
    pub fn is_controlled_by(&self, owner: &Uid) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.is_controlled_by(owner))
    }
}

/// The known parts of an object that cannot be decoded.
#[derive(Debug)]
pub(crate) enum Undecodable {
    /// At least its name.
    Named(Arc<UndecodableObject>),
    /// The error only, without a name.
    Nameless(String),
}

impl Undecodable {
    pub(crate) fn resource_version(&self) -> Option<ResourceVersion> {
        match self {
            Self::Named(object) if !object.resource_version.is_unset() => Some(object.resource_version.clone()),
            Self::Named(_) | Self::Nameless(_) => None,
        }
    }
}

/// The objects of an informer that cannot be decoded.
#[derive(Debug, Default)]
pub(crate) struct UndecodableObjects {
    by_key: BTreeMap<ObjectKey, Arc<UndecodableObject>>,
    /// The number of objects whose name cannot be read, by error; only a new list clears them.
    nameless: BTreeMap<String, usize>,
}

impl UndecodableObjects {
    /// Adds an object. Returns whether its error is new.
    pub(crate) fn note(&mut self, undecodable: Undecodable) -> bool {
        match undecodable {
            Undecodable::Named(object) => {
                let known = self.by_key.insert(object.key.clone(), Arc::clone(&object));
                known.is_none_or(|known| known.error != object.error)
            }
            Undecodable::Nameless(error) => {
                let count = self.nameless.entry(error).or_default();
                *count += 1;
                *count == 1
            }
        }
    }

    /// Forgets an object that was deleted or can be decoded. Returns whether it was known.
    pub(crate) fn forget(&mut self, key: &ObjectKey) -> bool {
        self.by_key.remove(key).is_some()
    }

    /// The objects of a list whose error is new, and the errors of objects without a name.
    fn new_of(&self, list: &Self) -> Vec<(Option<Arc<UndecodableObject>>, String)> {
        let is_known =
            |object: &UndecodableObject| self.by_key.get(&object.key).is_some_and(|known| known.error == object.error);
        let objects = list.by_key.values().filter(|object| !is_known(object));
        let objects = objects.map(|object| (Some(Arc::clone(object)), object.error.clone()));
        let nameless = list.nameless.keys().filter(|error| !self.nameless.contains_key(*error));
        objects.chain(nameless.map(|error| (None, error.clone()))).collect()
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Arc<UndecodableObject>> {
        self.by_key.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<UndecodableObject>> {
        self.by_key.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len() + self.nameless.values().sum::<usize>()
    }

    /// Describes them for the status.
    pub(crate) fn sentence(&self) -> Option<String> {
        let first = self.by_key.values().next().map(|object| format!("{}: {}", object.key, object.error));
        let nameless = || self.nameless.keys().next().map(|error| format!("an object without a name: {error}"));
        let first = first.or_else(nameless)?;
        Some(match self.len() {
            1 => format!("an object cannot be decoded: {first}"),
            count => format!("{count} objects cannot be decoded, the first: {first}"),
        })
    }
}

/// The objects of an informer that cannot be decoded, for its task and its readers.
#[derive(Default)]
pub(crate) struct SharedUndecodable {
    objects: RwLock<UndecodableObjects>,
    changed: AtomicBool,
}

impl SharedUndecodable {
    /// Adds an object. Returns whether its error is new.
    pub(crate) fn note(&self, undecodable: Undecodable) -> bool {
        self.changed.store(true, Ordering::Relaxed);
        self.objects.write().note(undecodable)
    }

    /// Forgets an object that was deleted or can be decoded.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        // Nearly always there is none, and readers are not blocked.
        if self.objects.read().by_key.contains_key(key) {
            self.objects.write().forget(key);
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    /// Replaces all objects by the objects of a list while `replace_cache` replaces the cache: at no time is an object
    /// in neither.
    pub(crate) fn replace<R>(&self, list: UndecodableObjects, replace_cache: impl FnOnce() -> R) -> R {
        let is_change = {
            let objects = &mut *self.objects.write();
            let added = list.by_key.iter().map(|(key, object)| (key.clone(), Arc::clone(object)));
            let is_change = !objects.by_key.is_empty() || !list.by_key.is_empty();
            objects.by_key.extend(added);
            is_change
        };
        let replaced = replace_cache();
        *self.objects.write() = list;
        self.changed.fetch_or(is_change, Ordering::Relaxed);
        replaced
    }

    /// The objects of a list whose error is new, and the errors of objects without a name.
    pub(crate) fn new_of(&self, list: &UndecodableObjects) -> Vec<(Option<Arc<UndecodableObject>>, String)> {
        self.objects.read().new_of(list)
    }

    /// Returns `true` if objects were added, forgotten or replaced since the last call.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<UndecodableObject>> {
        self.objects.read().get(key).cloned()
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&UndecodableObjects) -> R) -> R {
        read(&self.objects.read())
    }
}
