//! The effects of the description of a loop: which changes enqueue which keys, when, and under which name.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::{ObjectKey, PartialObjectMeta, Resource};
use kcm_framework::workqueue::RetryLimits;
use kcm_framework::{
    Class, ControlLoopBuilder, Enqueue, Loops, Reconcile, ReconcileError, Session, Source, async_trait,
};
use kcm_informers::{Change, ListOptions};
use kcm_sandbox_apiserver::{Cut, Sandbox};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::guarantees::support::{PARTS, SETS, Setup, Started, descriptor, key, part, sandbox, seconds, set, settle};

const CLUSTER_SETS: Resource = Resource::cluster_scoped("example.com", "v1", "clustersets", "ClusterSet");

/// A manager draws its resync period from this to twice this.
const RESYNC: Duration = Duration::from_mins(10);

type Part = PartialObjectMeta;

/// The keys in the order in which they were reconciled, and when.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(ObjectKey, Instant)>>>);

impl Log {
    /// Returns the names of the keys since the last call, sorted, because no order is promised.
    fn take_sorted(&self) -> Vec<String> {
        let mut names = self.take();
        names.sort();
        names
    }

    /// The names of the keys since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock()).into_iter().map(|(key, _)| key.name().to_owned()).collect()
    }
}

/// Logs each key. The key `fails` fails, and the key `slow` takes a second.
#[async_trait]
impl Reconcile for Log {
    async fn reconcile(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.0.lock().push((key.clone(), Instant::now()));
        match key.name() {
            "fails" => Err(ReconcileError::new(Class::Transient, "as the test wants it")),
            "slow" => {
                tokio::time::sleep(seconds(1)).await;
                Ok(())
            }
            _other => Ok(()),
        }
    }
}

/// A manager with one loop that `describe` describes.
fn start(
    sandbox: &Sandbox,
    describe: impl Fn(ControlLoopBuilder) -> ControlLoopBuilder + Send + Sync + 'static,
) -> (Started, Log) {
    let log = Log::default();
    let reconciler = log.clone();
    let setup = Setup::on(sandbox).controller(descriptor("a-controller"), move |context| {
        let described = describe(context.control_loop("a-loop")).reconcile(reconciler.clone());
        async move { Ok(Loops::new().with(described)) }
    });
    (setup.min_resync(RESYNC).start(), log)
}

