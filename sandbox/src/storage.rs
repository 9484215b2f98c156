//! Objects, their versions, and the window of past events. Pure: no clock, no lock, no knowledge of kinds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kcm_api::{ObjectKey, Resource};
use serde_json::Value;

use crate::object;

/// What a write did to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// One write.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) resource: Resource,
    pub(crate) key: ObjectKey,
    pub(crate) version: u64,
    pub(crate) kind: EventKind,
    /// The object after the write; for a deletion its last state under the version of the deletion.
    pub(crate) object: Arc<Value>,
    /// The object before the write.
    pub(crate) previous: Option<Arc<Value>>,
    /// When it was written, since the start.
    pub(crate) at: Duration,
}

/// The version asked for has left the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub(crate) struct TooOld {
    pub(crate) asked: u64,
    pub(crate) oldest: u64,
}

type Objects = BTreeMap<ObjectKey, Arc<Value>>;

/// All objects at one version, and the way there as far back as the window reaches.
///
/// Memory is bounded by the objects and `window` events.
#[derive(Debug)]
pub(crate) struct Store {
    version: u64,
    objects: BTreeMap<Resource, Objects>,
    events: VecDeque<Arc<Event>>,
    window: usize,
    /// The oldest version that a watch may start from.
    oldest: u64,
}

impl Store {
    pub(crate) fn new(window: usize) -> Self {
        // A real server has written before anybody asks it, and version 0 means "any" to it.
        Self { version: 1, objects: BTreeMap::new(), events: VecDeque::new(), window, oldest: 1 }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The oldest version that a watch may start from.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    pub(crate) fn get(&self, resource: &Resource, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.objects.get(resource)?.get(key)
    }

    /// Objects of a resource ordered by namespace and name, of one namespace where one is given.
    pub(crate) fn list<'a>(
        &'a self,
        resource: &Resource,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)> {
        in_namespace(self.objects.get(resource), namespace)
    }

    /// Objects of a resource as they were at `version`.
    pub(crate) fn list_at(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        version: u64,
    ) -> Result<Vec<(ObjectKey, Arc<Value>)>, TooOld> {
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

    /// Writes an object under the next version and returns it as stored.
    pub(crate) fn put(&mut self, resource: &Resource, key: ObjectKey, mut object: Value, at: Duration) -> Arc<Value> {
        self.version += 1;
        object::set(&mut object, &["metadata", "resourceVersion"], Some(self.version.to_string().into()));
        let object = Arc::new(object);
        let objects = self.objects.entry(resource.clone()).or_default();
        let previous = objects.insert(key.clone(), object.clone());
        let kind = if previous.is_some() { EventKind::Modified } else { EventKind::Added };
        self.record(Event {
            resource: resource.clone(),
            key,
            version: self.version,
            kind,
            object: object.clone(),
            previous,
            at,
        });
        object
    }

    /// Removes an object and returns its last state under the version of the removal.
    pub(crate) fn remove(&mut self, resource: &Resource, key: &ObjectKey, at: Duration) -> Option<Arc<Value>> {
        let previous = self.objects.get_mut(resource)?.remove(key)?;
        self.version += 1;
        let mut last = Value::clone(&previous);
        object::set(&mut last, &["metadata", "resourceVersion"], Some(self.version.to_string().into()));
        let object = Arc::new(last);
        self.record(Event {
            resource: resource.clone(),
            key: key.clone(),
            version: self.version,
            kind: EventKind::Deleted,
            object: object.clone(),
            previous: Some(previous),
            at,
        });
        Some(object)
    }

    /// Removes a resource with all its objects, without events: it is not served any more.
    pub(crate) fn forget(&mut self, resource: &Resource) {
        self.objects.remove(resource);
    }

    /// Events newer than `version`, oldest first.
    pub(crate) fn events_after(&self, version: u64) -> Result<impl Iterator<Item = &Arc<Event>>, TooOld> {
        if version < self.oldest {
            return Err(TooOld { asked: version, oldest: self.oldest });
        }
        let from = self.events.partition_point(|event| event.version <= version);
        Ok(self.events.range(from..))
    }

    /// Drops all past events: no watch starts from before now.
    pub(crate) fn compact(&mut self) {
        self.events.clear();
        self.oldest = self.version;
    }

    fn record(&mut self, event: Event) {
        self.events.push_back(Arc::new(event));
        while self.events.len() > self.window {
            if let Some(event) = self.events.pop_front() {
                self.oldest = event.version;
            }
        }
    }
}

fn in_namespace<'a>(
    objects: Option<&'a Objects>,
    namespace: Option<&'a str>,
) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)> {
    let from = match namespace {
        Some(namespace) => ObjectKey::namespaced(namespace, ""),
        // Sorts before all others: no namespace, no name.
        None => ObjectKey::cluster_scoped(""),
    };
    objects
        .into_iter()
        .flat_map(move |objects| objects.range(from.clone()..))
        .take_while(move |(key, _)| namespace.is_none() || key.namespace() == namespace)
}
