//! The handle of a manager.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use kcm_api::ObjectKey;
use kcm_client::{ClientBuilder, Fence, WriteRecord};
use kcm_config::Effective;
use kcm_informers::{Connection, ConnectionStatus, Factory, InformerStatus};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::stage::Stage;
use crate::controller::{ControllerDescriptor, Registry, Selection};
use crate::discovery::Discovery;
use crate::explain::{KeyExplanation, LoopKeys, QueueStatus, WaitExplanation};
use crate::live_settings::LiveSettings;
use crate::metrics::Metrics;
use crate::panics::{PanicLog, TaskPanics};
use crate::supervise::{ControllerStatus, Controls, LoopState, Record};
use crate::takeover::{Handover, Predecessor};

/// Period between two looks at the caches that have not synced.
const SYNC_PERIOD: Duration = Duration::from_secs(1);

/// The handle of a manager: reads the state of its controllers, and changes the manager while it runs.
///
/// Made by [`Manager::handle`](crate::Manager::handle), before the manager runs. Cheap to clone; all clones are one
/// handle. It does not keep the manager running, and shows stopped controllers after its end.
#[derive(Clone)]
pub struct ManagerHandle {
    inner: Arc<Inner>,
}

struct Inner {
    /// Of every controller, sorted by name.
    records: Vec<Arc<Record>>,
    descriptors: Vec<ControllerDescriptor>,
    controls: Arc<Controls>,
    settings: LiveSettings,
    fence: Fence,
    writes: WriteRecord,
    connection: Connection,
    /// The connection of service accounts, if they have their own.
    of_accounts: Option<Connection>,
    panics: PanicLog,
    /// The stage that the start has reached.
    stage: watch::Sender<Option<Stage>>,
    /// Absent before the start and after the end.
    running: Mutex<Option<Running>>,
}

/// The parts of a manager that runs.
#[derive(Clone)]
struct Running {
    informers: Factory,
    discovery: Discovery,
}

