//! The registrations of one user of a factory, which end together.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

type Remove = Box<dyn FnOnce() + Send>;

/// The registrations of one user of a [`Factory`](crate::Factory): the informers that it uses, and the event handlers
/// that it has added. A controller that is stopped, or whose initialization fails half-way, removes them all.
///
/// The registrations are made through [`Factory::with_registrations`](crate::Factory::with_registrations). An informer
/// whose last user has removed its registrations stops. Cheap to clone; all clones are one set, and dropping the last
/// clone removes what is left.
#[derive(Clone, Default)]
pub struct Registrations(Arc<Registered>);

#[derive(Default)]
struct Registered {
    removals: Mutex<Vec<Remove>>,
}

impl Registrations {
    /// Returns an empty set of registrations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes everything that was registered so far, the latest first. Later registrations are recorded again.
    ///
    /// # Panics
    /// When called from within an event handler of one of the informers.
    pub fn remove_all(&self) {
        self.0.remove_all();
    }

    pub(crate) fn recorder(&self) -> Recorder {
        Recorder(Some(Arc::downgrade(&self.0)))
    }
}

impl Registered {
    fn remove_all(&self) {
        let removals = std::mem::take(&mut *self.removals.lock());
        removals.into_iter().rev().for_each(|remove| remove());
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.remove_all();
    }
}

/// The record in which the handles of one user note how to undo their registrations.
///
/// It does not keep the registrations alive: an event handler may own a handle of an informer, and would never be
/// dropped.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Option<Weak<Registered>>);

impl Recorder {
    /// Records how to undo a registration. Undoes it at once if the registrations have ended already, and never if the
    /// user has none.
    pub(crate) fn record(&self, remove: impl FnOnce() + Send + 'static) {
        let Some(registrations) = &self.0 else { return };
        match registrations.upgrade() {
            Some(registrations) => registrations.removals.lock().push(Box::new(remove)),
            None => remove(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(recorder: &Recorder, name: &'static str, removed: &Arc<Mutex<Vec<&'static str>>>) {
        let removed = Arc::clone(removed);
        recorder.record(move || removed.lock().push(name));
    }

    #[test]
    fn the_latest_is_removed_first_and_each_once() {
        let (registrations, removed) = (Registrations::new(), Arc::default());
        let recorder = registrations.recorder();
        recorded(&recorder, "first", &removed);
        recorded(&recorder, "second", &removed);
        registrations.remove_all();
        recorded(&recorder, "third", &removed);
        drop(registrations.clone());
        assert_eq!(*removed.lock(), ["second", "first"]);
        drop(registrations);
        assert_eq!(*removed.lock(), ["second", "first", "third"]);
    }

    #[test]
    fn what_is_registered_after_the_end_is_removed_at_once_and_without_registrations_never() {
        let removed = Arc::default();
        recorded(&Registrations::new().recorder(), "late", &removed);
        recorded(&Recorder::default(), "never", &removed);
        assert_eq!(*removed.lock(), ["late"]);
    }
}
