//! What the sessions of one loop share.

use std::sync::Arc;

use super::NameGenerator;
use crate::clock::Clock;
use crate::events::Recorder;

/// What the sessions of one loop share beside clients and caches.
#[derive(Clone)]
pub(crate) struct LoopContext {
    /// The generator of names for new objects.
    pub(crate) names: NameGenerator,
    /// The wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// The recorder of the controller.
    pub(crate) recorder: Recorder,
}
