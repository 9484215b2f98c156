//! The task that acquires the lease, renews it, and releases it at the end.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey, View as _};
use kcm_framework::client::{ApiClient, ApiError, Payload, Subresource};
use kcm_framework::clock::Clock;
use kcm_framework::{CacheVersions, Predecessor};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::elector::{Elector, Lease, LeaseRecord, LeaseResponse, Next, Request, Timing};
use super::fences::LeaseFence;
use super::leadership::Leadership;
use super::lease_object::LeaseObject;
use super::report::Report;

/// The task that keeps the lease.
///
/// # Guarantees
/// It publishes the end of its [`Leadership`] before another manager can lead. The fence is open when the leadership is
/// published, and closed when its end is published. A released lease is free at once.
pub(crate) struct Keeper {
    elector: Elector,
    options: KeeperOptions,
    /// The object that the elector has observed last.
    object: Option<LeaseObject>,
    /// Whether a write with an unknown result was sent.
    may_have_written: bool,
    rng: fastrand::Rng,
    /// Number of terms of leadership that have begun.
    terms: u64,
    /// The last holder of the lease that this manager takes.
    predecessor: Predecessor,
    /// Since when the lease could be taken while this manager is not ready.
    withheld_since: Option<Instant>,
}

/// Time for which a candidate that is not ready leaves a lease to others that nobody holds.
const UNREADY_PATIENCE: Duration = Duration::from_secs(30);

/// Options of a [`Keeper`].
pub(crate) struct KeeperOptions {
    /// Namespace and name of the lease.
    pub(crate) lease: ObjectKey,
    pub(crate) timing: Timing,
    /// The client of the lease.
    pub(crate) api: ApiClient,
    /// The wall clock, for the record.
    pub(crate) clock: Arc<dyn Clock>,
    /// The seed of the jitter.
    pub(crate) seed: u64,
    /// The lease as a watch shows it.
    pub(crate) changes: watch::Receiver<Option<Arc<LeaseObject>>>,
    /// Sends changes of the leadership.
    pub(crate) leadership: watch::Sender<Leadership>,
    /// Lets writes pass while this process leads.
    pub(crate) fence: LeaseFence,
    /// Events and metrics of the lease.
    pub(crate) report: Report,
    /// `true` if this manager can act as soon as it leads.
    pub(crate) ready: watch::Receiver<bool>,
}

impl Keeper {
    /// A keeper of a lease for `elector`.
    pub(crate) fn new(elector: Elector, options: KeeperOptions) -> Self {
        let rng = fastrand::Rng::with_seed(options.seed);
        options.report.is_candidate();
        Self {
            elector,
            options,
            object: None,
            rng,
            may_have_written: false,
            terms: 0,
            predecessor: Predecessor::Unknown,
            withheld_since: None,
        }
    }

