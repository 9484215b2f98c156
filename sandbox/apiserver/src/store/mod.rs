//! The store: objects, resource versions and the window of past events. No clock, no lock.

pub(crate) mod storage;
pub(crate) mod stored;
