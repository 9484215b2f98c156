//! Stores the objects of a reflector: the part of it that depends on their type.
//!
//! Everything else of a reflector is compiled once, however many types of objects there are: 20 KB of code for each.

use std::sync::Arc;

use kcm_api::{ResourceVersion, View};
use tokio::time::Instant;

use crate::commit::{Commit, CommitStep};
use crate::decode::{decode, decode_otherwise};
use crate::envelope::{Event, EventKind, Object};
use crate::request::Form;
use crate::shared_informer::{SharedInformer, Staged};
use crate::store::{Replacement, is_same_version};
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

    /// Begins to replace the contents of the cache by the list, which is complete at that version. A long list needs
    /// further steps of [`work`](Self::work), and what is applied meanwhile waits for them.
    fn commit(&mut self, version: ResourceVersion);

    /// Returns `true` until the last commit has ended. No response should be read meanwhile.
    fn is_committing(&self) -> bool;

    /// Moves the last sync resource version, as a bookmark does.
    fn advance(&mut self, version: ResourceVersion);

    /// Empties the cache, as all objects of a resource go with it.
    fn empty(&mut self);

    /// Repairs what a panic may have left incomplete, in steps of [`work`](Self::work).
    fn repair(&mut self);

    /// Takes one short step of what is to be done beside events: a commit, the objects that an event handler is shown.
    /// Returns `true` if there is more to do now.
    fn work(&mut self, now: Instant) -> bool;

    /// When [`work`](Self::work) has something to do next.
    fn next_work(&self) -> Option<Instant>;
}

/// The store of the informers of one view.
pub(crate) struct ViewStore<V> {
    shared: Arc<SharedInformer<V>>,
    staged: Staged<V>,
    committing: Option<Commit<V>>,
    /// The contents that a commit has replaced, until they are dropped.
    replaced: Option<Replacement<V>>,
    /// The events after the list, from the same chunk of its response.
    held: Vec<Held<V>>,
    /// Whether a panic may have left the indexes incomplete.
    must_rebuild: bool,
}

enum Held<V> {
    Object { deleted: bool, decoded: Result<V, Undecodable> },
    Version(ResourceVersion),
}

impl<V: View> ViewStore<V> {
    pub(crate) fn new(shared: Arc<SharedInformer<V>>) -> Self {
        let (staged, held) = (Staged::default(), Vec::new());
        Self { shared, staged, committing: None, replaced: None, held, must_rebuild: false }
    }

    fn stage_or_remove(&mut self, deleted: bool, decoded: Result<V, Undecodable>) {
        let Staged { objects, undecodable_objects } = &mut self.staged;
        match decoded {
            Ok(object) => {
                let key = &object.meta().key;
                undecodable_objects.forget(key);
                if deleted {
                    objects.remove_key(key);
                    return;
                }
                // An unchanged object keeps its copy in the cache: a relist does not need twice the memory.
                let known = self.shared.store.get(key).filter(|known| is_same_version(known.meta(), object.meta()));
                objects.insert(&known.unwrap_or_else(|| Arc::new(object)));
            }
            Err(Undecodable::Named(object)) if deleted => {
                objects.remove_key(&object.key);
                undecodable_objects.forget(&object.key);
            }
            Err(undecodable) => {
                undecodable_objects.note(undecodable);
            }
        }
    }

    fn apply(&mut self, deleted: bool, decoded: Result<V, Undecodable>) {
        if self.committing.is_some() {
            return self.held.push(Held::Object { deleted, decoded });
        }
        match (deleted, decoded) {
            (false, Ok(object)) => self.shared.put(&Arc::new(object)),
            (true, Ok(object)) => self.shared.remove(Arc::new(object)),
            (false, Err(undecodable)) => self.shared.put_undecodable(undecodable),
            (true, Err(undecodable)) => self.shared.remove_undecodable(undecodable),
        }
    }
}

impl<V: View> ViewStore<V> {
    /// Takes the next step of the commit, and applies what has waited for its end.
    fn continue_commit(&mut self) {
        let Some(commit) = &mut self.committing else { return };
        match self.shared.continue_commit(commit) {
            CommitStep::Continues => {}
            CommitStep::Exchanged(replaced) => self.replaced = Some(replaced),
            CommitStep::Ended => {
                self.committing = None;
                for held in std::mem::take(&mut self.held) {
                    match held {
                        Held::Object { deleted, decoded } => self.apply(deleted, decoded),
                        Held::Version(version) => self.advance(version),
                    }
                }
            }
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
        // A step that panicked may have left one.
        while self.committing.is_some() {
            self.continue_commit();
        }
        self.committing = Some(self.shared.begin_commit(std::mem::take(&mut self.staged), version));
        self.continue_commit();
    }

    fn is_committing(&self) -> bool {
        self.committing.is_some()
    }

    fn advance(&mut self, version: ResourceVersion) {
        if self.committing.is_some() {
            return self.held.push(Held::Version(version));
        }
        self.shared.advance(version);
    }

    fn empty(&mut self) {
        self.committing = None;
        self.held = Vec::new();
        self.shared.empty();
    }

    fn repair(&mut self) {
        self.must_rebuild = true;
    }

    fn work(&mut self, now: Instant) -> bool {
        if self.committing.is_none() && std::mem::take(&mut self.must_rebuild) {
            self.committing = Some(self.shared.begin_rebuild());
        }
        if self.committing.is_some() {
            self.continue_commit();
            return true;
        }
        if let Some(replaced) = &mut self.replaced {
            if replaced.drop_a_part() {
                self.replaced = None;
            }
            return true;
        }
        self.shared.work(now)
    }

    fn next_work(&self) -> Option<Instant> {
        self.shared.next_work()
    }
}
