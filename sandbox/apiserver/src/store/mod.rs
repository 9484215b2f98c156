//! Objects, their versions, the window of past events, and what selects them. No clock, no lock.

pub(crate) mod selection;
pub(crate) mod selector_error;
pub(crate) mod storage;
pub(crate) mod stored;
