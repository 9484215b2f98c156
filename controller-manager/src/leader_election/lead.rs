//! Runs a manager while this process leads.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::client::{BootClock, ExecPluginMetrics};
use kcm_framework::{Manager, ManagerError, ManagerHandle, Stage, Stop};
use tokio::sync::watch;
use tokio::time::timeout;

use super::ended::Ended;
use super::fences::LeaseFence;
use super::health::LeaderHealth;
use super::leadership::Leadership;
use super::migration::{Migration, MigrationLease};
use super::report::LeaseMetrics;
use super::settings::{Election, Policy};
use super::thread::{Held, LeaseThread, LeaseThreadError, Options};
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
    ) -> Self {
        let Election { settings, policy, limits, releases, migration } = election;
        let main = Options {
            lease: settings.lease(),
            identity,
            timing: settings.timing(),
            limits,
            releases,
            metrics,
            plugins,
            watchdog,
            elapsed: Arc::new(BootClock),
            leadership: watch::Sender::default(),
        };
        let migration = migration.map(|migration| MigrationLease::new(migration, &main));
        Self { main, migration, policy }
    }

    /// The health check of all leases.
    pub(crate) fn health(&self) -> LeaderHealth {
        let leases = [Some(&self.main), self.migration.as_ref().map(MigrationLease::options)];
        let watched = |options: &Options| (options.lease.name().to_owned(), options.leadership.subscribe());
        let leases = leases.into_iter().flatten().map(watched).collect();
        LeaderHealth::new(self.main.timing.lease_duration, leases, Arc::clone(&self.main.elapsed))
    }

    /// Runs `manager` until `stop`, its loops while this process leads.
    ///
    /// # Guarantees
    /// No write is sent while this process does not lead. The lease is released when no loop runs any more, soon after
    /// `stop`: a reconcile with many writes is not finished for it.
    ///
    /// # Errors
    /// [`Ended::LeaseLost`] if a lease was lost and the policy ends the process then.
    pub(crate) async fn run(self, manager: Manager, config: kube::Config, stop: Stop) -> Result<(), Ended> {
        let Self { main, migration, policy } = self;
        let handle = manager.handle();
        handle.stop_loops(Duration::ZERO).await;
        let fence = LeaseFence::new(handle.fence().clone(), Arc::clone(&main.elapsed));
        let migration = migration.map(|migration| migration.of_manager(&manager, config.clone(), policy));
        let fences = migration.as_ref().map(|migration| migration.fence().clone());
        let fences: Vec<_> = fences.into_iter().chain([fence.clone()]).collect();
        let handover = main.releases.then_some(fences);
        let connection = Arc::new(manager.clients().connection().clone());
        let lease = Lease { options: main, of_thread: Held { config, fence, connection } };
        let leadership = lease.options.leadership.subscribe();
        let mut leader = Leader { handle, policy, handover, leadership, migration, term: None };
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
    of_thread: Held,
}

impl Lease {
    async fn compete(self) -> Result<LeaseThread, LeaseThreadError> {
        LeaseThread::start(self.options, self.of_thread).await
    }
}

/// A manager that runs its loops while it leads.
struct Leader {
    handle: ManagerHandle,
    policy: Policy,
    /// Fences to close before the leases are released; `None` if they are not released.
    handover: Option<Vec<LeaseFence>>,
    leadership: watch::Receiver<Leadership>,
    migration: Option<Migration>,
    /// The term in which the loops run.
    term: Option<u64>,
}

impl Leader {
    /// Runs the manager, and competes for the lease once the API server responds and can be discovered. An overloaded
    /// API server would otherwise make this process lead without being able to act.
    async fn run_warm(&mut self, manager: Manager, lease: Lease, stop: &Stop) -> Result<(), Ended> {
        let handle = self.handle.clone();
        let mut running = pin!(manager.run(stop.clone()));
        tokio::select! {
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
                () = stop.drain.cancelled() => {}
                () = stop.abort.cancelled() => {}
            }
        };
        tokio::select! {
            () = stopped() => return Ok(()),
            probed = manager.probe() => probed?,
        }
        let mut thread = lease.compete().await?;
        let leads = tokio::select! {
            () = stopped() => false,
            leads = self.leadership.wait_for(|leadership| leadership.term.is_some()) => leads.is_ok(),
        };
        if leads {
            let running = pin!(manager.run(stop.clone()));
            self.follow(running, &mut thread, stop).await
        } else {
            self.give_up(&mut thread).await;
            Ok(())
        }
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
            ended = &mut running => {
                self.give_up(thread).await;
                return Ok(ended?);
            }
            () = thread.ended() => Some(Ended::LeaseLost),
            lost = self.act() => Some(lost),
            () = stop.drain.cancelled() => None,
        };
        if let Some(lost) = lost {
            tracing::error!("Leader election lost");
            stop.abort.cancel();
            drop(running.await);
            self.give_up(thread).await;
            return Err(lost);
        }
        // The loops stop first. A successor need not wait for the rest, such as events that are still being sent.
        let handle = self.handle.clone();
        let (grace, handover) = (self.policy.grace, self.handover.clone());
        let released = async {
            drain(&handle, grace, handover.as_deref()).await;
            self.give_up(thread).await;
        };
        let (ended, ()) = tokio::join!(running, released);
        Ok(ended?)
    }

    /// Gives all leases up. Called when no loop runs any more.
    async fn give_up(&mut self, thread: &mut LeaseThread) {
        if let Some(migration) = &mut self.migration {
            migration.give_up().await;
        }
        thread.stop().await;
    }

    /// Starts the loops when this process leads, and stops them when it does not; returns why the process must end.
    async fn act(&mut self) -> Ended {
        self.leadership.mark_changed();
        loop {
            tokio::select! {
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
            let term = self.leadership.borrow_and_update().term;
            if term == self.term {
                continue;
            }
            if self.term.is_some() {
                if self.policy.exit_on_lost_lease {
                    return Ended::LeaseLost;
                }
                tracing::warn!("Leader election lost; stopping the controllers and competing again");
                self.handle.stop_loops(self.policy.grace).await;
                if let Some(migration) = &mut self.migration {
                    migration.give_up().await;
                }
            }
            self.term = term;
            if term.is_some() {
                tracing::info!("Starting the controllers because this process leads");
                match &mut self.migration {
                    None => self.handle.start_loops(),
                    Some(migration) => {
                        self.handle.start_loops_of(|controller| !migration.includes(controller));
                        if let Err(error) = migration.compete().await {
                            return error.into();
                        }
                    }
                }
            }
        }
    }
}

/// Time for which running reconciles may send writes before the lease is released. The successor continues longer ones,
/// such as a reconcile of a `ReplicaSet` that needs hundreds of pods.
///
/// # Upstream
/// There the requests of running syncs are cancelled at once, also those that have been sent.
const HANDOVER: Duration = Duration::from_millis(250);

/// Stops the loops. If a successor is to lead, no write is sent after [`HANDOVER`], and writes that have been sent are
/// waited for.
async fn drain(handle: &ManagerHandle, grace: Duration, handover: Option<&[LeaseFence]>) {
    let mut stopping = pin!(handle.stop_loops(grace));
    let Some(fences) = handover else { return stopping.await };
    if timeout(HANDOVER, &mut stopping).await.is_err() {
        tracing::info!("Running reconciles send no more writes, so that another replica can continue them");
        fences.iter().for_each(LeaseFence::end);
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
