//! Runs a manager while this process leads.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::client::{ElapsedClock, ExecPluginMetrics, Fence};
use kcm_framework::{Handover, Manager, ManagerError, ManagerHandle, Stage, Stop};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::ended::Ended;
use super::fences::closed_for_lease;
use super::health::{LeaderHealth, Watched};
use super::leadership::Leadership;
use super::migration::{Migration, MigrationLease};
use super::report::LeaseMetrics;
use super::settings::{Election, Policy};
use super::thread::{Compete, GiveUp, Held, LeaseConnection, LeaseThread, LeaseThreadError, Options};
use super::watchdog::Watchdog;

/// A process that competes for the lease of its manager, and for the lease of leader migration if it is enabled.
pub(crate) struct Candidate {
    main: Options,
    migration: Option<MigrationLease>,
    policy: Policy,
}

impl Candidate {
    /// A candidate whose `identity` is unique among all processes, ever.
    pub(crate) fn new(
        identity: String,
        election: Election,
        metrics: LeaseMetrics,
        plugins: ExecPluginMetrics,
        watchdog: Watchdog,
        elapsed: Arc<dyn ElapsedClock>,
    ) -> Self {
        let Election { settings, policy, limits, releases, migration } = election;
        let main = Options {
            connection: LeaseConnection::new(&settings.lease(), &identity),
            lease: settings.lease(),
            identity,
            timing: settings.timing(),
            limits,
            releases,
            metrics,
            plugins,
            watchdog,
            elapsed,
            leadership: watch::Sender::default(),
            ready: watch::Sender::default(),
        };
        let migration = migration.map(|migration| MigrationLease::new(migration, &main));
        Self { main, migration, policy }
    }

    /// The health check of all leases.
    pub(crate) fn health(&self) -> LeaderHealth {
        let leases = [Some(&self.main), self.migration.as_ref().map(MigrationLease::options)];
        let watched = |options: &Options| Watched {
            name: options.lease.name().to_owned(),
            leadership: options.leadership.subscribe(),
            connection: options.connection.clone(),
        };
        let leases = leases.into_iter().flatten().map(watched).collect();
        LeaderHealth::new(self.main.timing.lease_duration, leases, Arc::clone(&self.main.elapsed))
    }

    /// Runs `manager` until `stop`, its loops while this process leads.
    ///
    /// # Guarantees
    /// - No write is sent while this process does not lead. No loop begins before its caches show what the last leader
    ///   wrote.
    /// - The lease is released when no loop runs any more and the outcome of each write is known, soon after `stop`: a
    ///   reconcile with many writes is not finished for it. If an outcome stays unknown, the lease expires instead.
    /// - All of that takes no longer than the grace of the policy, and an abort ends it at once.
    ///
    /// # Errors
    /// [`Ended::LeaseLost`] if a lease was lost and the policy ends the process then.
    pub(crate) async fn run(self, manager: Manager, config: kube::Config, stop: Stop) -> Result<(), Ended> {
        self.run_with(manager, &LeaseThread::with_config(config), stop).await
    }

    /// As [`run`](Self::run), with leases that `compete` keeps.
    pub(crate) async fn run_with(self, manager: Manager, compete: &Compete, stop: Stop) -> Result<(), Ended> {
        let Self { main, migration, policy } = self;
        let handle = manager.handle();
        handle.stop_loops(Duration::ZERO).await;
        handle.fence().reserve(main.timing.reserve());
        let fence = closed_for_lease(handle.fence().clone(), Arc::clone(&main.elapsed));
        let migration = migration.map(|migration| migration.of_manager(&manager, Arc::clone(compete), policy));
        let fences = migration.as_ref().map(|migration| migration.fence().clone());
        let fences: Vec<_> = fences.into_iter().chain([fence.clone()]).collect();
        let handover = main.releases.then_some(fences);
        let held = Held { fence, connection: Arc::new(handle.clone()) };
        let lease = Lease { options: main, compete: Arc::clone(compete), held };
        let leadership = lease.options.leadership.subscribe();
        let mut leader = Leader { handle, policy, handover, leadership, migration, term: None, expects: false };
        if policy.warm_standby {
            leader.run_warm(manager, lease, &stop).await
        } else {
            leader.run_cold(manager, lease, &stop).await
        }
    }
}

/// A lease that is not competed for yet.
struct Lease {
    options: Options,
    compete: Compete,
    held: Held,
}

