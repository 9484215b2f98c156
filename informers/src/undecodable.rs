//! The objects that cannot be decoded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kcm_api::{Meta, ObjectKey, ResourceVersion, Uid};
use parking_lot::{Mutex, RwLock};

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

    /// Returns `true` if the object may have that uid. An object whose uid cannot be read may have any.
    #[must_use]
    pub fn may_be(&self, uid: &Uid) -> bool {
        self.uid.is_unset() || self.uid == *uid
    }

    fn controller(&self) -> Option<&Uid> {
        self.meta.as_ref()?.controller().map(|owner| &owner.uid)
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
    /// The keys of the objects that the object with that uid controls.
    by_controller: BTreeMap<Uid, BTreeSet<ObjectKey>>,
    nameless: Nameless,
}

/// The objects whose name cannot be read. Only a new list clears them.
#[derive(Debug, Default)]
struct Nameless {
    /// The number of objects by error.
    by_error: BTreeMap<String, usize>,
    /// The number of objects with other errors, which are not kept: an error quotes the object, so a user can make any
    /// number of errors.
    others: usize,
}

/// The number of errors that are kept of objects without a name.
const NAMELESS_ERRORS: usize = 16;

impl Nameless {
    /// Counts an object. Returns whether its error is new and kept.
    fn note(&mut self, error: String) -> bool {
        if let Some(count) = self.by_error.get_mut(&error) {
            *count += 1;
            return false;
        }
        if self.by_error.len() >= NAMELESS_ERRORS {
            self.others += 1;
            return false;
        }
        self.by_error.insert(error, 1);
        true
    }

    fn len(&self) -> usize {
        self.by_error.values().sum::<usize>() + self.others
    }
}

impl UndecodableObjects {
    /// Adds an object. Returns whether its error is new.
    pub(crate) fn note(&mut self, undecodable: Undecodable) -> bool {
        match undecodable {
            Undecodable::Named(object) => {
                let known = self.forget(&object.key);
                if let Some(owner) = object.controller() {
                    self.by_controller.entry(owner.clone()).or_default().insert(object.key.clone());
                }
                let is_new = known.is_none_or(|known| known.error != object.error);
                self.by_key.insert(object.key.clone(), object);
                is_new
            }
            Undecodable::Nameless(error) => self.nameless.note(error),
        }
    }

    /// Forgets an object that was deleted or can be decoded, and returns it.
    pub(crate) fn forget(&mut self, key: &ObjectKey) -> Option<Arc<UndecodableObject>> {
        let object = self.by_key.remove(key)?;
        if let Some(owner) = object.controller()
            && let Some(keys) = self.by_controller.get_mut(owner)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_controller.remove(owner);
            }
        }
        Some(object)
    }

    /// The first object, by key, whose controller has that uid.
    pub(crate) fn controlled_by(&self, owner: &Uid) -> Option<&Arc<UndecodableObject>> {
        self.by_key.get(self.by_controller.get(owner)?.first()?)
    }

    /// The keys of the objects that are in one of both only, or that differ.
    fn changed_to(&self, list: &Self) -> Vec<ObjectKey> {
        let gone = self.by_key.keys().filter(|key| !list.by_key.contains_key(key));
        let new = list.by_key.iter().filter(|(key, object)| self.by_key.get(key) != Some(object));
        gone.chain(new.map(|(key, _)| key)).cloned().collect()
    }

    /// The objects of a list whose error is new, and the errors of objects without a name.
    fn new_of(&self, list: &Self) -> Vec<(Option<Arc<UndecodableObject>>, String)> {
        let is_known =
            |object: &UndecodableObject| self.by_key.get(&object.key).is_some_and(|known| known.error == object.error);
        let objects = list.by_key.values().filter(|object| !is_known(object));
        let objects = objects.map(|object| (Some(Arc::clone(object)), object.error.clone()));
        let nameless = list.nameless.by_error.keys();
        let nameless = nameless.filter(|error| !self.nameless.by_error.contains_key(*error));
        objects.chain(nameless.map(|error| (None, error.clone()))).collect()
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Arc<UndecodableObject>> {
        self.by_key.get(key)
    }

    /// Returns `true` if the object with that metadata may be one of them.
    pub(crate) fn may_hold(&self, meta: &Meta) -> bool {
        self.get(&meta.key).is_some_and(|object| object.may_be(&meta.uid))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<UndecodableObject>> {
        self.by_key.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len() + self.nameless.len()
    }

    /// Describes them for the status.
    pub(crate) fn sentence(&self) -> Option<String> {
        let first = self.by_key.values().next().map(|object| format!("{}: {}", object.key, object.error));
        let nameless =
            || self.nameless.by_error.keys().next().map(|error| format!("an object without a name: {error}"));
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
    /// Keys of the objects that changed since the hooks were called.
    changed: Mutex<Vec<ObjectKey>>,
}

impl SharedUndecodable {
    /// Adds an object. Returns whether its error is new.
    pub(crate) fn note(&self, undecodable: Undecodable) -> bool {
        if let Undecodable::Named(object) = &undecodable {
            self.changed.lock().push(object.key.clone());
        }
        self.objects.write().note(undecodable)
    }

    /// Forgets an object that was deleted or can be decoded.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        // Nearly always there is none, and readers are not blocked.
        if self.objects.read().by_key.contains_key(key) {
            self.objects.write().forget(key);
            self.changed.lock().push(key.clone());
        }
    }

    /// Replaces all objects by the objects of a list while `replace_cache` replaces the cache: at no time is an object
    /// in neither.
    pub(crate) fn replace<R>(&self, list: UndecodableObjects, replace_cache: impl FnOnce() -> R) -> R {
        let changed = {
            let objects = &mut *self.objects.write();
            let changed = objects.changed_to(&list);
            for object in list.by_key.values() {
                objects.note(Undecodable::Named(Arc::clone(object)));
            }
            changed
        };
        let replaced = replace_cache();
        *self.objects.write() = list;
        self.changed.lock().extend(changed);
        replaced
    }

    /// The objects of a list whose error is new, and the errors of objects without a name.
    pub(crate) fn new_of(&self, list: &UndecodableObjects) -> Vec<(Option<Arc<UndecodableObject>>, String)> {
        self.objects.read().new_of(list)
    }

    /// The keys of the objects that were added, forgotten or replaced since the last call.
    pub(crate) fn take_changed(&self) -> Vec<ObjectKey> {
        std::mem::take(&mut *self.changed.lock())
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<UndecodableObject>> {
        self.objects.read().get(key).cloned()
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&UndecodableObjects) -> R) -> R {
        read(&self.objects.read())
    }
}
