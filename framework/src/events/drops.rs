//! Counts events that are dropped.

use std::sync::Arc;

use kcm_api::InternedStr;

use crate::metrics::Metrics;

/// The reason why an event is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    /// Too many events waited to be sent.
    QueueFull,
    /// The manager has stopped, or stops before it could be sent.
    Stopped,
    /// The component records events about the object too often.
    RateLimited,
    /// The API server refuses it.
    Rejected,
    /// Every attempt to send it failed.
    GivenUp,
}

impl Dropped {
    const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Stopped => "stopped",
            Self::RateLimited => "rate_limited",
            Self::Rejected => "rejected",
            Self::GivenUp => "given_up",
        }
    }
}

/// The counters of dropped events of one component. Cheap to clone.
#[derive(Clone)]
pub(super) struct Drops {
    component: InternedStr,
    /// Absent for a broadcaster outside of a manager.
    metrics: Option<Arc<Metrics>>,
}

impl Drops {
    pub(super) fn of(component: InternedStr, metrics: Option<Arc<Metrics>>) -> Self {
        Self { component, metrics }
    }

    pub(super) fn count(&self, dropped: Dropped, events: usize) {
        if let Some(metrics) = &self.metrics {
            metrics.events_dropped(&self.component, dropped.as_str(), events);
        }
    }
}
