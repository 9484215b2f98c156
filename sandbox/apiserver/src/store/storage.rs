//! The storage: objects, resource versions, and the window of past events. Pure: no clock, no lock, no knowledge of
//! kinds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kcm_api::{ObjectKey, Resource};
use serde_json::Value;

use crate::json;
use crate::store::stored::Stored;

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Created.
    Added,
    /// Updated.
    Modified,
    /// Deleted.
    Deleted,
}

/// An event of one write.
#[derive(Debug)]
pub struct Event {
    /// Resource of the object.
    pub resource: Resource,
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// Resource version of the write.
    pub version: u64,
    /// Type of the watch event.
    pub kind: EventKind,
    /// The object after the write; for a deletion its last state with the version of the deletion.
    pub object: Arc<Stored>,
    /// The object before the write.
    pub previous: Option<Arc<Stored>>,
    /// Time of the write, since the start.
    pub at: Duration,
}

/// The requested resource version is older than the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {requested} ({oldest})")]
pub struct TooOld {
    /// Version that the client requested.
    pub requested: u64,
    /// The oldest version in the window.
    pub oldest: u64,
}

type Objects = BTreeMap<ObjectKey, Arc<Stored>>;

/// Number of written objects whose parsed values are cached: subscribers read an object right after its write.
const RECENT: usize = 256;

/// Maximum bytes of objects in the window: repeatedly written large objects would otherwise fill the memory before
/// the window is full.
const WINDOW_BYTES: usize = 256 << 20;

/// All objects at the current resource version, and the window of events that led to it.
///
/// Memory is bounded by the text of the objects and of `window` events, and the values of 256 objects.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    version: u64,
    objects: BTreeMap<Resource, Objects>,
    events: VecDeque<Arc<Event>>,
    window: usize,
    /// Bytes of the objects of all events in the window.
    bytes: usize,
    /// The oldest version that a watch may start from.
    oldest: u64,
    /// The latest version of each resource that is older than the window.
    left: BTreeMap<Resource, u64>,
    recent: VecDeque<Arc<Value>>,
}