fn owned(name: &str, kind: &str, owner: &str, uid: &str) -> Value {
    let mut part = part(name, "unused");
    part["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "example.com/v1", "kind": kind, "name": owner, "uid": uid, "controller": true }]);
    part
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_primary_resource_enqueues_its_key_and_so_does_a_resync() {
    let sandbox = sandbox();
    let (_manager, log) = start(&sandbox, |mut described| {
        described.primary_for::<PartialObjectMeta>(Source::of(SETS));
        described
    });
    settle().await;
    sandbox.create(&SETS, set("a", 0)).unwrap();
    settle().await;
    assert_eq!(log.take(), ["a"]);
    sandbox.patch(&SETS, &key("a"), &json!({ "metadata": { "annotations": { "b": "c" } } })).unwrap();
    settle().await;
    assert_eq!(log.take(), ["a"]);
    tokio::time::sleep(2 * RESYNC).await;
    assert_eq!(log.take(), ["a"]);
    sandbox.delete(&SETS, &key("a")).unwrap();
    settle().await;
    assert_eq!(log.take(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_owned_resource_enqueues_its_controller_before_and_after_the_change() {
    let sandbox = sandbox();
    let uid = |name: &str| sandbox.get(&SETS, &key(name)).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    sandbox.create(&SETS, set("a", 0)).unwrap();
    sandbox.create(&SETS, set("b", 0)).unwrap();
    let (_manager, log) = start(&sandbox, |mut described| {
        described.owns_for::<Part>(Source::of(PARTS));
        described.primary_for::<PartialObjectMeta>(Source::of(SETS));
        described
    });
    settle().await;
    log.take();
    sandbox.create(&PARTS, owned("p", "Set", "a", &uid("a"))).unwrap();
    settle().await;
    assert_eq!(log.take(), ["a"], "added");
    let given_to_b =
        json!({ "metadata": { "ownerReferences": owned("p", "Set", "b", &uid("b"))["metadata"]["ownerReferences"] } });
    sandbox.patch(&PARTS, &key("p"), &given_to_b).unwrap();
    settle().await;
    assert_eq!(log.take(), ["a", "b"], "given to another");
    sandbox.patch(&PARTS, &key("p"), &json!({ "metadata": { "labels": { "c": "d" } } })).unwrap();
    settle().await;
    assert_eq!(log.take(), ["b"], "otherwise changed");
    sandbox.delete(&PARTS, &key("p")).unwrap();
    settle().await;
    assert_eq!(log.take(), ["b"], "deleted");
    sandbox.create(&PARTS, owned("of-a-recreated-set", "Set", "a", "another-uid")).unwrap();
    sandbox.create(&PARTS, owned("of-another-kind", "Other", "a", &uid("a"))).unwrap();
    sandbox.create(&PARTS, owned("of-a-missing-set", "Set", "c", "c")).unwrap();
    sandbox.create(&PARTS, part("an-orphan", "a")).unwrap();
    settle().await;
    assert_eq!(log.take(), [""; 0], "not owned");
}

#[tokio::test(start_paused = true)]
async fn an_owner_without_a_namespace_owns_objects_of_namespaces() {
    let sandbox = sandbox();
    sandbox.register(CLUSTER_SETS);
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "ClusterSet", "metadata": { "name": "a" } });
    let owner = sandbox.create(&CLUSTER_SETS, owner).unwrap();
    let (_manager, log) = start(&sandbox, |mut described| {
        described.primary_for::<PartialObjectMeta>(Source::of(CLUSTER_SETS));
        described.owns_for::<Part>(Source::of(PARTS));
        described
    });
    settle().await;
    log.take();
    sandbox.create(&PARTS, owned("p", "ClusterSet", "a", owner["metadata"]["uid"].as_str().unwrap())).unwrap();
    settle().await;
    assert_eq!(log.0.lock()[0].0, ObjectKey::cluster_scoped("a"));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_watched_resource_enqueues_what_its_event_mapping_returns_at_once_or_later() {
    let sandbox = sandbox();
    let (_manager, log) = start(&sandbox, |mut described| {
        described.watches_for(Source::of(PARTS), |change: &Change<Part>| {
            let now = change.object().metadata.labels.get("set").map(|set| Enqueue::from(key(set)));
            now.into_iter().chain([Enqueue::after(key("later"), seconds(5))])
        });
        described
    });
    settle().await;
    let created = Instant::now();
    sandbox.create(&PARTS, part("p", "a")).unwrap();
    tokio::time::sleep(seconds(10)).await;
    let times: Vec<_> =
        log.0.lock().iter().map(|(key, at)| (key.name().to_owned(), (*at - created).as_secs())).collect();
    assert_eq!(times, [("a".to_owned(), 0), ("later".to_owned(), 5)]);
    log.take();
    tokio::time::sleep(2 * RESYNC).await;
    assert_eq!(log.take(), [""; 0], "no resync, unless its source asks for it");
}

#[tokio::test(start_paused = true)]
async fn a_source_may_ask_for_resyncs() {
    let sandbox = sandbox();
    sandbox.create(&PARTS, part("p", "a")).unwrap();
    let (_manager, log) = start(&sandbox, |mut described| {
        described.watches_for(Source::of(PARTS).resync(), |change: &Change<Part>| [change.key().clone()]);
        described
    });
    settle().await;
    assert_eq!(log.take(), ["p"]);
    tokio::time::sleep(2 * RESYNC).await;
    assert_eq!(log.take(), ["p"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_resource_that_is_only_read_enqueues_nothing() {
    let sandbox = sandbox();
    let (_manager, log) = start(&sandbox, |mut described| {
        described.reads_for::<Part>(Source::of(PARTS));
        described
    });
    settle().await;
    sandbox.create(&PARTS, part("p", "a")).unwrap();
    settle().await;
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_repeated_enqueues_nothing_for_objects_that_have_not_changed() {
    let sandbox = sandbox();
    sandbox.create(&SETS, set("a", 0)).unwrap();
    sandbox.create(&SETS, set("b", 0)).unwrap();
    let (_manager, log) = start(&sandbox, |mut described| {
        described.primary_for::<PartialObjectMeta>(Source::of(SETS));
        described
    });
    settle().await;
    assert_eq!(log.take(), ["a", "b"]);
    sandbox.clear_requests();
    // The watch breaks, and the version from which it could go on is gone.
    sandbox.faults().hold_watches(&SETS);
    sandbox.patch(&SETS, &key("b"), &json!({ "metadata": { "annotations": { "c": "d" } } })).unwrap();
    sandbox.compact();
    sandbox.faults().cut_watches(&SETS, Cut::Broken);
    sandbox.faults().release_watches(&SETS);
    tokio::time::sleep(seconds(60)).await;
    let lists = sandbox.requests().into_iter().filter(|request| request.query.contains("sendInitialEvents"));
    assert!(lists.count() > 0, "it was listed again");
    assert_eq!(log.take(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn keys_of_live_changes_go_before_those_of_the_first_list() {
    let sandbox = sandbox();
    for name in ["slow", "x", "y", "z"] {
        sandbox.create(&SETS, set(name, 0)).unwrap();
    }
    let (_manager, log) = start(&sandbox, |mut described| {
        described.primary_for::<PartialObjectMeta>(Source::of(SETS));
        described
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    sandbox.create(&SETS, set("live", 0)).unwrap();
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(log.take(), ["slow", "live", "x", "y", "z"]);
}

#[tokio::test(start_paused = true)]
async fn a_loop_has_retry_limits_of_its_own() {
    let sandbox = sandbox();
    sandbox.create(&SETS, set("fails", 0)).unwrap();
    let limits = RetryLimits { base: seconds(2), max: seconds(3), ..RetryLimits::default() };
    let (_manager, log) = start(&sandbox, move |described| {
        let mut described = described.retry_limits(limits);
        described.primary_for::<PartialObjectMeta>(Source::of(SETS));
        described
    });
    tokio::time::sleep(seconds(9)).await;
    let times: Vec<_> = log.0.lock().iter().map(|(_, at)| *at).collect();
    let pauses: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(pauses, [2, 3, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_loop_reads_only_what_its_list_options_select() {
    let sandbox = sandbox();
    sandbox.create_namespace("elsewhere").unwrap();
    let (_manager, log) = start(&sandbox, |mut described| {
        let source = Source::of(SETS).list_options(ListOptions::namespace("elsewhere"));
        described.primary_for::<PartialObjectMeta>(source);
        described
    });
    settle().await;
    sandbox.create(&SETS, set("here", 0)).unwrap();
    let mut there = set("there", 0);
    there["metadata"]["namespace"] = json!("elsewhere");
    sandbox.create(&SETS, there).unwrap();
    settle().await;
    assert_eq!(log.take(), ["there"]);
}

#[tokio::test(start_paused = true)]
async fn a_loop_reads_several_namespaces_and_no_others() {
    let sandbox = sandbox();
    let namespaces = ["one", "other", "third"];
    for namespace in namespaces {
        sandbox.create_namespace(namespace).unwrap();
    }
    let (_manager, log) = start(&sandbox, |mut described| {
        let read = ["one", "other"];
        described.in_namespaces(read, |described, namespace| {
            described.primary_for::<PartialObjectMeta>(Source::of(SETS).list_options(namespace))
        });
        described.in_namespaces(read, |described, namespace| {
            described.owns_for::<Part>(Source::of(PARTS).list_options(namespace))
        });
        described
    });
    settle().await;
    let there = |mut object: Value, namespace: &str| {
        object["metadata"]["namespace"] = json!(namespace);
        object
    };
    for namespace in namespaces {
        sandbox.create(&SETS, there(set(&format!("of-{namespace}"), 0), namespace)).unwrap();
    }
    settle().await;
    assert_eq!(log.take_sorted(), ["of-one", "of-other"]);
    for namespace in namespaces {
        let name = format!("of-{namespace}");
        let owner = sandbox.get(&SETS, &ObjectKey::namespaced(namespace, &*name)).unwrap();
        let uid = owner["metadata"]["uid"].as_str().unwrap();
        sandbox.create(&PARTS, there(owned("p", "Set", &name, uid), namespace)).unwrap();
    }
    settle().await;
    assert_eq!(log.take_sorted(), ["of-one", "of-other"]);
}

#[tokio::test(start_paused = true)]
async fn metrics_name_the_loop() {
    let sandbox = sandbox();
    sandbox.create(&SETS, set("a", 0)).unwrap();
    let (manager, log) = start(&sandbox, |mut described| {
        described.primary_for::<PartialObjectMeta>(Source::of(SETS));
        described
    });
    settle().await;
    assert_eq!(log.take(), ["a"]);
    for line in [
        "workqueue_adds_total{name=\"a-loop\"} 1",
        "controller_reconciles_total{controller=\"a-controller\",name=\"a-loop\",result=\"success\"} 1",
        // The first list, which comes before the loop runs, and the start of the loop.
        "informer_subscriber_seconds_count{resource=\"sets.example.com\",subscriber=\"a-controller/a-loop\"} 2",
    ] {
        assert!(manager.has_metric(line), "{line} is not in\n{}", manager.metrics.encode());
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_owns_without_a_primary_resource_does_not_start() {
    let sandbox = sandbox();
    let (manager, log) = start(&sandbox, |mut described| {
        described.owns_for::<Part>(Source::of(PARTS));
        described
    });
    sandbox.create(&PARTS, part("p", "a")).unwrap();
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(log.take(), [""; 0]);
    let failures = "controller_loop_failures_total{controller=\"a-controller\",name=\"a-loop\"} 2";
    assert!(manager.has_metric(failures), "{}", manager.metrics.encode());
}
