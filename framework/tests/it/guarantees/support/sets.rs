//! A controller of sets: each wants as many parts as its label `count` says. What it does about that is up to a test.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kcm_api::{ObjectKey, PartialObjectMeta, Resource, Uid};
use kcm_framework::client::{ApiError, Deleted, Payload, Written};
use kcm_framework::{ControllerContext, Delete, Loops, Reconcile, ReconcileError, Session, Source, async_trait};
use kcm_informers::{Informer, ListOptions};
use kcm_sandbox_apiserver::{Request, Sandbox};
use kcm_workqueue::Queue;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{PATIENCE, Setup, Started, descriptor, until};

pub(crate) const SETS: Resource = Resource::namespaced("example.com", "v1", "sets", "Set");
pub(crate) const PARTS: Resource = Resource::namespaced("example.com", "v1", "parts", "Part");
pub(crate) const CONTROLLER: &str = "sets-controller";

/// Options of a test that are set before anything runs.
pub(crate) struct Options {
    pub(crate) workers: usize,
    /// The resource of the parts.
    pub(crate) resource: Resource,
    /// The list options of the caches of parts; the reconciler sees the first.
    pub(crate) parts: Vec<ListOptions>,
    pub(crate) client: Option<kube::Client>,
    /// Whether a failure of the controller ends the manager.
    pub(crate) ends_on_failure: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { workers: 4, resource: PARTS, parts: vec![ListOptions::default()], client: None, ends_on_failure: false }
    }
}

/// One reconcile of one set.
pub(crate) struct Turn<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) session: &'a Session,
    /// Number of earlier reconciles of the key.
    pub(crate) number: usize,
    sets: &'a Informer<PartialObjectMeta>,
    parts: &'a Informer<PartialObjectMeta>,
}

impl Turn<'_> {
    /// Number of parts that the set in the cache wants.
    pub(crate) fn wanted(&self) -> usize {
        let set = self.sets.get(self.key);
        set.map_or(0, |set| set.metadata.labels.get("count").unwrap_or("0").parse().unwrap())
    }

    /// The uid of the set in the cache.
    pub(crate) fn uid(&self) -> Uid {
        self.sets.get(self.key).map(|set| set.metadata.uid.clone()).unwrap_or_default()
    }

    /// The parts of the set, as the cache shows them.
    pub(crate) fn parts(&self) -> Vec<Arc<PartialObjectMeta>> {
        let mut parts = self.parts.list();
        parts.retain(|part| part.metadata.labels.get("set") == Some(self.key.name()));
        parts
    }

    /// Creates one part of the set, under a name of its own.
    pub(crate) async fn create_part(&self) -> Result<Written, ApiError> {
        let name = self.session.generate_name(&format!("{}-", self.key.name()));
        let object = part(&name, self.key.name());
        self.session.of(&PARTS).create(&key(&name), Payload::json(&object)).await
    }

    /// Creates one part the first time that the key is reconciled.
    pub(crate) async fn create_part_at_first(self) -> Result<(), ReconcileError> {
        if self.number == 0 {
            self.create_part().await?;
        }
        Ok(())
    }

    /// Creates one part if a part is missing in the cache.
    pub(crate) async fn create_one_missing(self) -> Result<(), ReconcileError> {
        if self.parts().len() < self.wanted() {
            self.create_part().await?;
        }
        Ok(())
    }

    /// Creates the missing parts. A part that probably exists counts as existing.
    pub(crate) async fn create_missing(self) -> Result<(), ReconcileError> {
        for _ in self.parts().len()..self.wanted() {
            match self.create_part().await {
                Err(error) if error.is_probably_created() => {}
                answer => drop(answer?),
            }
        }
        Ok(())
    }

    /// Deletes a part of that name and uid.
    pub(crate) async fn delete_part(&self, name: &str, uid: &Uid) -> Result<Deleted, ApiError> {
        self.session.of(&PARTS).delete(&key(name), uid, &Delete::default()).await
    }
}

type Work = Box<dyn for<'a> Fn(Turn<'a>) -> BoxFuture<'a, Result<(), ReconcileError>> + Send + Sync>;