impl ManagerHandle {
    pub(super) fn new(
        registry: &Registry,
        controls: Controls,
        settings: LiveSettings,
        clients: &ClientBuilder,
        of_accounts: Option<Connection>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let records: Vec<_> = registry.iter().map(|descriptor| Record::new(descriptor.name)).collect();
        let shown = records.clone();
        metrics.show_controllers(move || {
            shown.iter().filter_map(|record| Some((record.name(), record.runs()?))).collect()
        });
        let inner = Inner {
            records,
            descriptors: registry.iter().copied().collect(),
            controls: Arc::new(controls),
            settings,
            fence: clients.fence().clone(),
            writes: clients.writes().clone(),
            connection: clients.connection().clone(),
            of_accounts,
            panics: PanicLog::new(Arc::clone(metrics)),
            stage: watch::Sender::new(None),
            running: Mutex::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    /// A reference that does not keep the handle.
    pub(super) fn downgrade(&self) -> WeakHandle {
        WeakHandle(Arc::downgrade(&self.inner))
    }

    /// The status of every controller, sorted by name.
    #[must_use]
    pub fn controllers(&self) -> Vec<ControllerStatus> {
        self.inner.records.iter().map(|record| record.status()).collect()
    }

    /// The status of the controller of that name. `None` if the registry does not have it.
    #[must_use]
    pub fn controller(&self, name: &str) -> Option<ControllerStatus> {
        Some(self.record(name)?.status())
    }

    /// Runs the [health check](crate::Loops::health) of a controller. A controller without a health check is healthy,
    /// and so is a controller that is not initialized. `None` if the registry has no controller of that name.
    ///
    /// # Errors
    /// The reason why it is unhealthy.
    ///
    /// # Upstream
    /// Each controller has a check of its name in `/healthz`.
    #[must_use]
    pub fn health(&self, name: &str) -> Option<Result<(), String>> {
        let (check, _) = self.record(name)?.pages();
        Some(check.map_or(Ok(()), |check| check()))
    }

    /// The response of the [debug page](crate::Loops::debug) of a controller, to a request whose path is relative to
    /// that page. `None` if the controller is not initialized or has no debug page.
    #[must_use]
    pub fn debug(&self, name: &str, request: &http::Request<()>) -> Option<http::Response<String>> {
        let (_, page) = self.record(name)?.pages();
        page.map(|page| page(request))
    }

    /// The status of the queues of all initialized controllers, sorted by controller.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueStatus> {
        let inspected = self.inner.records.iter().flat_map(|record| record.inspected());
        inspected.map(|(_, one)| one.queue_status()).collect()
    }

    /// As [`queues`](Self::queues), with the names of the queues and the numbers of their keys only: copies no key.
    #[must_use]
    pub fn queue_counts(&self) -> Vec<QueueStatus> {
        let inspected = self.inner.records.iter().flat_map(|record| record.inspected());
        inspected.map(|(_, one)| one.queue_counts()).collect()
    }

    /// All keys of all loops with keys, sorted by controller: a queue may hold very many. Loops of controllers that are not
    /// initialized have none.
    #[must_use]
    pub fn loop_keys(&self) -> Vec<LoopKeys> {
        let inspected = self.inner.records.iter().flat_map(|record| record.inspected());
        inspected.map(|(_, one)| one.keys()).collect()
    }

    /// Explains the keys of a controller that name `object`, one explanation for each of its loops: what they wait for, and
    /// why they were reconciled. Empty while the controller is not initialized. `None` if the registry has no
    /// controller of that name.
    #[must_use]
    pub fn explain(&self, controller: &str, object: &ObjectKey) -> Option<Vec<KeyExplanation>> {
        let explained = self.record(controller)?.inspected().into_iter().map(|(state, one)| {
            let mut explained = one.explain(object);
            let waits = match state {
                LoopState::Running | LoopState::Ended => None,
                LoopState::Stopped => Some("the loops of the manager to start, as when it leads"),
                LoopState::WaitingForCaches => Some("the caches of the loop to sync"),
                LoopState::Restarting => Some("the loop to start again after its failure"),
            };
            explained.waits_for.extend(waits.map(|message| WaitExplanation::new("Loop", message)));
            explained
        });
        Some(explained.collect())
    }

    /// The status of each informer; empty unless the manager runs.
    #[must_use]
    pub fn informers(&self) -> Vec<InformerStatus> {
        self.running().map(|running| running.informers.status()).unwrap_or_default()
    }

    /// As [`informers`](Self::informers), with the memory of each cache at least, in bytes. Reads every cached object.
    #[must_use]
    pub fn caches(&self) -> Vec<(InformerStatus, usize)> {
        self.running().map(|running| running.informers.status_with_bytes()).unwrap_or_default()
    }

    /// The state of the connection to the API server.
    #[must_use]
    pub fn connection(&self) -> ConnectionStatus {
        self.inner.connection.status()
    }

    /// The discovery of the resources that the API server serves; absent unless the manager runs.
    pub(super) fn discovery(&self) -> Option<Discovery> {
        self.running().map(|running| running.discovery)
    }

    fn running(&self) -> Option<Running> {
        self.inner.running.lock().clone()
    }

    /// The tasks of the manager that have panicked, sorted by name. Controllers count their own failures.
    #[must_use]
    pub fn task_panics(&self) -> Vec<TaskPanics> {
        self.inner.panics.all()
    }

    /// Waits until the start of the manager has reached `stage`.
    ///
    /// A process that competes for a lease waits for [`Stage::Controllers`] first: by then the API server responds and
    /// its resources are known.
    pub async fn reaches(&self, stage: Stage) {
        let mut reached = self.inner.stage.subscribe();
        // The sender lives as long as this handle.
        drop(reached.wait_for(|reached| reached.is_some_and(|reached| reached >= stage)).await);
    }

    /// Enables the controllers of `selection`, and disables all others, while the manager runs.
    ///
    /// An added controller is initialized in its turn and runs. A removed controller drains within the
    /// [grace](crate::ManagerBuilder::grace) of the manager, and its event handlers end, as do informers that no other
    /// controller uses. Nothing changes for all other controllers. A controller that
    /// [needs](crate::ControllerDescriptor::needs) parts that no controller needed at the start is not started, and its state
    /// gives this reason.
    ///
    /// An added controller reads its own settings as they were last [reloaded](Self::reload). If it reads a setting of
    /// another controller, or a feature gate, that has changed since the start, it is not started, and its state gives
    /// this reason.
    pub fn select(&self, selection: Selection) {
        let Inner { descriptors, controls, settings, .. } = &*self.inner;
        for descriptor in descriptors {
            match (controls.enables(descriptor), selection.enables(descriptor)) {
                (false, true) => settings.enable(descriptor.name),
                (true, true) => {}
                (_, false) => settings.disable(descriptor.name),
            }
        }
        controls.select(selection);
    }

    /// Applies new values of settings that are [reloaded](kcm_config::Row::reloaded): the numbers of workers of loops.
    /// Controllers that are [added](Self::select) later read their own settings from `settings`. All other settings
    /// keep the values of the start.
    pub fn reload(&self, settings: Effective) {
        self.inner.settings.replace(settings);
    }

    /// Returns `true` if the manager, or a controller that is enabled, uses another value of a setting than `settings`
    /// has, and does so until the next start.
    #[must_use]
    pub fn needs_restart(&self, setting: &str, settings: &Effective) -> bool {
        let Inner { descriptors, controls, .. } = &*self.inner;
        let owns = |descriptor: &&ControllerDescriptor| descriptor.settings.iter().any(|row| row.name == setting);
        let enabled = descriptors.iter().filter(|descriptor| controls.enables(descriptor));
        let owners = enabled.filter(owns).map(|descriptor| descriptor.name);
        self.inner.settings.needs_restart(setting, settings, owners)
    }

    /// Stops the loops of all controllers, and returns when none runs. Informers and event handlers stay, so that the
    /// caches are up to date when the loops start again.
    ///
    /// Running reconciles may take `grace` to finish, and are aborted then. Called before the manager runs, it starts
    /// without its loops.
    pub async fn stop_loops(&self, grace: Duration) {
        self.stop_loops_of(|_| true, grace).await;
    }

    /// As [`stop_loops`](Self::stop_loops), for the controllers for whose canonical names `includes` returns `true`.
    pub async fn stop_loops_of(&self, includes: impl Fn(&str) -> bool, grace: Duration) {
        self.inner.controls.stop_loops(includes, grace).await;
    }

    /// Starts the loops of all controllers again.
    pub fn start_loops(&self) {
        self.start_loops_of(|_| true);
    }

    /// As [`start_loops`](Self::start_loops), for the controllers for whose canonical names `includes` returns `true`.
    pub fn start_loops_of(&self, includes: impl Fn(&str) -> bool) {
        self.inner.controls.start_loops(includes);
    }

    /// As [`start_loops_of`](Self::start_loops_of), for a manager that takes over from `predecessor`: each loop begins when
    /// the caches that it reads show everything that was written before this call.
    ///
    /// A cache that has reached the version that the predecessor handed over does. Others prove it by two watches that end
    /// within three seconds, or are listed again after five.
    pub fn start_loops_after(&self, includes: impl Fn(&str) -> bool, predecessor: Predecessor) {
        self.inner.controls.start_loops_after(includes, predecessor);
    }

    /// Has the revision of the storage of the API server compared with the caches, because it may have gone back, as after a
    /// restore of etcd from a backup. Caches that are ahead of the revision are listed again.
    ///
    /// There is one request in ten seconds at most. Does nothing unless the manager runs.
    pub fn suspect_rollback(&self) {
        if let Some(running) = self.running() {
            running.informers.suspect_rollback();
        }
    }

    /// Sets if a call of [`start_loops_after`](Self::start_loops_after) is likely within a second, for example because the
    /// lease of the leader expires. Its proofs then take half a second less, or a second.
    ///
    /// It costs the API server four watches for each cache at most, each of three seconds at most.
    pub fn expect_takeover(&self, is_expected: bool) {
        self.inner.controls.expect_takeover(is_expected);
    }

    /// The caches and the writes of this manager, for its successor. Take it while the manager runs: it outlives the
    /// manager.
    #[must_use]
    pub fn handover(&self) -> Handover {
        let caches = self.running().map(|running| running.informers.all_caches()).unwrap_or_default();
        Handover::new(caches, self.inner.writes.clone(), self.inner.controls.takeovers())
    }

    /// Waits until the caches of all controllers have synced. Kinds that the API server does not serve are not waited for.
    pub async fn caches_synced(&self) {
        self.reaches(Stage::Informers).await;
        loop {
            let unsynced = self.running().map(|running| running.informers.unsynced()).unwrap_or_default();
            if unsynced.is_empty() {
                return;
            }
            // A resource may disappear meanwhile.
            drop(tokio::time::timeout(SYNC_PERIOD, join_all(unsynced.iter().map(|cache| cache.wait_synced()))).await);
        }
    }

    /// The fence that all writes of the manager pass, except writes of controllers with a
    /// [fence of their own](kcm_client::ClientBuilder::set_fence).
    ///
    /// A manager that may have lost its lease closes the fence, and then stops its loops.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.inner.fence
    }