impl Lease {
    async fn compete(self) -> Result<LeaseThread, LeaseThreadError> {
        (self.compete)(self.options, self.held).await
    }
}

/// A manager that runs its loops while it leads.
struct Leader {
    handle: ManagerHandle,
    policy: Policy,
    /// Fences to close before the leases are released; `None` if they are not released.
    handover: Option<Vec<Fence>>,
    leadership: watch::Receiver<Leadership>,
    migration: Option<Migration>,
    /// The term in which the loops run.
    term: Option<u64>,
    /// `true` while the manager prepares a takeover.
    expects: bool,
}

impl Leader {
    /// Runs the manager, and competes for the lease once the API server responds and can be discovered. An overloaded
    /// API server would otherwise make this process lead without being able to act.
    async fn run_warm(&mut self, manager: Manager, lease: Lease, stop: &Stop) -> Result<(), Ended> {
        let handle = self.handle.clone();
        let ready = lease.options.ready.clone();
        let mut running = pin!(async {
            let becoming_ready = async {
                handle.caches_synced().await;
                ready.send_replace(true);
                std::future::pending::<Infallible>().await
            };
            tokio::select! {
                biased;
                ended = manager.run(stop.clone()) => ended,
                never = becoming_ready => match never {},
            }
        });
        tokio::select! {
            biased;
            ended = &mut running => return Ok(ended?),
            () = handle.reaches(Stage::Controllers) => {}
        }
        let mut thread = match lease.compete().await {
            Ok(thread) => thread,
            Err(error) => {
                stop.abort.cancel();
                drop(running.await);
                return Err(error.into());
            }
        };
        self.follow(running, &mut thread, stop).await
    }

    /// Competes for the lease once the API server responds and can be discovered, and runs the manager once it leads.
    async fn run_cold(&mut self, manager: Manager, lease: Lease, stop: &Stop) -> Result<(), Ended> {
        let stopped = || async {
            tokio::select! {
                biased;
                () = stop.drain.cancelled() => {}
                () = stop.abort.cancelled() => {}
            }
        };
        tokio::select! {
            biased;
            () = stopped() => return Ok(()),
            probed = manager.probe() => probed?,
        }
        lease.options.ready.send_replace(true);
        let mut thread = lease.compete().await?;
        let leads = tokio::select! {
            biased;
            () = stopped() => false,
            leads = self.leadership.wait_for(|leadership| leadership.term.is_some()) => leads.is_ok(),
        };
        if leads {
            let running = pin!(manager.run(stop.clone()));
            self.follow(running, &mut thread, stop).await
        } else {
            self.give_up(&mut thread, &self.handle.handover(), self.give_up_until(), &stop.abort).await;
            Ok(())
        }
    }

    /// The time by which all leases are given up.
    fn give_up_until(&self) -> Instant {
        Instant::now() + self.policy.grace.max(RELEASE)
    }

    /// Starts and stops the loops of a running manager with the lease until the manager ends or must end. Then gives
    /// the lease up.
    async fn follow(
        &mut self,
        mut running: Pin<&mut impl Future<Output = Result<(), ManagerError>>>,
        thread: &mut LeaseThread,
        stop: &Stop,
    ) -> Result<(), Ended> {
        let lost = tokio::select! {
            // A manager that has ended or may no longer write cannot drain.
            biased;
            ended = &mut running => {
                self.give_up(thread, &self.handle.handover(), self.give_up_until(), &stop.abort).await;
                return Ok(ended?);
            }
            () = thread.ended() => Some(Ended::LeaseLost),
            lost = self.act() => Some(lost),
            () = stop.drain.cancelled() => None,
        };
        if let Some(lost) = lost {
            tracing::error!("Leader election lost");
            let handover = self.handle.handover();
            stop.abort.cancel();
            drop(running.await);
            // Another may act by now: an outcome that is unknown is not waited for.
            self.give_up(thread, &handover, Instant::now() + RELEASE, &CancellationToken::new()).await;
            return Err(lost);
        }
        // The loops stop first. A successor need not wait for the rest, such as events that are still being sent.
        let handle = self.handle.clone();
        let (grace, fences, until) = (self.policy.grace, self.handover.clone(), self.give_up_until());
        let handover = handle.handover();
        let released = async {
            drain(&handle, grace, fences.as_deref()).await;
            self.give_up(thread, &handover, until, &stop.abort).await;
        };
        let (ended, ()) = tokio::join!(running, released);
        Ok(ended?)
    }

