//! The moving parts of a cluster, simulated on a sandbox: nodes, a scheduler, kubelets, and substitutes for controllers.
//!
//! [`Cluster::start`] runs them against a [`Sandbox`]; pods are then bound, started, restarted and stopped as their
//! annotations, [`PodRules`] and images say.
//!
//! ```text
//!             ┌── nodes ─────── register, renew their leases, fail, come back
//! store ─▶ changes ── scheduler ── binds pods, or reports why it cannot
//!   ▲      (a cursor) ├─ kubelets ─── start, restart, fail, finish and stop bound pods
//!   │         ├── collector ─── deletes objects without owners
//!   │         └── namespaces ── empties and removes terminating ones
//!   └───────────── writes with the semantics of requests, but for faults
//! ```
//!
//! Each part is a value that observes changes and acts when something is due; one task drives them all, in one order.
//! So the same seed and the same requests, on a paused clock, give the same run.
//!
//! # Guarantees
//!
//! - Only terminating namespaces are polled, every five seconds; every other part observes each change once. A pod's
//!   start costs time by the number of nodes, not by the number of pods.
//! - Faults of the sandbox apply to requests alone: the cluster continues behind a broken API.
//! - A pod does what its annotations, the [`PodRules`], and the tag of its image say; see `docs/sandbox-pods.md`.
//!
//! # What it deliberately does not do
//!
//! - Scheduling goes by what must hold, then by which node has least allocated: no preferences, no preemption, no
//!   volumes, no resource claims, no namespace selectors with labels in affinity terms, one scheduler.
//! - Kubelets admit whatever is bound to their node, run no probes that fail, and know no volumes, no limits
//!   and no pressure. Rules of restart by exit code are not read.
//! - A node of this cluster is silent or not; it is never not ready for another reason.

mod behaviour;
mod change;
mod command;
mod dice;
mod drain;
mod engine;
mod event_recorder;
mod garbage_collector;
mod kubelet;
mod namespaces;
mod nodes;
mod options;
mod resource_list;
mod schedule;
mod timers;

use std::sync::Arc;

use kcm_api::Resource;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::behaviour::{PhraseError, PodRules, RulesError};
pub use self::command::CommandError;
use self::engine::{Engine, Turn};
use self::nodes::Nodes;
pub use self::options::ClusterOptions;
use kcm_sandbox_apiserver::Sandbox;
use kcm_sandbox_apiserver::direct::DirectClient;

const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");

/// A cluster at work in a sandbox; dropping it stops everything where it is.
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
    /// Nodes and pods that are there already are taken over: every node gets a kubelet, whoever created it.
    #[must_use]
    pub fn start(sandbox: &Sandbox, options: ClusterOptions) -> Self {
        let api = DirectClient::new(sandbox);
        let (nodes, furniture) = (options.nodes, options.furniture);
        let engine = Engine::new(&api, options);
        for number in 1..=nodes {
            // One that is there already is as good.
            drop(Nodes::create(&api.by("kubelet"), &format!("node-{number}")));
        }
        if furniture && api.serves(&SERVICES) {
            drop(api.create(&SERVICES, kubernetes_service()));
        }
        let engine = Arc::new(Mutex::new(engine));
        let mut tasks = JoinSet::new();
        let (alive, life) = watch::channel(());
        let driven = drive(engine.clone(), api.clone());
        tasks.spawn(async move {
            // Dropped when this ends, in whatever way.
            let _alive = alive;
            driven.await;
        });
        Self { engine, api, life, _tasks: tasks }
    }

    /// Waits until nothing moves any more because the simulation has panicked, which is a bug.
    pub async fn failed(&self) {
        // Nothing is ever sent: this ends when the sender is gone.
        drop(self.life.clone().changed().await);
    }

    /// Does what a command says, and answers in words, without a line break at the end.
    ///
    /// `help` lists the commands. What takes time, such as draining, goes on after the answer.
    ///
    /// # Errors
    /// Unknown commands and nodes are answered with the nearest known name.
    pub fn command(&self, text: &str) -> Result<String, CommandError> {
        let answer = command::run(&mut self.engine.lock(), text);
        // The task may be asleep until something that the command has brought forward.
        self.api.notify();
        answer
    }
}

async fn drive(engine: Arc<Mutex<Engine>>, api: DirectClient) {
    let mut changes = api.changes();
    loop {
        // Before the turn: what is written during it rings again.
        changes.mark_unchanged();
        let turn = engine.lock().turn();
        match turn {
            Turn::More => tokio::task::yield_now().await,
            Turn::Idle(None) => drop(changes.changed().await),
            Turn::Idle(Some(at)) => {
                // Either is a reason for the next turn.
                drop(tokio::time::timeout_at(api.instant(at), changes.changed()).await);
            }
        }
    }
}

fn kubernetes_service() -> serde_json::Value {
    json!({
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 }],
        },
    })
}
