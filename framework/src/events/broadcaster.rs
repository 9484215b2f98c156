//! The event recorder and the broadcaster that sends its events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kcm_api::{InternedStr, ObjectKey, Resource};
use kcm_client::clock::Clock;
use kcm_client::{ApiClient, ApiError, Cause, Patch, Payload, Subresource};
use kcm_informers::is_storage_failure;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::correlate::{Correlator, Decision};
use super::drops::{Dropped, Drops};
use super::event::{CoreEvent, EventMeta, EventType, ObjectReference, Occurrence};
use crate::metrics::Metrics;

const EVENTS: Resource = Resource::namespaced("", "v1", "events", "Event");
const QUEUED: usize = 1000;
const TRIES: u32 = 12;
const BETWEEN_TRIES: Duration = Duration::from_secs(10);
/// The longest honoured `Retry-After`, as for lists: a load balancer under maintenance may ask for more and recover
/// sooner, and all other events of the component wait meanwhile.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(1);

/// An event recorder. Cheap to clone, and never waits.
///
/// # Guarantees
/// Events of one recorder are sent in order. When 1,000 wait to be sent, further ones are dropped, counted and logged.
#[derive(Clone)]
pub struct Recorder {
    component: InternedStr,
    queue: mpsc::Sender<Occurrence>,
    clock: Arc<dyn Clock>,
    dropped: Arc<AtomicU64>,
    drops: Drops,
}

impl Recorder {
    /// Records an event about an object at the current time.
    pub fn event(
        &self,
        regarding: &ObjectReference,
        event_type: EventType,
        reason: impl Into<InternedStr>,
        message: impl Into<String>,
    ) {
        let reason: InternedStr = reason.into();
        let occurrence = Occurrence {
            component: self.component.clone(),
            regarding: regarding.clone(),
            event_type,
            reason: reason.clone(),
            message: message.into(),
            at: self.clock.now(),
        };
        let slash = if regarding.namespace.is_empty() { "" } else { "/" };
        tracing::info!(
            object = %format_args!("{}{slash}{}", regarding.namespace, regarding.name),
            field_path = regarding.field_path,
            kind = regarding.kind,
            api_version = regarding.api_version,
            r#type = ?event_type,
            reason = &*reason,
            message = occurrence.message,
            "Event occurred"
        );
        match self.queue.try_send(occurrence) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(lost)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                self.drops.count(Dropped::QueueFull, 1);
                tracing::warn!(name = lost.regarding.name, reason = &*reason, "Event queue is full, dropped an event");
            }
            Err(mpsc::error::TrySendError::Closed(lost)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                self.drops.count(Dropped::Stopped, 1);
                tracing::debug!(
                    name = lost.regarding.name,
                    reason = &*reason,
                    "Event broadcaster has stopped, dropped an event"
                );
            }
        }
    }

    /// Number of events that were dropped because the queue was full or closed.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The sender of the events of one [`Recorder`] and its clones.
///
/// # Upstream
/// client-go's `EventBroadcaster` with its sink, one per controller: 12 tries 10 s apart, the first pause shortened at
/// random. An event that the server rejects is not tried again. Unlike upstream, queued events are sent at shutdown.
pub struct Broadcaster {
    client: ApiClient,
    queue: mpsc::Receiver<Occurrence>,
    drops: Drops,
    correlator: Correlator,
    /// The start of the time of the correlator.
    started: Instant,
    random: fastrand::Rng,
}

impl Broadcaster {
    /// A recorder for `component` and the broadcaster behind it, which sends through `client`.
    #[must_use]
    pub fn new(client: ApiClient, component: &str, clock: Arc<dyn Clock>, seed: u64) -> (Recorder, Self) {
        Self::counted(client, component, clock, None, seed)
    }

    /// As [`new`](Self::new), with dropped events in `metrics`.
    pub(super) fn counted(
        client: ApiClient,
        component: &str,
        clock: Arc<dyn Clock>,
        metrics: Option<Arc<Metrics>>,
        seed: u64,
    ) -> (Recorder, Self) {
        let (sender, queue) = mpsc::channel(QUEUED);
        let component: InternedStr = component.into();
        let drops = Drops::of(component.clone(), metrics);
        let recorder = Recorder { component, queue: sender, clock, dropped: Arc::default(), drops: drops.clone() };
        let random = fastrand::Rng::with_seed(seed);
        let (correlator, started) = (Correlator::default(), Instant::now());
        (recorder, Self { client, queue, drops, correlator, started, random })
    }

