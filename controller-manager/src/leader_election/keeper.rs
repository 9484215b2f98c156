//! The task that acquires the lease, renews it, and releases it at the end.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey, View as _};
use kcm_framework::client::{ApiClient, ApiError, ElapsedClock, Fence, Mark, Payload, Subresource};
use kcm_framework::clock::Clock;
use kcm_framework::{CacheVersions, Predecessor};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::elector::{Elector, Lease, LeaseRecord, LeaseResponse, Next, Request, Timing};
use super::leadership::Leadership;
use super::lease_object::LeaseObject;
use super::report::Report;
use super::request_connection::RequestConnection;
use super::suspension::Suspensions;
use super::watchdog::Watchdog;

/// The task that keeps the lease.
///
/// # Guarantees
/// It publishes the end of its [`Leadership`] before another manager can lead. The fence is open when the leadership is
/// published, and closed when its end is published. A released lease is free at once.
pub(crate) struct Keeper {
    elector: Elector<Arc<LeaseObject>>,
    options: KeeperOptions,
    /// Whether a write with an unknown result was sent.
    may_have_written: bool,
    suspensions: Suspensions,
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

/// Reason for the end of a [`Keeper::run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The keeper was stopped by its caller.
    Stopped,
    /// The main thread is blocked. This process leads no more, and the lease expires.
    MainThreadBlocked,
}

/// Time after which a blocked main thread is looked at once more: a process that was stopped as a whole goes on with all its
/// threads.
const SECOND_LOOK: Duration = Duration::from_secs(2);

/// Pause before a release is repeated that has met more than one conflict.
const BETWEEN_CONFLICTS: Duration = Duration::from_millis(100);

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
    pub(crate) fence: Fence,
    /// Events and metrics of the lease.
    pub(crate) report: Report,
    /// The watchdog of the main thread.
    pub(crate) watchdog: Watchdog,
    /// `true` if this manager can act as soon as it leads.
    pub(crate) ready: watch::Receiver<bool>,
    /// The clock by which the lease is held.
    pub(crate) elapsed: Arc<dyn ElapsedClock>,
    /// The connection for the requests of the controllers.
    pub(crate) connection: Arc<dyn RequestConnection>,
    /// Has the caches compared with the storage of the API server, which may have gone back.
    pub(crate) suspect_rollback: Box<dyn Fn() + Send + Sync>,
}

/// Time after which an unusable connection is looked at again, which sends no request.
const UNUSABLE: Duration = Duration::from_millis(250);

impl Keeper {
    /// A keeper of a lease for `elector`.
    pub(crate) fn new(elector: Elector<Arc<LeaseObject>>, options: KeeperOptions) -> Self {
        let rng = fastrand::Rng::with_seed(options.seed);
        options.report.is_candidate();
        let suspensions = Suspensions::of(Arc::clone(&options.elapsed));
        Self {
            elector,
            options,
            rng,
            may_have_written: false,
            suspensions,
            terms: 0,
            predecessor: Predecessor::Unknown,
            withheld_since: None,
        }
    }

    /// Competes for the lease until `stop`, or until the main thread is blocked for too long.
    pub(crate) async fn run(&mut self, stop: &CancellationToken) -> End {
        tracing::info!(lease = %self.options.lease, "Attempting to acquire leader lease...");
        let mut next_attempt = Instant::now();
        let mut was_blocked = false;
        loop {
            let expected_at = self.expected_at();
            tokio::select! {
                biased;
                () = stop.cancelled() => return End::Stopped,
                () = end_of(self.elector.leads_until(), &*self.options.elapsed) => {
                    self.step_down("it was not renewed in time");
                }
                Ok(()) = self.options.changes.changed() => {
                    if self.observe() {
                        next_attempt = Instant::now();
                    }
                }
                Ok(()) = self.options.ready.changed() => next_attempt = Instant::now(),
                () = end_of(expected_at, &*self.options.elapsed) => self.publish(),
                () = sleep_until(next_attempt) => {
                    let is_blocked = self.options.watchdog.is_over();
                    if is_blocked && was_blocked {
                        // Nothing is logged here: the log may be the reason.
                        self.stop_leading();
                        return End::MainThreadBlocked;
                    }
                    was_blocked = is_blocked;
                    next_attempt = if is_blocked {
                        Instant::now() + SECOND_LOOK
                    } else if self.can_act() {
                        self.attempt(stop).await
                    } else {
                        Instant::now() + UNUSABLE
                    };
                }
            }
        }
    }