    /// The connection to the API server that has been unusable for longest. `None` if all connections can be used.
    ///
    /// A connection is unusable if no API server that its address leads to serves.
    #[must_use]
    pub fn unusable_connection(&self) -> Option<UnusableConnection> {
        let Inner { connection, of_accounts, .. } = &*self.inner;
        let connections = [("the manager", Some(connection)), ("the service accounts", of_accounts.as_ref())];
        let unusable = connections.into_iter().filter_map(|(users, connection)| {
            let status = connection?.status();
            let for_time = status.unreachable_for()?;
            Some(UnusableConnection { users, for_time, cause: status.cause.unwrap_or_default() })
        });
        unusable.max_by_key(|connection| connection.for_time)
    }

    /// The records of all controllers.
    pub(super) fn records(&self) -> &[Arc<Record>] {
        &self.inner.records
    }

    pub(super) fn record(&self, name: &str) -> Option<&Arc<Record>> {
        self.inner.records.iter().find(|record| record.name() == name)
    }

    pub(super) fn controls(&self) -> &Arc<Controls> {
        &self.inner.controls
    }

    pub(super) fn live_settings(&self) -> &LiveSettings {
        &self.inner.settings
    }

    pub(super) fn panics(&self) -> &PanicLog {
        &self.inner.panics
    }

    pub(super) fn enter(&self, stage: Stage) {
        self.inner.stage.send_replace(Some(stage));
    }

    pub(super) fn started(&self, informers: Factory, discovery: Discovery) {
        *self.inner.running.lock() = Some(Running { informers, discovery });
    }

    pub(super) fn ended(&self) {
        *self.inner.running.lock() = None;
    }
}

/// A [`ManagerHandle`] that does not keep the state of the manager, for metrics that the state keeps.
pub(super) struct WeakHandle(Weak<Inner>);

impl WeakHandle {
    pub(super) fn upgrade(&self) -> Option<ManagerHandle> {
        Some(ManagerHandle { inner: self.0.upgrade()? })
    }
}

/// A connection over which the API server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnusableConnection {
    /// Users of the connection: `the manager` or `the service accounts`.
    pub users: &'static str,
    /// Time since the first request that failed.
    pub for_time: Duration,
    /// The result of the last probe.
    pub cause: String,
}

impl std::fmt::Debug for ManagerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManagerHandle").field("controllers", &self.controllers()).finish_non_exhaustive()
    }
}