    /// Sends events until `cancel`, then, for at most `grace`, the queued ones, with one attempt each.
    ///
    /// Returns earlier when every recorder is dropped.
    pub async fn run(mut self, cancel: CancellationToken, grace: Duration) {
        self.send_until(cancel, grace).await;
    }

    /// As [`run`](Self::run); may be called again after a panic.
    pub(super) async fn send_until(&mut self, cancel: CancellationToken, grace: Duration) {
        loop {
            let occurrence = tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                next = self.queue.recv() => match next {
                    Some(occurrence) => occurrence,
                    None => return,
                },
            };
            let decision = self.correlator.decide(&occurrence, self.started.elapsed());
            self.send(&decision, TRIES, &cancel).await;
        }
        self.queue.close();
        let flush = async {
            while let Some(occurrence) = self.queue.recv().await {
                let decision = self.correlator.decide(&occurrence, self.started.elapsed());
                self.send(&decision, 1, &cancel).await;
            }
        };
        if tokio::time::timeout(grace, flush).await.is_err() {
            // The event that was being sent is lost, too.
            self.drops.count(Dropped::Stopped, self.queue.len() + 1);
            tracing::warn!(unsent = self.queue.len(), "Stopped before all events were sent");
        }
    }

    /// Sends an event; `cancel` ends the current delay, and the current attempt is the last.
    async fn send(&mut self, decision: &Decision, tries: u32, cancel: &CancellationToken) {
        let (event, is_repeated) = match decision {
            Decision::Create(event) => (event, false),
            Decision::Repeat(event) => (event, true),
            Decision::Drop => return self.drops.count(Dropped::RateLimited, 1),
        };
        for tried in 1..=tries {
            // An outage uses up one attempt and not all of them. After `cancel` the attempt is made nevertheless.
            let _cancelled = cancel.run_until_cancelled(self.client.connection().reachable()).await;
            let Err(error) = self.write(event, is_repeated).await else { return };
            if !is_worth_another_try(&error) {
                let is_there = error.is_already_exists() || error.is_probably_created();
                if is_there || error.is_namespace_terminating() {
                    tracing::trace!(event = event.metadata.name, error = error.message(), "Server rejected event");
                } else {
                    self.drops.count(Dropped::Rejected, 1);
                    tracing::error!(event = event.metadata.name, error = error.message(), "Server rejected event");
                }
                return;
            }
            tracing::debug!(event = event.metadata.name, tried, error = error.message(), "Unable to write event");
            if tried == tries {
                break;
            }
            let pause = if tried == 1 { BETWEEN_TRIES.mul_f64(self.random.f64()) } else { BETWEEN_TRIES };
            let pause = error.retry_after().map_or(pause, |asked| asked.min(LONGEST_RETRY_AFTER).max(pause));
            let was_cancelled = cancel.run_until_cancelled(tokio::time::sleep(pause)).await.is_none();
            if was_cancelled {
                self.drops.count(Dropped::Stopped, 1);
                tracing::warn!(
                    event = event.metadata.name,
                    reason = &*event.reason,
                    "Stopped before the event was sent"
                );
                return;
            }
        }
        self.drops.count(Dropped::GivenUp, 1);
        tracing::error!(
            event = event.metadata.name,
            reason = &*event.reason,
            "Unable to write event, retry limit exceeded"
        );
    }

    async fn write(&self, event: &CoreEvent, is_repeated: bool) -> Result<(), ApiError> {
        let EventMeta { name, namespace } = &event.metadata;
        if is_repeated {
            let key = ObjectKey::namespaced(namespace.as_str(), name.as_str());
            let patch = Patch::Strategic(Payload::json(&event.repetition()));
            match self.client.patch(&EVENTS, &key, Subresource::None, patch).await {
                Ok(_) => return Ok(()),
                // Events live for an hour.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        self.client.create(&EVENTS, Some(namespace), Payload::json(event)).await.map(drop)
    }
}

/// Returns `true` if another attempt may succeed: the server was not reached, did not reach its storage, or limits
/// requests, or writes are held back.
fn is_worth_another_try(error: &ApiError) -> bool {
    matches!(error.cause(), Cause::Transport(_) | Cause::NotSent(_) | Cause::Fenced(_) | Cause::Timeout(_))
        // Upstream's client repeats such requests beneath its broadcaster.
        || error.is_too_many_requests()
        || error.status().is_some_and(is_storage_failure)
}