    /// Time at which this manager expects to lead. `None` if it is published that it does.
    fn expected_at(&self) -> Option<Mark> {
        let may_lead = *self.options.ready.borrow() && !self.options.leadership.borrow().is_expected;
        self.elector.expects_to_lead_from().filter(|_| may_lead)
    }

    /// Returns `true` if the controllers can act under the lease, or could until recently. Steps down otherwise: another
    /// replica may reach an API server that serves.
    fn can_act(&mut self) -> bool {
        let Some((time, reason)) = self.options.connection.unusable() else { return true };
        let leads = self.elector.leads_until().is_some();
        if leads && time < self.options.timing.renew_deadline {
            return true;
        }
        if leads {
            self.step_down(&format!("its controllers have no usable connection: {reason}"));
        }
        false
    }

    /// Stops leading if the machine was suspended: the lease is read before it is written again. Returns `true` if it was.
    fn was_suspended(&mut self) -> bool {
        let suspended = self.suspensions.since_last();
        if suspended.is_some() && self.elector.leads_until().is_some() {
            self.step_down("the machine was suspended");
        }
        suspended.is_some()
    }

    /// Sends the requests of one attempt; returns when the next begins.
    async fn attempt(&mut self, stop: &CancellationToken) -> Instant {
        loop {
            self.was_suspended();
            let request = self.elector.request(self.options.elapsed.now(), self.options.clock.now());
            if self.elector.is_on_slow_path() {
                self.options.report.slow_path();
            }
            let (sent, sent_at) = (self.options.elapsed.now(), Instant::now());
            let is_read = matches!(request, Request::Get);
            if !is_read && !self.elector.leads(sent) {
                if !self.may_compete() {
                    return sent_at + self.options.timing.retry_period;
                }
                self.predecessor = match &request {
                    Request::Update(lease) => lease.object.predecessor(),
                    Request::Get | Request::Create(_) => Predecessor::Unknown,
                };
            }
            self.may_have_written |= !is_read;
            let answer = tokio::select! {
                biased;
                // A write may take effect even if nothing waits for its response.
                () = stop.cancelled(), if is_read => return Instant::now(),
                () = end_of(self.elector.leads_until(), &*self.options.elapsed) => {
                    self.step_down("it was not renewed in time");
                    return Instant::now() + self.options.timing.retry_period;
                }
                answer = timeout(self.options.timing.request_timeout(), self.send(&request)) => answer,
            };
            let answer = match answer {
                // The response may be older than the suspension.
                _ if self.was_suspended() => LeaseResponse::Failed,
                Ok(Ok(object)) => {
                    self.may_have_written = false;
                    LeaseResponse::Lease(Arc::new(object).lease())
                }
                Ok(Err(error)) if error.is_not_found() && is_read => LeaseResponse::NotFound,
                Ok(Err(error)) => {
                    tracing::debug!(lease = %self.options.lease, error = &error as &dyn std::error::Error, "Request for the lease failed");
                    LeaseResponse::Failed
                }
                Err(_) => {
                    tracing::debug!(lease = %self.options.lease, "Request for the lease was not answered in time");
                    LeaseResponse::Failed
                }
            };
            if self.elector.has_gone_back(&answer) {
                tracing::warn!(lease = %self.options.lease, "Version of the lease has gone back, as after a restore of etcd");
                (self.options.suspect_rollback)();
            }
            let next = self.elector.answered(&request, sent, answer, self.options.elapsed.now(), &mut self.rng);
            self.publish();
            match next {
                Next::Continue => {}
                Next::After(delay) => {
                    self.withheld_since = None;
                    return sent_at + delay;
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

    async fn send(&self, request: &Request<Arc<LeaseObject>>) -> Result<LeaseObject, ApiError> {
        let resource = const { &LeaseObject::RESOURCE };
        let written = match request {
            Request::Get => return self.options.api.get(resource, &self.options.lease).await,
            Request::Create(record) => {
                let body = Payload::json(&LeaseObject::created(&self.options.lease, record));
                self.options.api.create(resource, self.options.lease.namespace(), body).await?
            }
            Request::Update(Lease { record, object, .. }) => {
                let body = Payload::json(&object.updated(record));
                self.options.api.put(resource, &self.options.lease, Subresource::None, body).await?
            }
        };
        let decoded = std::str::from_utf8(&written.body).ok().and_then(|text| LeaseObject::decode(text).ok());
        match decoded {
            Some(object) => Ok(object),
            // The write has taken effect, so that the lease is read again. Another may hold it by then.
            None => self.options.api.get(resource, &self.options.lease).await,
        }
    }

    /// Takes the lease from the watch. Returns `true` if it is free.
    fn observe(&mut self) -> bool {
        let Some(object) = self.options.changes.borrow_and_update().clone() else { return false };
        let is_free = self.elector.observe(object.lease(), self.options.elapsed.now());
        if !is_free {
            self.withheld_since = None;
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
        let expected_from = self.elector.expects_to_lead_from().filter(|_| *self.options.ready.borrow());
        let leadership = Leadership {
            is_expected: expected_from.is_some_and(|from| from <= self.options.elapsed.now()),
            holder: self.elector.holder().map(str::to_owned),
            term: leads.then_some(self.terms),
            predecessor: if leads { self.predecessor.clone() } else { Predecessor::Unknown },
            renewed_at: self.elector.renewed_at(),
            leads_until: self.elector.leads_until(),
            writes_until: self.elector.writes_until(),
        };
        // Before the loops learn of it, so that their first writes pass, and no write passes after their end.
        match leadership.writes_until {
            Some(until) => self.options.fence.open_until_mark(until),
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
                self.options.report.became_leader(self.object());
            }
            (true, false) => self.options.report.stopped_leading(self.object()),
            (true, true) | (false, false) => {}
        }
    }

    /// The object that was last seen.
    fn object(&self) -> Option<&LeaseObject> {
        self.elector.last_lease().map(|lease| &*lease.object)
    }

    /// Stops leading without freeing the lease, which expires. Called when nothing writes any more.
    pub(crate) fn stop_leading(&mut self) {
        self.elector.step_down();
        self.publish();
    }

    /// Frees the lease, if this manager holds it, and hands `versions` over. Called after the last write.
    ///
    /// A renewal that is still under way, or another client, may change the lease meanwhile: an update that meets a conflict
    /// is repeated until the renew deadline.
    ///
    /// # Upstream
    /// There the lease is read first. Here it is read only if the update of the last known version is refused, or if it
    /// is not known whether a write took effect. After a conflict upstream also frees the lease of a new holder.
    pub(crate) async fn release(&mut self, versions: &CacheVersions) {
        let wall = self.options.clock.now();
        let held = self.elector.release(wall);
        if held.is_none() && !self.may_have_written {
            return;
        }
        self.stop_leading();
        let released = async {
            let mut known = held;
            let mut pause = Duration::ZERO;
            loop {
                if let Some(freed) = known {
                    match self.free(&freed.object, &freed.record, versions).await {
                        Err(error) if error.is_conflict() => {}
                        answered => return answered,
                    }
                    sleep(std::mem::replace(&mut pause, BETWEEN_CONFLICTS)).await;
                }
                let read = self.options.api.get(const { &LeaseObject::RESOURCE }, &self.options.lease).await;
                let object: LeaseObject = match read {
                    Err(error) if error.is_not_found() => return Ok(()),
                    read => read?,
                };
                // A conflict may come from a new holder, whose lease is not freed.
                known = self.elector.freed(&Arc::new(object).lease(), wall);
                if known.is_none() {
                    return Ok(());
                }
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
///
/// The timer is late if the machine is suspended, so every response is checked for that.
async fn end_of(leading: Option<Mark>, clock: &dyn ElapsedClock) {
    match leading {
        Some(until) => sleep(until.saturating_duration_since(clock.now())).await,
        None => std::future::pending().await,
    }
}