    /// Gives all leases up by that time, or not at all if `abort` comes before. Called when no loop runs any more.
    async fn give_up(
        &mut self,
        thread: &mut LeaseThread,
        handover: &Handover,
        until: Instant,
        abort: &CancellationToken,
    ) {
        let giving_up = async {
            let how = settle(handover, until.checked_sub(RELEASE).unwrap_or(until)).await;
            if let Some(migration) = &mut self.migration {
                migration.give_up(how.clone()).await;
            }
            thread.stop(how).await;
        };
        tokio::select! {
            biased;
            () = giving_up => {}
            () = abort.cancelled() => tracing::warn!("Aborted: the lease expires"),
            () = sleep_until(until) => tracing::warn!("The lease is not released in time; it expires instead"),
        }
    }

    /// Prepares a takeover that is expected.
    fn expect(&mut self, is_expected: bool) {
        if std::mem::replace(&mut self.expects, is_expected) != is_expected {
            self.handle.expect_takeover(is_expected);
        }
    }

    /// Starts the loops when this process leads, and stops them when it does not; returns why the process must end.
    async fn act(&mut self) -> Ended {
        self.leadership.mark_changed();
        loop {
            tokio::select! {
                biased;
                changed = self.leadership.changed() => if changed.is_err() {
                    return Ended::LeaseLost;
                },
                changed = changed(&mut self.migration) => {
                    match changed {
                        Ok(()) => continue,
                        Err(ended) => return ended,
                    }
                }
            }
            let (term, is_expected, predecessor) = {
                let leadership = self.leadership.borrow_and_update();
                (leadership.term, leadership.is_expected, leadership.predecessor.clone())
            };
            if term == self.term {
                self.expect(is_expected);
                continue;
            }
            if self.term.is_some() {
                if self.policy.exit_on_lost_lease {
                    return Ended::LeaseLost;
                }
                tracing::warn!("Leader election lost; stopping the controllers and competing again");
                self.handle.stop_loops(self.policy.grace).await;
                if let Some(migration) = &mut self.migration {
                    let how = settle(&self.handle.handover(), Instant::now()).await;
                    migration.give_up(how).await;
                }
            }
            self.term = term;
            if term.is_some() {
                tracing::info!("Starting the controllers because this process leads");
                match &mut self.migration {
                    None => self.handle.start_loops_after(|_| true, predecessor),
                    Some(migration) => {
                        self.handle.start_loops_after(|controller| !migration.includes(controller), predecessor);
                        if let Err(error) = migration.compete().await {
                            return error.into();
                        }
                    }
                }
            }
            // The proofs of a takeover that has begun go on with what was prepared.
            self.expect(is_expected);
        }
    }
}

/// Time for which running reconciles may send writes before the lease is released. The successor continues longer ones,
/// such as a reconcile of a `ReplicaSet` that needs hundreds of pods.
///
/// # Upstream
/// There the requests of running syncs are cancelled at once, also those that have been sent.
const HANDOVER: Duration = Duration::from_millis(250);

/// The part of the grace that is kept for the release of the lease.
const RELEASE: Duration = Duration::from_secs(1);

/// Waits until then for the outcome of each write, and returns how a lease is given up after that.
async fn settle(handover: &Handover, until: Instant) -> GiveUp {
    if timeout_at(until, handover.settled()).await.is_ok() {
        return GiveUp::Release(handover.cache_versions());
    }
    tracing::warn!("A write may still take effect, so that the lease is not released; it expires");
    GiveUp::Expire
}

/// Stops the loops. If a successor is to lead, no write is sent after [`HANDOVER`], and writes that have been sent are
/// waited for.
async fn drain(handle: &ManagerHandle, grace: Duration, handover: Option<&[Fence]>) {
    let mut stopping = pin!(handle.stop_loops(grace));
    let Some(fences) = handover else { return stopping.await };
    if timeout(HANDOVER, &mut stopping).await.is_err() {
        tracing::info!("Running reconciles send no more writes, so that another replica can continue them");
        fences.iter().for_each(Fence::end);
        stopping.await;
    }
}

/// Waits until the loops follow a change of the lease of leader migration.
async fn changed(migration: &mut Option<Migration>) -> Result<(), Ended> {
    match migration {
        Some(migration) => migration.changed().await,
        None => std::future::pending().await,
    }
}
