//! The events about Pods.

use kcm_framework::events::{Event, EventText};

/// The claim of a volume could not be created.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailedBinding<'a> {
    pub(super) volume: &'a str,
    pub(super) error: &'a str,
}

impl Event for FailedBinding<'_> {
    fn text(&self) -> EventText<'_> {
        EventText::warning("FailedBinding", format!("ephemeral volume {}: {}", self.volume, self.error))
    }
}
