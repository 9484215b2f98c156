//! Notes of a session about its reconcile: decisions, writes and events.

use std::borrow::Cow;

use kcm_api::ObjectKey;
use parking_lot::Mutex;

/// The most notes of one reconcile; what follows is only counted.
const MOST: usize = 32;

/// The notes of one reconcile, in the order of time.
#[derive(Debug)]
pub struct Notes {
    is_enabled: bool,
    noted: Mutex<Noted>,
}

/// Notes that were taken from a reconcile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Noted {
    pub(super) notes: Vec<Note>,
    /// Number of notes that were left out.
    pub(super) left_out: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    /// A sentence of the controller.
    Words(Cow<'static, str>),
    /// Writes of one kind.
    Wrote(Wrote),
    /// Events of one reason.
    Recorded {
        reason: Box<str>,
        /// The message of the first event.
        message: Box<str>,
        count: u32,
    },
}

/// A resource: one of a cache of the loop, or another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResourceName {
    Cache(usize),
    Other(Box<str>),
}

/// The writes of one reconcile with the same verb, resource and subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrote {
    pub(super) verb: &'static str,
    pub(super) resource: ResourceName,
    pub(super) subresource: Option<&'static str>,
    /// The object of the first write.
    pub(super) object: Option<ObjectKey>,
    pub(super) count: u32,
    pub(super) failed: u32,
    /// The error of the first failed write.
    pub(super) error: Option<Box<str>>,
}

/// A write, as the session notes it.
#[derive(Clone, Copy)]
pub struct WriteNote<'a> {
    /// The verb of the request.
    pub verb: &'static str,
    /// The position of the resource among the caches of the loop, if it is there.
    pub cache: Option<usize>,
    /// Name of the resource, for a resource without a cache.
    pub resource: &'a dyn std::fmt::Display,
    /// Name of the subresource, if any.
    pub subresource: Option<&'static str>,
    /// Key of the object. `None` for a request about several objects.
    pub object: Option<&'a ObjectKey>,
}

impl Notes {
    /// An empty set of notes. If not enabled, it stays empty.
    #[must_use]
    pub fn new(is_enabled: bool) -> Self {
        Self { is_enabled, noted: Mutex::default() }
    }

    /// Takes the notes so far.
    #[must_use]
    pub fn take(&self) -> Noted {
        std::mem::take(&mut self.noted.lock())
    }

    /// Notes a sentence of the controller.
    pub fn words<W: Into<Cow<'static, str>>>(&self, words: impl FnOnce() -> W) {
        if self.is_enabled {
            let words = words().into();
            self.noted.lock().push(Note::Words(words));
        }
    }

    /// Notes an event that the controller recorded.
    pub fn recorded(&self, reason: &str, message: &str) {
        if !self.is_enabled {
            return;
        }
        let mut noted = self.noted.lock();
        let known = noted.notes.iter_mut().find_map(|note| match note {
            Note::Recorded { reason: known, count, .. } if **known == *reason => Some(count),
            Note::Recorded { .. } | Note::Words(_) | Note::Wrote(_) => None,
        });
        match known {
            Some(count) => *count = count.saturating_add(1),
            None => noted.push(Note::Recorded { reason: reason.into(), message: message.into(), count: 1 }),
        }
    }

    /// Notes a write that ended, with its error.
    pub fn wrote(&self, written: WriteNote<'_>, error: Option<&dyn std::fmt::Display>) {
        if !self.is_enabled {
            return;
        }
        let mut noted = self.noted.lock();
        let is_same = |wrote: &Wrote| {
            wrote.verb == written.verb
                && wrote.subresource == written.subresource
                && match (&wrote.resource, written.cache) {
                    (ResourceName::Cache(known), Some(cache)) => *known == cache,
                    (ResourceName::Other(known), None) => **known == *written.resource.to_string(),
                    (ResourceName::Cache(_), None) | (ResourceName::Other(_), Some(_)) => false,
                }
        };
        let known = noted.notes.iter_mut().find_map(|note| match note {
            Note::Wrote(wrote) if is_same(wrote) => Some(wrote),
            Note::Wrote(_) | Note::Words(_) | Note::Recorded { .. } => None,
        });
        if let Some(wrote) = known {
            wrote.count = wrote.count.saturating_add(1);
            wrote.failed = wrote.failed.saturating_add(u32::from(error.is_some()));
            if wrote.error.is_none() {
                wrote.error = error.map(|error| error.to_string().into());
            }
            return;
        }
        let other = || ResourceName::Other(written.resource.to_string().into());
        noted.push(Note::Wrote(Wrote {
            verb: written.verb,
            resource: written.cache.map_or_else(other, ResourceName::Cache),
            subresource: written.subresource,
            object: written.object.cloned(),
            count: 1,
            failed: u32::from(error.is_some()),
            error: error.map(|error| error.to_string().into()),
        }));
    }
}

impl Noted {
    fn push(&mut self, note: Note) {
        if self.notes.len() < MOST {
            self.notes.push(note);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn creation(object: &ObjectKey) -> WriteNote<'_> {
        WriteNote { verb: "create", cache: Some(1), resource: &"pods", subresource: None, object: Some(object) }
    }

    #[test]
    fn writes_and_events_of_one_kind_are_counted_with_the_first_object_and_error() {
        let notes = Notes::new(true);
        let keys = ["a", "b", "c"].map(|name| ObjectKey::namespaced("shop", name));
        notes.words(|| "2 pods are missing");
        for key in &keys {
            let error: Option<&dyn std::fmt::Display> = if key.name() == "b" { Some(&"no room") } else { None };
            notes.wrote(creation(key), error);
            notes.recorded("SuccessfulCreate", &format!("Created pod: {}", key.name()));
        }
        notes.wrote(WriteNote { verb: "delete", ..creation(&keys[0]) }, None);
        notes.wrote(WriteNote { cache: None, resource: &"leases", ..creation(&keys[0]) }, None);
        let Noted { notes, left_out } = notes.take();
        assert_eq!((notes.len(), left_out), (5, 0));
        assert_eq!(notes[0], Note::Words("2 pods are missing".into()));
        let Note::Wrote(wrote) = &notes[1] else { panic!("writes come next") };
        assert_eq!((wrote.count, wrote.failed, wrote.error.as_deref()), (3, 1, Some("no room")));
        assert_eq!(wrote.object.as_ref(), Some(&keys[0]));
        let Note::Recorded { message, count, .. } = &notes[2] else { panic!("then events") };
        assert_eq!((&**message, *count), ("Created pod: a", 3));
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let notes = Notes::new(true);
        for number in 0..MOST + 5 {
            notes.words(|| format!("sentence {number}"));
        }
        let taken = notes.take();
        assert_eq!((taken.notes.len(), taken.left_out), (MOST, 5));
        assert_eq!(notes.take(), Noted::default());
    }

    #[test]
    fn nothing_is_noted_where_it_is_disabled() {
        let notes = Notes::new(false);
        notes.words(|| "a");
        notes.recorded("a", "b");
        notes.wrote(creation(&ObjectKey::namespaced("shop", "a")), None);
        assert_eq!(notes.take(), Noted::default());
    }
}
