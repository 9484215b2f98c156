//! Event handlers that are removed together.

use std::sync::Arc;

use parking_lot::Mutex;

type Remove = Box<dyn FnOnce() + Send>;

/// The event handlers that were added through one handle of a factory. A controller whose initialization fails half-way
/// removes them all.
///
/// See [`Factory::with_registrations`](crate::Factory::with_registrations). Cheap to clone; all clones share one set.
#[derive(Clone)]
pub struct HandlerRegistrations {
    /// `None` once the handlers are kept.
    removals: Arc<Mutex<Option<Vec<Remove>>>>,
}

impl HandlerRegistrations {
    /// No registrations.
    #[must_use]
    pub fn new() -> Self {
        Self { removals: Arc::new(Mutex::new(Some(Vec::new()))) }
    }

    /// Removes the event handlers added so far; later ones are recorded again.
    pub fn remove_all(&self) {
        let removals = self.removals.lock().as_mut().map(std::mem::take);
        removals.into_iter().flatten().for_each(|remove| remove());
    }

    /// Keeps the event handlers, and records no more.
    pub fn keep(&self) {
        *self.removals.lock() = None;
    }

    pub(crate) fn record(&self, remove: impl FnOnce() + Send + 'static) {
        if let Some(removals) = &mut *self.removals.lock() {
            removals.push(Box::new(remove));
        }
    }
}

impl Default for HandlerRegistrations {
    fn default() -> Self {
        Self::new()
    }
}
