//! The task that acquires the lease, renews it, and releases it at the end.

use std::sync::Arc;

use kcm_framework::api::{KnownView as _, ObjectKey, View as _};
use kcm_framework::client::{ApiClient, ApiError, Payload, Subresource};
use kcm_framework::clock::Clock;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::elector::{Answer, Elector, Lease, Next, Request, Timing};
use super::lease_object::LeaseObject;

/// Whether this manager leads, and who does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Leadership {
    /// The identity of the holder, as far as it is known.
    pub(crate) holder: Option<String>,
    /// Until when this manager leads without another renewal; `None` while it does not.
    pub(crate) leads_until: Option<Instant>,
    /// Until when a write of this manager may take effect.
    pub(crate) writes_until: Option<Instant>,
}

/// The task that keeps the lease.
///
/// # Guarantees
/// The [`Leadership`] that it publishes says so before another manager can lead. A lease that is released is free at once
/// for the others.
pub(crate) struct Keeper {
    elector: Elector,
    timing: Timing,
    api: ApiClient,
    lease: ObjectKey,
    /// The object that the elector has observed last.
    object: Option<LeaseObject>,
    clock: Arc<dyn Clock>,
    rng: fastrand::Rng,
    leadership: watch::Sender<Leadership>,
    /// The lease as a watch shows it.
    changes: watch::Receiver<Option<Arc<LeaseObject>>>,
}

impl Keeper {
    /// A keeper of the lease `lease` for `elector`.
    pub(crate) fn new(
        elector: Elector,
        timing: Timing,
        api: ApiClient,
        lease: ObjectKey,
        clock: Arc<dyn Clock>,
        seed: u64,
        changes: watch::Receiver<Option<Arc<LeaseObject>>>,
    ) -> Self {
        let (leadership, _) = watch::channel(Leadership::default());
        let rng = fastrand::Rng::with_seed(seed);
        Self { elector, timing, api, lease, object: None, clock, rng, leadership, changes }
    }

    /// The leadership, as it changes.
    pub(crate) fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.subscribe()
    }

    /// Competes for the lease until `stop`.
    pub(crate) async fn run(&mut self, stop: &CancellationToken) {
        tracing::info!(lease = %self.lease, "Attempting to acquire leader lease...");
        let mut next_attempt = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = end_of(self.elector.leads_until()) => self.step_down("it was not renewed in time"),
                Ok(()) = self.changes.changed() => {
                    if self.observe() {
                        next_attempt = Instant::now();
                    }
                }
                () = sleep_until(next_attempt) => next_attempt = self.attempt(stop).await,
            }
        }
    }

    /// Sends the requests of one attempt; returns when the next begins.
    async fn attempt(&mut self, stop: &CancellationToken) -> Instant {
        loop {
            let request = self.elector.request(Instant::now(), self.clock.now());
            let sent = Instant::now();
            let answer = tokio::select! {
                biased;
                () = stop.cancelled() => return Instant::now(),
                () = end_of(self.elector.leads_until()) => {
                    self.step_down("it was not renewed in time");
                    return Instant::now() + self.timing.retry_period;
                }
                answer = timeout(self.timing.request_timeout(), self.send(&request)) => answer,
            };
            let answer = match answer {
                Ok(Ok(object)) => {
                    let lease = object.lease();
                    self.object = Some(object);
                    Answer::Lease(lease)
                }
                Ok(Err(error)) if error.is_not_found() && request == Request::Get => Answer::NotFound,
                Ok(Err(error)) => {
                    tracing::debug!(lease = %self.lease, error = &error as &dyn std::error::Error, "Request for the lease failed");
                    Answer::Failed
                }
                Err(_) => {
                    tracing::debug!(lease = %self.lease, "Request for the lease was not answered in time");
                    Answer::Failed
                }
            };
            let next = self.elector.answered(&request, sent, answer, Instant::now(), &mut self.rng);
            self.publish();
            match next {
                Next::Continue => {}
                Next::After(delay) => return sent + delay,
            }
        }
    }

    async fn send(&self, request: &Request) -> Result<LeaseObject, ApiError> {
        let resource = const { &LeaseObject::RESOURCE };
        let written = match (request, &self.object) {
            (Request::Get, _) | (Request::Update(_), None) => return self.api.get(resource, &self.lease).await,
            (Request::Create(record), _) => {
                let body = Payload::json(&LeaseObject::created(&self.lease, record));
                self.api.create(resource, self.lease.namespace(), body).await?
            }
            (Request::Update(Lease { record, .. }), Some(object)) => {
                let body = Payload::json(&object.updated(record));
                self.api.put(resource, &self.lease, Subresource::None, body).await?
            }
        };
        let decoded = std::str::from_utf8(&written.body).ok().and_then(|text| LeaseObject::decode(text).ok());
        match decoded {
            Some(object) => Ok(object),
            // The write has taken effect; what it wrote is read instead.
            None => self.api.get(resource, &self.lease).await,
        }
    }

    /// Takes the lease from the watch; returns whether it is free.
    ///
    /// The object for updates stays that of the last request: a watch may be behind, and an attempt of a candidate begins
    /// with a read.
    fn observe(&mut self) -> bool {
        let Some(object) = self.changes.borrow_and_update().clone() else { return false };
        let is_free = self.elector.observe(object.lease(), Instant::now());
        self.publish();
        is_free
    }

    fn step_down(&mut self, reason: &str) {
        tracing::warn!(lease = %self.lease, reason, "Stopped leading");
        self.elector.step_down();
        self.publish();
    }

    fn publish(&self) {
        let leadership = Leadership {
            holder: self.elector.holder().map(str::to_owned),
            leads_until: self.elector.leads_until(),
            writes_until: self.elector.writes_until(),
        };
        self.leadership.send_if_modified(|published| {
            let differs = *published != leadership;
            *published = leadership;
            differs
        });
    }

    /// Frees the lease, if this manager holds it. Called when nothing writes any more.
    pub(crate) async fn release(&mut self) {
        let Some(Lease { record, .. }) = self.elector.release(self.clock.now()) else { return };
        self.elector.step_down();
        self.publish();
        let released = async {
            let object: LeaseObject = self.api.get(const { &LeaseObject::RESOURCE }, &self.lease).await?;
            if object.lease().record.holder != self.elector.identity() {
                return Ok(());
            }
            let body = Payload::json(&object.updated(&record));
            self.api.put(const { &LeaseObject::RESOURCE }, &self.lease, Subresource::None, body).await.map(drop)
        };
        match timeout(self.timing.renew_deadline, released).await {
            Ok(Ok(())) => tracing::info!(lease = %self.lease, "Released the lease"),
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(lease = %self.lease, error, "Cannot release the lease; it expires instead");
            }
            Err(_) => tracing::warn!(lease = %self.lease, "Cannot release the lease in time; it expires instead"),
        }
    }
}

/// Waits for a time; for ever where there is none.
async fn end_of(leading: Option<Instant>) {
    match leading {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
