//! Leader migration: the controllers that move between controller managers run under a lease of their own.
//!
//! ```text
//!  main lease        ──▶ all controllers but those that migrate; then this process competes for
//!  migration lease   ──▶ the controllers that migrate, if its configuration gives them to this component
//! ```
//!
//! Controllers that migrate and belong to another component run under neither lease.
//!
//! # Upstream
//! `k8s.io/controller-manager/pkg/leadermigration` and its use in `cmd/kube-controller-manager/app`. There the second
//! lease is competed for when the token controller runs, here as soon as the first is acquired.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::client::Fence;
use kcm_framework::{Manager, ManagerHandle};
use tokio::sync::watch;

use super::ended::Ended;
use super::fences::closed_for_lease;
use super::leadership::Leadership;
use super::settings::{MigrationSettings, Policy};
use super::thread::{Compete, GiveUp, Held, LeaseConnection, LeaseThread, LeaseThreadError, Options};

/// The lease of leader migration, before its manager runs.
pub(super) struct MigrationLease {
    options: Options,
    controllers: BTreeSet<String>,
}

impl MigrationLease {
    /// Makes the lease of leader migration, with the identity and the periods of `main`.
    pub(super) fn new(settings: MigrationSettings, main: &Options) -> Self {
        let MigrationSettings { lease, controllers } = settings;
        let lease = ObjectKey::namespaced(main.lease.namespace().unwrap_or_default(), lease.as_str());
        let connection = LeaseConnection::new(&lease, &main.identity);
        let options = Options { lease, connection, leadership: watch::Sender::default(), ..main.clone() };
        Self { options, controllers }
    }

    /// The options of the lease.
    pub(super) const fn options(&self) -> &Options {
        &self.options
    }

    /// The controllers of `manager` under this lease, whose clients get a fence of their own.
    pub(super) fn of_manager(self, manager: &Manager, compete: Compete, policy: Policy) -> Migration {
        let fence = Fence::default();
        fence.reserve(self.options.timing.reserve());
        for controller in &self.controllers {
            manager.clients().set_fence(controller, fence.clone());
        }
        let handle = manager.handle();
        let leadership = self.options.leadership.subscribe();
        let fence = closed_for_lease(fence, Arc::clone(&self.options.elapsed));
        let held = Held { fence, connection: Arc::new(handle.clone()) };
        Migration { lease: self, handle, held, compete, policy, leadership, thread: None, term: None, expects: false }
    }
}

/// The controllers of a manager that run under the lease of leader migration.
pub(super) struct Migration {
    lease: MigrationLease,
    handle: ManagerHandle,
    held: Held,
    compete: Compete,
    policy: Policy,
    leadership: watch::Receiver<Leadership>,
    /// Present while this process competes for the lease.
    thread: Option<LeaseThread>,
    /// The term in which the loops run.
    term: Option<u64>,
    /// `true` while the manager prepares a takeover.
    expects: bool,
}

impl Migration {
    /// Returns `true` if the controller migrates.
    pub(super) fn includes(&self, controller: &str) -> bool {
        self.lease.controllers.contains(controller)
    }

    /// Competes for the lease from now on. Called when this process leads.
    ///
    /// # Errors
    /// If the thread of the lease cannot run.
    pub(super) async fn compete(&mut self) -> Result<(), LeaseThreadError> {
        self.thread = Some((self.compete)(self.lease.options.clone(), self.held.clone()).await?);
        Ok(())
    }

    /// Gives the lease up. Called when no controller runs that migrates.
    pub(super) async fn give_up(&mut self, how: GiveUp) {
        if let Some(mut thread) = self.thread.take() {
            thread.stop(how).await;
        }
        self.term = None;
    }

    /// Prepares a takeover that is expected.
    fn expect(&mut self, is_expected: bool) {
        if std::mem::replace(&mut self.expects, is_expected) != is_expected {
            self.handle.expect_takeover(is_expected);
        }
    }

    /// The fence of the controllers that migrate.
    pub(super) const fn fence(&self) -> &Fence {
        &self.held.fence
    }

    /// Waits for a change of the lease, which the loops follow.
    ///
    /// # Errors
    /// [`Ended::LeaseLost`] if the process must end because the lease was lost.
    ///
    /// # Cancellation
    /// No change is lost.
    pub(super) async fn changed(&mut self) -> Result<(), Ended> {
        loop {
            let (term, is_expected, predecessor) = {
                let leadership = self.leadership.borrow_and_update();
                (leadership.term, leadership.is_expected, leadership.predecessor.clone())
            };
            if term == self.term {
                self.expect(is_expected);
                // The sender lives as long as this value.
                if self.leadership.changed().await.is_err() {
                    return Err(Ended::LeaseLost);
                }
                continue;
            }
            if self.term.is_some() {
                if self.policy.exit_on_lost_lease {
                    return Err(Ended::LeaseLost);
                }
                tracing::warn!(lease = %self.lease.options.lease, "Lease lost; stopping the migrated controllers");
                let migrates = |controller: &str| self.lease.controllers.contains(controller);
                self.handle.stop_loops_of(migrates, self.policy.grace).await;
            }
            self.term = term;
            if term.is_some() {
                tracing::info!("Starting the migrated controllers");
                self.handle.start_loops_after(|controller| self.lease.controllers.contains(controller), predecessor);
            }
            self.expect(is_expected);
            return Ok(());
        }
    }
}