/// One reconcile, as the test sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Visit {
    pub(crate) name: String,
    pub(crate) began: Instant,
}

#[derive(Default)]
struct Log {
    begun: Vec<Visit>,
    counts: BTreeMap<ObjectKey, usize>,
    processing: Vec<ObjectKey>,
    most_processing: usize,
}

struct Shared {
    work: Work,
    log: Mutex<Log>,
    ended: watch::Sender<usize>,
    wiring: Mutex<Option<Wiring>>,
}

#[derive(Clone)]
struct Wiring {
    queue: Queue<ObjectKey>,
    sets: Informer<PartialObjectMeta>,
    parts: Informer<PartialObjectMeta>,
}

struct Reconciler {
    shared: Arc<Shared>,
    wiring: Wiring,
}

/// Notes the end of a reconcile, a panic included.
struct Processing<'a>(&'a Shared, &'a ObjectKey);

impl Drop for Processing<'_> {
    fn drop(&mut self) {
        self.0.log.lock().processing.retain(|key| key != self.1);
        self.0.ended.send_modify(|ended| *ended += 1);
    }
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let number = {
            let mut log = self.shared.log.lock();
            assert!(!log.processing.contains(key), "{key} is processed twice at once");
            log.processing.push(key.clone());
            log.most_processing = log.most_processing.max(log.processing.len());
            log.begun.push(Visit { name: key.name().to_owned(), began: Instant::now() });
            let count = log.counts.entry(key.clone()).or_default();
            *count += 1;
            *count - 1
        };
        let _in_hand = Processing(&self.shared, key);
        let Wiring { sets, parts, .. } = &self.wiring;
        (self.shared.work)(Turn { key, session, number, sets, parts }).await
    }
}

/// A sandbox with sets and parts, and a manager with the controller of sets.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) manager: Started,
    shared: Arc<Shared>,
    wiring: Wiring,
}

