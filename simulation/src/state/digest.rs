//! The digest of a state: the store, and what is beside it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kcm_sandbox_apiserver::{ObjectKey, Resource, Verb};
use serde_json::Value;

use super::colours::{colours, content};
use super::mask::{Masked, masked};
use super::{hash_of, hash_of_multiset, hash_of_text};
use crate::history::Objects;

/// The number of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u64);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Everything of a state that is not in the store.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The queues of all loops.
    pub loops: Vec<LoopQueue>,
    /// The events that wait for a cache, in their order for each cache.
    pub events: Vec<EventOnTheWay>,
    /// The requests that have no response yet.
    pub requests: Vec<RequestInFlight>,
    /// The processes that were started.
    pub processes: Vec<ProcessState>,
    /// Number of actions of the script that were carried out.
    pub phase: usize,
}

/// The queue of one loop.
#[derive(Debug, Clone, Default)]
pub struct LoopQueue {
    /// Number of the process.
    pub process: u32,
    /// Name of the loop.
    pub name: String,
    /// The resource whose objects the keys name.
    pub resource: Option<Resource>,
    /// The keys, in the order in which they are taken.
    pub keys: Vec<KeyInQueue>,
}

/// A key in a queue.
#[derive(Debug, Clone)]
pub struct KeyInQueue {
    /// The object that the key names.
    pub key: ObjectKey,
    /// The place of the key, such as `ready` or `parked`.
    pub place: &'static str,
    /// Time until a delayed key is due. It is rounded to seconds.
    pub due_in: Option<Duration>,
    /// Number of failures in a row.
    pub failures: u32,
    /// Number of its writes that are pending.
    pub pending_writes: usize,
}

/// An event of a watch that a cache has not received.
#[derive(Debug, Clone)]
pub struct EventOnTheWay {
    /// Number of the process.
    pub process: u32,
    /// The cache that has not received the events.
    pub cache: String,
    /// Kind of the event, such as `ADDED`.
    pub kind: &'static str,
    /// The resource of the object.
    pub resource: Resource,
    /// The object as the event has it.
    pub object: Arc<Value>,
}

/// A request without a response.
#[derive(Debug, Clone)]
pub struct RequestInFlight {
    /// Number of the process.
    pub process: u32,
    /// Name of the loop.
    pub loop_name: String,
    /// The verb of the request.
    pub verb: Verb,
    /// The resource of the request.
    pub resource: Resource,
    /// The object that is read or written.
    pub key: ObjectKey,
    /// `true` if the API server has performed the request.
    pub is_performed: bool,
}

/// The state of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessState {
    /// `true` if the process runs.
    pub is_alive: bool,
    /// `true` if the process holds its lease.
    pub leads: bool,
    /// `true` if the fence lets its writes pass.
    pub fence_is_open: bool,
}

/// Returns the digest of a state.
#[must_use]
pub fn digest(objects: &Objects, around: &Surroundings) -> Digest {
    let objects = masked(objects);
    let colours: Vec<u64> = colours(&objects).into_iter().map(|colour| colour.0).collect();
    let known = Known::of(&objects, &colours);
    let loops = around.loops.iter().map(|queue| {
        let keys = queue.keys.iter().map(|key| {
            let due = key.due_in.map_or(0, |due| 1 + due.as_millis().saturating_add(500) / 1000);
            let numbers = [u64::try_from(due).unwrap_or(u64::MAX), u64::from(key.failures), key.pending_writes as u64];
            let object = known.colour(queue.resource.as_ref(), &key.key);
            hash_of("key", [hash_of_text(key.place), object].into_iter().chain(numbers))
        });
        hash_of("loop", [u64::from(queue.process), hash_of_text(&queue.name), hash_of("keys", keys)])
    });
    let mut of_caches = BTreeMap::<(u32, &str), Vec<u64>>::new();
    for event in &around.events {
        let key = key_of(&event.object);
        let object = known.colour(Some(&event.resource), &key);
        of_caches
            .entry((event.process, &event.cache))
            .or_default()
            .push(hash_of("event", [hash_of_text(event.kind), object, content_of(event)]));
    }
    let events = of_caches.into_iter().map(|((process, cache), events)| {
        hash_of("cache", [u64::from(process), hash_of_text(cache), hash_of("events", events)])
    });
    let requests = around.requests.iter().map(|request| {
        let object = known.colour(Some(&request.resource), &request.key);
        let verb = hash_of_text(&format!("{:?}", request.verb));
        let parts = [u64::from(request.process), hash_of_text(&request.loop_name), verb, object];
        hash_of("request", parts.into_iter().chain([u64::from(request.is_performed)]))
    });
    let processes = around
        .processes
        .iter()
        .map(|process| hash_of("process", [process.is_alive, process.leads, process.fence_is_open].map(u64::from)));
    Digest(hash_of(
        "state",
        [
            hash_of_multiset("objects", colours.iter().copied()),
            hash_of_multiset("loops", loops),
            hash_of_multiset("caches", events),
            hash_of_multiset("requests", requests),
            hash_of("processes", processes),
            around.phase as u64,
        ],
    ))
}

/// The colours of the objects by their keys.
struct Known<'a>(BTreeMap<(&'a Resource, &'a ObjectKey), u64>);

impl<'a> Known<'a> {
    fn of(objects: &'a [Masked], colours: &[u64]) -> Self {
        Self(objects.iter().zip(colours).map(|(object, colour)| ((&object.resource, &object.key), *colour)).collect())
    }

    /// The colour of the object of that key. An object that does not exist is known by its name, without what may be
    /// generated.
    fn colour(&self, resource: Option<&Resource>, key: &ObjectKey) -> u64 {
        if let Some(colour) = resource.and_then(|resource| self.0.get(&(resource, key))) {
            return *colour;
        }
        let stem = key.name().rsplit_once('-').map_or(key.name(), |(stem, _)| stem);
        hash_of("no object", [hash_of_text(key.namespace().unwrap_or_default()), hash_of_text(stem)])
    }
}

fn key_of(object: &Value) -> ObjectKey {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    match metadata["namespace"].as_str() {
        Some(namespace) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster_scoped(name),
    }
}

/// The content of the object of an event, which may be older than the object of the store.
fn content_of(event: &EventOnTheWay) -> u64 {
    let objects = BTreeMap::from([(
        event.resource.clone(),
        BTreeMap::from([(key_of(&event.object), Arc::clone(&event.object))]),
    )]);
    let masked = masked(&objects);
    masked.first().map_or(0, |object| content(&object.content, &[0]))
}
