//! A simulated cluster on a sandbox: nodes, a scheduler, kubelets, and substitutes for some controllers.
//!
//! [`Cluster::start`] runs them against a [`Sandbox`]; pods are then bound, started, restarted and stopped as their
//! annotations, [`PodRules`] and images say.
//!
//! ```text
//!             ┌── nodes ─────── register, renew their leases, fail, come back
//! store ─▶ changes ── scheduler ── binds pods, or reports why it cannot
//!   ▲      (a cursor) └─ kubelets ─── start, restart, fail, finish and stop bound pods
//!   │
//!   └───────────── writes with the semantics of requests, but for faults
//! ```
//!
//! Each component is a value that observes changes and acts when something is due; one task drives all of them in a
//! fixed order. So the same seed and the same requests, on a paused clock, give the same run.
//!
//! # Guarantees
//!
//! - Every component observes each change once. A pod's start costs time proportional to the number of nodes, not of pods.
//! - Faults of the sandbox apply to requests alone: the cluster continues behind a broken API.
//! - The behaviour of a pod follows its annotations, the [`PodRules`], and the tag of its image; see `docs/sandbox-pods.md`.
//!
//! # What it deliberately does not do
//!
//! - The scheduler applies required constraints, then prefers the least allocated node: no preferences, no preemption, no
//!   volumes, no resource claims, no namespace selectors with labels in affinity terms, one scheduler.
//! - Kubelets admit every pod that is bound to their node. Probes never fail; volumes, limits, node pressure and
//!   restart rules by exit code are ignored.
//! - A node becomes unready only because its kubelet is stopped.

mod behaviour;
mod change;
mod command;
mod dice;
mod drain;
mod engine;
mod event_recorder;
mod kubelet;
mod nodes;
mod options;
mod resource_list;
mod schedule;
mod server_objects;
mod timers;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::behaviour::{PhraseError, PodRules, RulesError};
pub use self::command::CommandError;
use self::engine::{Engine, Turn};
use self::nodes::Nodes;
pub use self::options::ClusterOptions;
use kcm_sandbox_apiserver::Sandbox;
use kcm_sandbox_apiserver::direct::DirectClient;

/// A running cluster in a sandbox; dropping it stops all components.
pub struct Cluster {
    engine: Arc<Mutex<Engine>>,
    api: DirectClient,
    /// Closed when the task that drives the cluster ends.
    life: watch::Receiver<()>,
    /// Owns the task that drives the cluster.
    _tasks: JoinSet<()>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

impl Cluster {
    /// Starts a cluster; must be called within a tokio runtime.
    ///
    /// Existing nodes and pods are adopted: every node gets a kubelet, also a node that a client created.
    #[must_use]
    pub fn start(sandbox: &Sandbox, options: ClusterOptions) -> Self {
        let api = DirectClient::new(sandbox);
        let (nodes, server_objects) = (options.nodes, options.server_objects);
        let engine = Engine::new(&api, options);
        for number in 1..=nodes {
            // Already exists is success.
            drop(Nodes::create(&api.by("kubelet"), &format!("node-{number}")));
        }
        if server_objects {
            server_objects::create(&api);
        }
        let engine = Arc::new(Mutex::new(engine));
        let mut tasks = JoinSet::new();
        let (alive, life) = watch::channel(());
        let driven = drive(engine.clone(), api.clone());
        tasks.spawn(async move {
            // Dropped when the task ends, also by a panic.
            let _alive = alive;
            driven.await;
        });
        Self { engine, api, life, _tasks: tasks }
    }

    /// Waits until the simulation has panicked, which is a bug.
    pub async fn failed(&self) {
        // Nothing is ever sent: this returns when the sender is dropped.
        drop(self.life.clone().changed().await);
    }

    /// Executes a command and returns its output, without a trailing line break.
    ///
    /// `help` lists the commands. Long operations such as drains continue after the response.
    ///
    /// # Errors
    /// For unknown commands and nodes, with the nearest known name.
    pub fn command(&self, text: &str) -> Result<String, CommandError> {
        let answer = command::run(&mut self.engine.lock(), text);
        // Wakes the task: the command may have changed the next due time.
        self.api.notify();
        answer
    }
}

async fn drive(engine: Arc<Mutex<Engine>>, api: DirectClient) {
    let mut changes = api.changes();
    loop {
        // Before the iteration: a write during it notifies again.
        changes.mark_unchanged();
        let turn = engine.lock().turn();
        match turn {
            Turn::More => tokio::task::yield_now().await,
            Turn::Idle(None) => drop(changes.changed().await),
            Turn::Idle(Some(at)) => {
                // Both start the next iteration.
                drop(tokio::time::timeout_at(api.instant(at), changes.changed()).await);
            }
        }
    }
}
