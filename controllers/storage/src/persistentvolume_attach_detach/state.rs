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
    pub(super) names: AttachmentNames,
}

/// Unique names of volumes by the names of their attachments, if no persistent volume leads from one to the other.
#[derive(Debug, Default)]
pub(super) struct AttachmentNames(Mutex<ByAttachment>);

#[derive(Debug, Default)]
struct ByAttachment {
    volumes: HashMap<String, Box<str>>,
    names: HashMap<Box<str>, Vec<String>>,
}

impl AttachmentNames {
    /// Replaces the names of the attachments of a volume.
    pub(super) fn set(&self, volume: &str, names: Vec<String>) {
        let mut all = self.0.lock();
        for name in all.names.remove(volume).unwrap_or_default() {
            all.volumes.remove(&name);
        }
        if !names.is_empty() {
            all.volumes.extend(names.iter().map(|name| (name.clone(), volume.into())));
            all.names.insert(volume.into(), names);
        }
    }

    /// Returns the unique name of the volume of an attachment.
    pub(super) fn volume(&self, attachment: &str) -> Option<String> {
        self.0.lock().volumes.get(attachment).map(ToString::to_string)
    }
}