impl Store {
    pub(crate) fn new(window: usize) -> Self {
        // A real API server has written before the first request, and version 0 means "any".
        Self {
            version: 1,
            objects: BTreeMap::new(),
            events: VecDeque::new(),
            window,
            bytes: 0,
            oldest: 1,
            left: BTreeMap::new(),
            recent: VecDeque::new(),
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns the oldest version that a watch may start from.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    pub(crate) fn get(&self, resource: &Resource, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.objects.get(resource)?.get(key)
    }

    /// Returns the parsed object.
    pub(crate) fn value(&self, resource: &Resource, key: &ObjectKey) -> Option<Arc<Value>> {
        self.get(resource, key).map(|object| object.value())
    }

    /// Returns the objects of a resource sorted by namespace and name, in one namespace if given.
    pub(crate) fn list<'a>(
        &'a self,
        resource: &Resource,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Stored>)> {
        in_namespace(self.objects.get(resource), namespace)
    }

    /// Returns the objects of a resource at `version`.
    pub(crate) fn list_at(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        version: u64,
    ) -> Result<Vec<(ObjectKey, Arc<Stored>)>, TooOld> {
        let mut objects: Objects = self.list(resource, namespace).map(|(k, o)| (k.clone(), o.clone())).collect();
        let newer: Vec<&Arc<Event>> = self.events_after(version)?.collect();
        for event in newer.into_iter().rev().filter(|event| event.resource == *resource) {
            if namespace.is_some() && event.key.namespace() != namespace {
                continue;
            }
            match &event.previous {
                Some(previous) => drop(objects.insert(event.key.clone(), previous.clone())),
                None => drop(objects.remove(&event.key)),
            }
        }
        Ok(objects.into_iter().collect())
    }

    /// Writes an object with the next version and returns the stored object.
    pub(crate) fn put(&mut self, resource: &Resource, key: ObjectKey, mut object: Value, at: Duration) -> Arc<Value> {
        self.version += 1;
        json::set(&mut object, &["metadata", "resourceVersion"], Some(self.version.to_string().into()));
        let (value, object) = self.keep(object);
        let objects = self.objects.entry(resource.clone()).or_default();
        let previous = objects.insert(key.clone(), object.clone());
        let kind = if previous.is_some() { EventKind::Modified } else { EventKind::Added };
        self.record(Event { resource: resource.clone(), key, version: self.version, kind, object, previous, at });
        value
    }

    /// Removes an object and returns its last state with the version of the removal.
    pub(crate) fn remove(&mut self, resource: &Resource, key: &ObjectKey, at: Duration) -> Option<Arc<Value>> {
        let previous = self.objects.get_mut(resource)?.remove(key)?;
        self.version += 1;
        let (value, object) = self.keep(previous.under_version(self.version));
        self.record(Event {
            resource: resource.clone(),
            key: key.clone(),
            version: self.version,
            kind: EventKind::Deleted,
            object,
            previous: Some(previous),
            at,
        });
        Some(value)
    }

    /// Removes a resource with all its objects, without events.
    pub(crate) fn forget(&mut self, resource: &Resource) {
        self.objects.remove(resource);
    }

    /// Returns events newer than `version`, oldest first.
    pub(crate) fn events_after(&self, version: u64) -> Result<impl Iterator<Item = &Arc<Event>>, TooOld> {
        if version < self.oldest {
            return Err(TooOld { requested: version, oldest: self.oldest });
        }
        let from = self.events.partition_point(|event| event.version <= version);
        Ok(self.events.range(from..))
    }

    /// Returns events of a resource newer than `version`, oldest first; an error if one of them has left the window.
    pub(crate) fn events_of<'a>(
        &'a self,
        resource: &'a Resource,
        version: u64,
    ) -> Result<impl Iterator<Item = &'a Arc<Event>>, TooOld> {
        if self.left.get(resource).is_some_and(|left| *left > version) {
            return Err(TooOld { requested: version, oldest: self.oldest });
        }
        let from = self.events.partition_point(|event| event.version <= version);
        Ok(self.events.range(from..).filter(|event| event.resource == *resource))
    }

    /// Drops all past events, and the parsed values of past writes: a watch can only start from the current version.
    pub(crate) fn compact(&mut self) {
        self.drop_events(0);
        self.recent.clear();
        self.oldest = self.version;
    }

    /// Sets the store back to `version`, as a restore from a backup of that version does. The same versions are given
    /// again to other writes.
    pub(crate) fn restore(&mut self, version: u64) -> Result<(), TooOld> {
        let newer: Vec<Arc<Event>> = self.events_after(version)?.cloned().collect();
        for event in newer.iter().rev() {
            let objects = self.objects.entry(event.resource.clone()).or_default();
            match &event.previous {
                Some(previous) => drop(objects.insert(event.key.clone(), previous.clone())),
                None => drop(objects.remove(&event.key)),
            }
            self.bytes -= event.object.text().len();
        }
        self.events.truncate(self.events.len() - newer.len());
        self.recent.clear();
        self.version = version;
        Ok(())
    }

    /// Encodes an object for storage, and caches its parsed value for a while.
    fn keep(&mut self, object: Value) -> (Arc<Value>, Arc<Stored>) {
        let value = Arc::new(object);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(value.clone());
        let stored = Arc::new(Stored::new(&value));
        (value, stored)
    }

    fn record(&mut self, event: Event) {
        self.bytes += event.object.text().len();
        self.events.push_back(Arc::new(event));
        self.drop_events(self.window);
        while self.bytes > WINDOW_BYTES && self.events.len() > 1 {
            self.drop_events(self.events.len() - 1);
        }
    }

    /// Drops all but the last `kept` events.
    fn drop_events(&mut self, kept: usize) {
        while self.events.len() > kept
            && let Some(event) = self.events.pop_front()
        {
            self.oldest = event.version;
            self.bytes -= event.object.text().len();
            match self.left.get_mut(&event.resource) {
                Some(left) => *left = event.version,
                None => drop(self.left.insert(event.resource.clone(), event.version)),
            }
        }
    }
}

fn in_namespace<'a>(
    objects: Option<&'a Objects>,
    namespace: Option<&'a str>,
) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Stored>)> {
    let from = match namespace {
        Some(namespace) => ObjectKey::namespaced(namespace, ""),
        // The smallest key: no namespace, no name.
        None => ObjectKey::cluster_scoped(""),
    };
    objects
        .into_iter()
        .flat_map(move |objects| objects.range(from.clone()..))
        .take_while(move |(key, _)| namespace.is_none() || key.namespace() == namespace)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::CONFIG_MAPS;

    #[test]
    fn large_objects_leave_the_window_before_it_is_full() {
        let mut store = Store::new(10_000);
        let data = "x".repeat(1 << 20);
        let key = ObjectKey::namespaced("default", "large");
        for _ in 0..300 {
            let object = json!({ "metadata": { "name": "large", "namespace": "default" }, "data": { "a": data } });
            store.put(&CONFIG_MAPS, key.clone(), object, Duration::ZERO);
        }
        assert!(store.bytes <= WINDOW_BYTES && store.events.len() == 255, "{} events", store.events.len());
        assert!(store.events_after(1).is_err());
    }
}
