//! The state that event handlers and reconciles share.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::desired::Desired;
use super::memory::Memories;
use super::reports::Reports;

/// The shared state. No cache is read while one of its locks is held, because event handlers of the caches take them.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) desired: Mutex<Desired>,
    pub(super) memories: Memories,
    pub(super) reports: Reports,
    /// Unique names of volumes by the names of their attachments, if no persistent volume leads from one to the other.
    pub(super) by_attachment: Mutex<HashMap<String, Box<str>>>,
}
