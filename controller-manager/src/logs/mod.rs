//! Logs: lines as klog writes them, on standard error.
//!
//! Libraries log with tracing: a short message without interpolation, and fields. Information is printed at `--v=0`, or
//! from the verbosity in the event's field `v` on, debug events from 4 on and traces from 6 on.

mod fields;
mod filter;
mod flags;
mod layer;
mod line;
mod options;
mod pattern;
mod quote;
mod streams;
mod zone;

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::tz::TimeZone;
use kcm_framework::clock::{Clock, SystemClock};
use tracing_subscriber::layer::SubscriberExt as _;

pub(crate) use filter::Filter;
pub(crate) use flags::log_flags;
pub(crate) use layer::UNSTRUCTURED;
pub(crate) use options::LogOptions;

use layer::{KlogLayer, SharedFilter};
use streams::Streams;

/// The logs of this process, which may change while it runs. Dropping it writes all buffers.
pub(crate) struct Logs {
    filter: SharedFilter,
    streams: Arc<Streams>,
    flush_frequency: Duration,
}

impl Logs {
    /// Sets up the logs of the process. Does nothing if a host has set up its own logs.
    pub(crate) fn set_up(options: LogOptions) -> Self {
        let streams = Streams::of_process(options.format, options.split);
        let (logs, layer) = Self::new(options, streams, Arc::new(SystemClock), zone::of_machine(), std::process::id());
        let subscriber = tracing_subscriber::registry().with(layer);
        drop(tracing::subscriber::set_global_default(subscriber));
        logs
    }

    fn new(
        options: LogOptions,
        streams: Streams,
        clock: Arc<dyn Clock>,
        zone: TimeZone,
        process: u32,
    ) -> (Self, KlogLayer) {
        let LogOptions { format, filter, split: _, flush_frequency } = options;
        let filter: SharedFilter = Arc::new(RwLock::new(Arc::new(filter)));
        let streams = Arc::new(streams);
        let layer =
            KlogLayer { format, filter: Arc::clone(&filter), streams: Arc::clone(&streams), clock, zone, process };
        (Self { filter, streams, flush_frequency }, layer)
    }

    /// Replaces the filter from now on.
    pub(crate) fn set_filter(&self, filter: Filter) {
        *self.filter.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(filter);
        tracing::callsite::rebuild_interest_cache();
    }

    /// Sets the verbosity from now on, and keeps the verbosity of modules.
    pub(crate) fn verbosity(&self) -> impl Fn(i32) + Send + Sync + 'static {
        let shared = Arc::clone(&self.filter);
        move |verbosity| {
            let mut filter = shared.write().unwrap_or_else(PoisonError::into_inner);
            *filter = Arc::new(Filter::clone(&filter).verbosity(verbosity));
            drop(filter);
            tracing::callsite::rebuild_interest_cache();
        }
    }

    /// Writes all buffers, for ever, at the interval of `--log-flush-frequency`.
    pub(crate) async fn flush_periodically(&self) -> Infallible {
        let first = tokio::time::Instant::now() + self.flush_frequency;
        let mut ticks = tokio::time::interval_at(first, self.flush_frequency);
        loop {
            ticks.tick().await;
            self.streams.flush();
        }
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.streams.flush();
    }
}

#[cfg(test)]
pub(crate) mod tests;
