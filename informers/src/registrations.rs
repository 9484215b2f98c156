//! HandlerRegistrations that end together.

use std::sync::Arc;

use parking_lot::Mutex;

type End = Box<dyn FnOnce() + Send>;

/// The subscriptions made through one handle of a factory, so that who fails half-way leaves none behind.
///
/// See [`Factory::noting`](crate::Factory::noting). Cheap to clone; all clones are one set.
#[derive(Clone)]
pub struct HandlerRegistrations {
    /// None once they are there to stay.
    ends: Arc<Mutex<Option<Vec<End>>>>,
}

impl HandlerRegistrations {
    /// No subscriptions yet.
    #[must_use]
    pub fn new() -> Self {
        Self { ends: Arc::new(Mutex::new(Some(Vec::new()))) }
    }

    /// Ends those noted so far; later ones are noted again.
    pub fn end(&self) {
        let ends = self.ends.lock().as_mut().map(std::mem::take);
        ends.into_iter().flatten().for_each(|end| end());
    }

    /// Lets them stay, and notes no more.
    pub fn keep(&self) {
        *self.ends.lock() = None;
    }

    pub(crate) fn note(&self, end: impl FnOnce() + Send + 'static) {
        if let Some(ends) = &mut *self.ends.lock() {
            ends.push(Box::new(end));
        }
    }
}

impl Default for HandlerRegistrations {
    fn default() -> Self {
        Self::new()
    }
}