    /// Competes for the lease until `stop`.
    pub(crate) async fn run(&mut self, stop: &CancellationToken) {
        tracing::info!(lease = %self.options.lease, "Attempting to acquire leader lease...");
        let mut next_attempt = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = end_of(self.elector.leads_until()) => self.step_down("it was not renewed in time"),
                Ok(()) = self.options.changes.changed() => {
                    if self.observe() {
                        next_attempt = Instant::now();
                    }
                }
                Ok(()) = self.options.ready.changed() => next_attempt = Instant::now(),
                () = sleep_until(next_attempt) => next_attempt = self.attempt(stop).await,
            }
        }
    }

    /// Sends the requests of one attempt; returns when the next begins.
    async fn attempt(&mut self, stop: &CancellationToken) -> Instant {
        loop {
            let request = self.elector.request(Instant::now(), self.options.clock.now());
            if self.elector.is_on_slow_path() {
                self.options.report.slow_path();
            }
            let sent = Instant::now();
            let is_read = request == Request::Get;
            if !is_read && !self.elector.leads(sent) {
                if !self.may_compete() {
                    return sent + self.options.timing.retry_period;
                }
                self.predecessor = match (&request, &self.object) {
                    (Request::Update(_), Some(object)) => object.predecessor(),
                    (Request::Get | Request::Create(_) | Request::Update(_), _) => Predecessor::Unknown,
                };
            }
            self.may_have_written |= !is_read;
            let answer = tokio::select! {
                biased;
                // A write may take effect even if nothing waits for its response.
                () = stop.cancelled(), if is_read => return Instant::now(),
                () = end_of(self.elector.leads_until()) => {
                    self.step_down("it was not renewed in time");
                    return Instant::now() + self.options.timing.retry_period;
                }
                answer = timeout(self.options.timing.request_timeout(), self.send(&request)) => answer,
            };
            let answer = match answer {
                Ok(Ok(object)) => {
                    let lease = object.lease();
                    self.object = Some(object);
                    self.may_have_written = false;
                    LeaseResponse::Lease(lease)
                }
                Ok(Err(error)) if error.is_not_found() && request == Request::Get => LeaseResponse::NotFound,
                Ok(Err(error)) => {
                    tracing::debug!(lease = %self.options.lease, error = &error as &dyn std::error::Error, "Request for the lease failed");
                    LeaseResponse::Failed
                }
                Err(_) => {
                    tracing::debug!(lease = %self.options.lease, "Request for the lease was not answered in time");
                    LeaseResponse::Failed
                }
            };
            let next = self.elector.answered(&request, sent, answer, Instant::now(), &mut self.rng);
            self.publish();
            match next {
                Next::Continue => {}
                Next::After(delay) => {
                    self.withheld_since = None;
                    return sent + delay;
                }
            }
        }
    }

    /// Returns `true` if this manager may take a lease that nobody holds: it is ready, or nobody else has taken the lease
    /// for [`UNREADY_PATIENCE`].
    fn may_compete(&mut self) -> bool {
        if *self.options.ready.borrow() {
            return true;
        }
        if self.withheld_since.is_none() {
            tracing::info!(lease = %self.options.lease, "Leaving the free lease to others until the caches have synced");
        }
        self.withheld_since.get_or_insert_with(Instant::now).elapsed() >= UNREADY_PATIENCE
    }

    async fn send(&self, request: &Request) -> Result<LeaseObject, ApiError> {
        let resource = const { &LeaseObject::RESOURCE };
        let written = match (request, &self.object) {
            (Request::Get, _) | (Request::Update(_), None) => {
                return self.options.api.get(resource, &self.options.lease).await;
            }
            (Request::Create(record), _) => {
                let body = Payload::json(&LeaseObject::created(&self.options.lease, record));
                self.options.api.create(resource, self.options.lease.namespace(), body).await?
            }
            (Request::Update(Lease { record, .. }), Some(object)) => {
                let body = Payload::json(&object.updated(record));
                self.options.api.put(resource, &self.options.lease, Subresource::None, body).await?
            }
        };
        let decoded = std::str::from_utf8(&written.body).ok().and_then(|text| LeaseObject::decode(text).ok());
        match decoded {
            Some(object) => Ok(object),
            // The write has taken effect, so that the lease is read again.
            None => self.options.api.get(resource, &self.options.lease).await,
        }
    }

    /// Takes the lease from the watch. Returns `true` if it is free.
    ///
    /// Updates start from the object of the last request, because a watch may be behind. A newer object that is free is
    /// updated as the watch showed it.
    fn observe(&mut self) -> bool {
        let Some(object) = self.options.changes.borrow_and_update().clone() else { return false };
        let is_free = self.elector.observe(object.lease(), Instant::now());
        if !is_free {
            self.withheld_since = None;
        }
        if is_free {
            self.object = Some(LeaseObject::clone(&object));
        }
        self.publish();
        is_free
    }

    fn step_down(&mut self, reason: &str) {
        tracing::warn!(lease = %self.options.lease, reason, "Stopped leading");
        self.elector.step_down();
        self.publish();
    }

    fn publish(&mut self) {
        let (led, leads) = (self.options.leadership.borrow().term.is_some(), self.elector.leads_until().is_some());
        if leads && !led {
            self.terms += 1;
        }
        let leadership = Leadership {
            holder: self.elector.holder().map(str::to_owned),
            term: leads.then_some(self.terms),
            predecessor: if leads { self.predecessor.clone() } else { Predecessor::Unknown },
            renewed_at: self.elector.renewed_at(),
            leads_until: self.elector.leads_until(),
            writes_until: self.elector.writes_until(),
        };
        // Before the loops learn of it, so that their first writes pass, and no write passes after their end.
        match leadership.writes_until {
            Some(until) => self.options.fence.open_until(until),
            None => self.options.fence.close(),
        }
        self.options.leadership.send_if_modified(|published| {
            let differs = *published != leadership;
            *published = leadership;
            differs
        });
        match (led, leads) {
            (false, true) => {
                tracing::info!(lease = %self.options.lease, "Successfully acquired lease");
                self.options.report.became_leader(self.object.as_ref());
            }
            (true, false) => self.options.report.stopped_leading(self.object.as_ref()),
            (true, true) | (false, false) => {}
        }
    }

    /// Stops leading without freeing the lease, which expires. Called when nothing writes any more.
    pub(crate) fn stop_leading(&mut self) {
        self.elector.step_down();
        self.publish();
    }

    /// Frees the lease, if this manager holds it, and hands `versions` over. Called after the last write.
    ///
    /// # Upstream
    /// There the lease is read first. Here it is read only if the update of the last known version is refused, or if it
    /// is not known whether a write took effect.
    pub(crate) async fn release(&mut self, versions: &CacheVersions) {
        let wall = self.options.clock.now();
        let held = self.elector.release(wall);
        if held.is_none() && !self.may_have_written {
            return;
        }
        self.stop_leading();
        let released = async {
            let known = self.object.as_ref().zip(held);
            if let Some((object, freed)) = known.filter(|(object, freed)| object.lease().version == freed.version) {
                match self.free(object, &freed.record, versions).await {
                    Err(error) if error.is_conflict() => {}
                    answered => return answered,
                }
            }
            let read = self.options.api.get(const { &LeaseObject::RESOURCE }, &self.options.lease).await;
            let object: LeaseObject = match read {
                Err(error) if error.is_not_found() => return Ok(()),
                read => read?,
            };
            match self.elector.freed(&object.lease(), wall) {
                Some(freed) => self.free(&object, &freed.record, versions).await,
                None => Ok(()),
            }
        };
        match timeout(self.options.timing.renew_deadline, released).await {
            Ok(Ok(())) => tracing::info!(lease = %self.options.lease, "Released the lease"),
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(lease = %self.options.lease, error, "Cannot release the lease; it expires instead");
            }
            Err(_) => {
                tracing::warn!(lease = %self.options.lease, "Cannot release the lease in time; it expires instead");
            }
        }
    }

    async fn free(&self, object: &LeaseObject, record: &LeaseRecord, versions: &CacheVersions) -> Result<(), ApiError> {
        let body = Payload::json(&object.released(record, versions.clone()));
        let resource = const { &LeaseObject::RESOURCE };
        self.options.api.put(resource, &self.options.lease, Subresource::None, body).await.map(drop)
    }
}

/// Waits for a time, or for ever if it is `None`.
async fn end_of(leading: Option<Instant>) {
    match leading {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