impl World {
    pub(crate) async fn start<W>(work: W) -> Self
    where
        W: for<'a> Fn(Turn<'a>) -> BoxFuture<'a, Result<(), ReconcileError>> + Send + Sync + 'static,
    {
        Self::with(Options::default(), &sandbox(), work).await
    }

    pub(crate) async fn with<W>(options: Options, sandbox: &Sandbox, work: W) -> Self
    where
        W: for<'a> Fn(Turn<'a>) -> BoxFuture<'a, Result<(), ReconcileError>> + Send + Sync + 'static,
    {
        let shared = Arc::new(Shared {
            work: Box::new(work),
            log: Mutex::default(),
            ended: watch::Sender::new(0),
            wiring: Mutex::default(),
        });
        let mut setup = Setup::on(sandbox);
        if let Some(client) = options.client {
            setup = setup.client(client);
        }
        if options.ends_on_failure {
            setup = setup.ends_on_failure();
        }
        let (known, workers, parts) = (Arc::clone(&shared), options.workers, (options.resource, options.parts));
        let setup = setup.controller(descriptor(CONTROLLER), move |context| {
            let running = init(&context, &known, workers, &parts.0, &parts.1);
            async move { Ok(running) }
        });
        let manager = setup.start();
        let synced = || shared.wiring.lock().as_ref().is_some_and(|w| w.sets.has_synced() && w.parts.has_synced());
        until("the caches have synced", synced).await;
        let wiring = shared.wiring.lock().clone().unwrap();
        Self { sandbox: sandbox.clone(), manager, shared, wiring }
    }

    /// Creates a set that wants `count` parts.
    pub(crate) fn create_set(&self, name: &str, count: usize) {
        self.sandbox.create(&SETS, set(name, count)).unwrap();
    }

    /// Changes a set in a way that adds its key.
    pub(crate) fn touch(&self, name: &str) {
        let version = self.sandbox.version().to_string();
        self.sandbox.patch(&SETS, &key(name), &json!({"metadata": {"annotations": {"touched": version}}})).unwrap();
    }

    /// Changes how many parts a set wants.
    pub(crate) fn scale_set(&self, name: &str, count: usize) {
        let labels = json!({"count": count.to_string()});
        self.sandbox.patch(&SETS, &key(name), &json!({"metadata": {"labels": labels}})).unwrap();
    }

    /// Adds a key by hand.
    pub(crate) fn add(&self, name: &str) {
        self.wiring.queue.add(key(name), kcm_workqueue::Priority::Live);
    }

    /// The reconciles begun so far.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.shared.log.lock().begun.clone()
    }

    /// Waits until `count` reconciles have ended, and returns when they began, counted from the first.
    pub(crate) async fn visited(&self, count: usize) -> Vec<Duration> {
        let mut ended = self.shared.ended.subscribe();
        let enough = ended.wait_for(|ended| *ended >= count);
        let waited = tokio::time::timeout(PATIENCE, enough).await.is_ok();
        let visits = self.visits();
        assert!(waited, "there were only {} reconciles", visits.len());
        visits.iter().map(|visit| visit.began - visits[0].began).collect()
    }

    /// Number of failures of the key in a row.
    pub(crate) fn failures(&self, name: &str) -> u32 {
        self.wiring.queue.failures(&key(name))
    }

    /// The names of the sets that wait for their own writes.
    pub(crate) fn parked(&self) -> Vec<String> {
        self.wiring.queue.snapshot().parked.iter().map(|held| held.key.name().to_owned()).collect()
    }

    /// Number of keys that take memory in the queue.
    pub(crate) fn remembered(&self) -> usize {
        self.wiring.queue.snapshot().remembered
    }

    pub(crate) fn most_processing(&self) -> usize {
        self.shared.log.lock().most_processing
    }

    /// When requests of that method for parts came, counted from the first.
    pub(crate) fn request_times(&self, method: &str) -> Vec<Duration> {
        let mut requests = self.sandbox.requests();
        requests.retain(|request| request.method == method && request.path.contains("/parts"));
        requests.iter().map(|request| request.at.saturating_sub(requests[0].at)).collect()
    }

    /// The live checks of single objects.
    pub(crate) fn live_checks(&self) -> Vec<Request> {
        let mut requests = self.sandbox.requests();
        requests.retain(|request| request.query.contains("metadata.name"));
        requests
    }

    /// Returns `true` if a reconcile ended with that result.
    pub(crate) fn has_result(&self, result: &str) -> bool {
        self.manager.metrics.encode().contains(&format!("result=\"{result}\""))
    }

    /// The names of all parts, as the API server has them.
    pub(crate) fn parts(&self) -> Vec<String> {
        let parts = self.sandbox.list(&PARTS, None);
        parts.iter().map(|part| part["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// A sandbox that serves sets and parts.
pub(crate) fn sandbox() -> Sandbox {
    let sandbox = Sandbox::default();
    sandbox.register(SETS);
    sandbox.register(PARTS);
    sandbox
}

fn init(
    context: &ControllerContext,
    shared: &Arc<Shared>,
    workers: usize,
    resource: &Resource,
    list_options: &[ListOptions],
) -> Loops {
    let mut described = context.control_loop("sets").workers(workers);
    let sets = described.primary_for(Source::of(SETS));
    let source = |list_options: &ListOptions| Source::of(resource.clone()).list_options(list_options.clone());
    let parts = described.watches_for(source(&list_options[0]), |change| {
        let part: &Arc<PartialObjectMeta> = change.object();
        part.metadata.labels.get("set").map(key)
    });
    for list_options in &list_options[1..] {
        described.reads_for::<PartialObjectMeta>(source(list_options));
    }
    let wiring = Wiring { queue: described.queue(), sets, parts };
    *shared.wiring.lock() = Some(wiring.clone());
    Loops::new().with(described.reconcile(Reconciler { shared: Arc::clone(shared), wiring }))
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

pub(crate) fn set(name: &str, count: usize) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Set",
        "metadata": {"name": name, "namespace": "default", "labels": {"count": count.to_string()}},
    })
}

pub(crate) fn part(name: &str, set: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Part",
        "metadata": {"name": name, "namespace": "default", "labels": {"set": set}},
    })
}
