//! Stores the objects of a reflector: the part of it that depends on their type.
//!
//! Everything else of a reflector is compiled once, however many types of objects there are: 20 KB of code for each.

use std::sync::Arc;

use kcm_api::{ResourceVersion, View};
use tokio::time::Instant;

use crate::decode::{decode, decode_otherwise};
use crate::envelope::{Event, EventKind, Object};
use crate::request::Form;
use crate::shared_informer::{SharedInformer, Staged};
use crate::store::is_same_version;
use crate::undecodable::Undecodable;

/// The destination of an object that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The list that is not complete yet.
    Staged,
    Cache,
    /// Nowhere: the exchange ends.
    Dropped,
}

/// The cache of a reflector, and the list that it reads and that is not complete yet.
pub(crate) trait ReflectorStore: Send {
    /// The form in which objects are asked for.
    fn form(&self) -> Form;

    /// Reads the object of an event, and puts it at the place that `destination` returns for its version, or removes
    /// it. `line` is the whole event, if it is JSON.
    fn read(
        &mut self,
        event: Event<'_>,
        line: Option<&[u8]>,
        destination: &mut dyn FnMut(Option<ResourceVersion>) -> Destination,
    );

    /// Records an object of which nothing can be read, in the cache or the list.
    fn note_unreadable(&mut self, error: String, destination: Destination);

    /// Reads the object of a page, and adds it to the list.
    fn stage(&mut self, item: Object<'_>);

    fn unstage(&mut self);

    /// Replaces the contents of the cache by the list, which is complete at that version.
    fn commit(&mut self, version: ResourceVersion);

    /// Moves the last sync resource version, as a bookmark does.
    fn advance(&self, version: ResourceVersion);

    /// Empties the cache, as all objects of a resource go with it.
    fn empty(&self);

    /// Repairs what a panic may have left incomplete.
    fn repair(&self);

    /// Shows all objects to the event handlers whose resync is due.
    fn resync(&self, now: Instant);

    /// When the next resync is due.
    fn next_resync(&self) -> Option<Instant>;
}

/// The store of the informers of one view.
pub(crate) struct ViewStore<V> {
    shared: Arc<SharedInformer<V>>,
    staged: Staged<V>,
}

impl<V: View> ViewStore<V> {
    pub(crate) fn new(shared: Arc<SharedInformer<V>>) -> Self {
        Self { shared, staged: Staged::default() }
    }

    fn stage_or_remove(&mut self, deleted: bool, decoded: Result<V, Undecodable>) {
        let Staged { objects, undecodable_objects } = &mut self.staged;
        match decoded {
            Ok(object) => {
                let key = &object.meta().key;
                undecodable_objects.forget(key);
                if deleted {
                    objects.retain(|staged| staged.meta().key != *key);
                    return;
                }
                // An unchanged object keeps its copy in the cache: a relist does not need twice the memory.
                let known = self.shared.store.get(key).filter(|known| is_same_version(known.meta(), object.meta()));
                objects.push(known.unwrap_or_else(|| Arc::new(object)));
            }
            Err(Undecodable::Named(object)) if deleted => {
                objects.retain(|staged| staged.meta().key != object.key);
                undecodable_objects.forget(&object.key);
            }
            Err(undecodable) => {
                undecodable_objects.note(undecodable);
            }
        }
    }

    fn apply(&self, deleted: bool, decoded: Result<V, Undecodable>) {
        match (deleted, decoded) {
            (false, Ok(object)) => self.shared.put(Arc::new(object)),
            (true, Ok(object)) => self.shared.remove(Arc::new(object)),
            (false, Err(undecodable)) => self.shared.put_undecodable(undecodable),
            (true, Err(undecodable)) => self.shared.remove_undecodable(undecodable),
        }
    }
}

impl<V: View> ReflectorStore for ViewStore<V> {
    fn form(&self) -> Form {
        Form::of::<V>()
    }

    fn read(
        &mut self,
        event: Event<'_>,
        line: Option<&[u8]>,
        destination: &mut dyn FnMut(Option<ResourceVersion>) -> Destination,
    ) {
        let decoded = decode::<V>(event.object).or_else(|undecodable| match line {
            Some(line) => decode_otherwise(line, event, undecodable),
            None => Err(undecodable),
        });
        let version = match &decoded {
            Ok(object) => Some(object.meta().resource_version.clone()),
            Err(undecodable) => undecodable.resource_version(),
        };
        let deleted = event.kind == EventKind::Deleted;
        match destination(version) {
            Destination::Staged => self.stage_or_remove(deleted, decoded),
            Destination::Cache => self.apply(deleted, decoded),
            Destination::Dropped => {}
        }
    }

    fn note_unreadable(&mut self, error: String, destination: Destination) {
        let undecodable = Undecodable::Nameless(error);
        match destination {
            Destination::Staged => drop(self.staged.undecodable_objects.note(undecodable)),
            Destination::Cache => self.shared.put_undecodable(undecodable),
            Destination::Dropped => {}
        }
    }

    fn stage(&mut self, item: Object<'_>) {
        self.stage_or_remove(false, decode::<V>(item));
    }

    fn unstage(&mut self) {
        self.staged = Staged::default();
    }

    fn commit(&mut self, version: ResourceVersion) {
        self.shared.commit(std::mem::take(&mut self.staged), version);
    }

    fn advance(&self, version: ResourceVersion) {
        self.shared.advance(version);
    }

    fn empty(&self) {
        self.shared.empty();
    }

    fn repair(&self) {
        self.shared.store.rebuild_indexes();
    }

    fn resync(&self, now: Instant) {
        self.shared.resync(now);
    }

    fn next_resync(&self) -> Option<Instant> {
        self.shared.next_resync()
    }
}
