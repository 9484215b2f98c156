//! Events about objects, as controllers record them.
//!
//! A [`Recorder`] accepts occurrences without waiting; a [`Broadcaster`] correlates and sends them in the
//! background. Both belong to one component, whose client and rate limit they use.

mod broadcaster;
mod correlate;
mod drops;
mod event;
mod lru;
mod recorders;

pub use broadcaster::{Broadcaster, Recorder};
pub use correlate::{Correlator, Decision};
pub use event::{CoreEvent, Event, EventMeta, EventSource, EventText, EventType, ObjectReference, Occurrence};
pub(crate) use recorders::Recorders;
