//! The longest time for which an informer of 150,000 pods with twelve event handlers holds its thread.
//!
//! `cargo bench -p kcm-informers --bench longest_slice` prints a row for each phase. All tasks run on one thread, as in the
//! product: beside the informer a probe measures the time between two of its own turns.

#![expect(clippy::print_stdout, reason = "the figures are the output")]

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::ready;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kcm_api::views::Pod;
use kcm_api::{ObjectKey, Uid};
use kcm_informers::{Change, Factory, FactoryOptions, HandlerOptions, Informer, ListOptions, Origin};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

// The allocator of the product.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const PODS: usize = 150_000;
const HANDLERS: usize = 12;
/// Number of pods of a chunk of the response, of about 16 KB.
const PODS_OF_A_CHUNK: usize = 8;
/// The resync period, in which no list may be under way.
const RESYNC: Duration = Duration::from_mins(2);

fn event(number: usize, version: usize) -> String {
    let owner = number / 50;
    let managed = r#"{"manager":"kubelet","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{}}}}"#;
    format!(
        r#"{{"type":"ADDED","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{number:06}","namespace":"team-{:03}","uid":"00000000-0000-4000-8000-{number:012}","resourceVersion":"{version}","creationTimestamp":"2030-01-01T00:00:00Z","labels":{{"app":"web","pod-template-hash":"5d9c7b8f6"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-{owner}","uid":"11111111-0000-4000-8000-{owner:012}","controller":true}}],"managedFields":[{managed}]}},"spec":{{"containers":[{{"name":"app","image":"registry.example.com/app:v1"}}],"nodeName":"node-{}"}},"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"True","lastTransitionTime":"2030-01-01T00:00:00Z"}}],"podIP":"10.0.0.1"}}}}}}
"#,
        number / 1_000,
        number % 5_000,
    )
}

/// The chunks of a streaming list: all pods, and the bookmark that ends the list. The first list is followed by an error
/// that demands another.
fn chunks(list: usize) -> impl Iterator<Item = Bytes> + Send {
    let version = list * 10_000_000;
    let chunk = move |first: usize| {
        let pods = first..(first + PODS_OF_A_CHUNK).min(PODS);
        Bytes::from(pods.map(|number| event(number, version + number)).collect::<String>())
    };
    let end = serde_json::json!({ "type": "BOOKMARK", "object": { "metadata": {
        "resourceVersion": (version + PODS).to_string(),
        "annotations": { "k8s.io/initial-events-end": "true" },
    }}});
    (0..PODS).step_by(PODS_OF_A_CHUNK).map(chunk).chain([Bytes::from(format!("{end}\n"))])
}

/// A client of a server that sends a list at each request, and then holds the watch until `expire` is notified.
fn client(expire: &Arc<tokio::sync::Notify>) -> Client {
    let lists = Arc::new(AtomicUsize::new(1));
    let expire = Arc::clone(expire);
    let service = tower::service_fn(move |_: Request<Body>| {
        let expire = Arc::clone(&expire);
        let list = lists.fetch_add(1, Relaxed);
        let expired = stream::once(async move {
            expire.notified().await;
            let status = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}"#;
            Bytes::from(format!("{status}\n"))
        });
        let body = futures::StreamExt::chain(stream::iter(chunks(list)), expired);
        let frames = futures::StreamExt::map(body, |chunk| Ok::<_, Infallible>(Frame::data(chunk)));
        ready(Ok::<_, Infallible>(Response::new(StreamBody::new(frames))))
    });
    Client::new(service, "default")
}

fn owner(pod: &Pod) -> Option<Uid> {
    pod.metadata.controller().map(|owner| owner.uid.clone())
}

/// A handler as a loop has it: it finds the keys of a change and adds them to a queue.
fn handler() -> impl FnMut(&Change<Pod>, Origin) + Send + 'static {
    let queue: Mutex<HashSet<ObjectKey>> = Mutex::default();
    move |change: &Change<Pod>, _| {
        let pod = change.object();
        let Some(owner) = pod.metadata.controller() else { return };
        let namespace = pod.metadata.key.namespace().unwrap_or_default().to_owned();
        queue.lock().insert(ObjectKey::namespaced(namespace, &*owner.name));
    }
}

/// Measures the longest time between two turns of this task until `is_over`.
async fn longest_gap(is_over: impl Fn() -> bool) -> Duration {
    let mut longest = Duration::ZERO;
    let mut last = Instant::now();
    while !is_over() {
        tokio::task::yield_now().await;
        let now = Instant::now();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}

/// Prints the longest gap of a phase, which ends when the handlers have been called `calls` times.
async fn phase(name: &str, called: &Arc<AtomicUsize>, calls: usize, is_over: impl Fn() -> bool) {
    let (began, before) = (Instant::now(), called.load(Relaxed));
    let longest = longest_gap(|| called.load(Relaxed) - before >= calls && is_over()).await;
    println!("{name:<44} longest slice {longest:>10.3?}  in all {:>8.1?}", began.elapsed());
}

fn add_handler(pods: &Informer<Pod>, name: String, called: &Arc<AtomicUsize>) -> kcm_informers::HandlerRegistration {
    let (mut enqueue, called) = (handler(), Arc::clone(called));
    pods.add_event_handler(HandlerOptions::named(name).resync_period(RESYNC), move |change, origin| {
        enqueue(change, origin);
        called.fetch_add(1, Relaxed);
    })
}

async fn measure() {
    let expire = Arc::new(tokio::sync::Notify::new());
    let factory = Factory::new(FactoryOptions::new(client(&expire), 7));
    let pods = factory.informer::<Pod>(ListOptions::default());
    let indexes = [pods.index("owner", owner), pods.index("second", owner), pods.index("third", owner)];
    let by_node = pods.index("node", |pod: &Pod| pod.node_name.clone());
    let by_label = pods.index("label", |pod: &Pod| {
        pod.metadata.labels.iter().map(|(name, value)| format!("{name}={value}").len()).collect::<Vec<_>>()
    });
    let called = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let handlers: Vec<_> =
        (0..HANDLERS).map(|number| add_handler(&pods, format!("handler-{number}"), &called)).collect();
    factory.start();
    println!("{PODS} pods, {HANDLERS} handlers, 5 indexes");
    phase("first list", &called, PODS * HANDLERS, || pods.has_synced()).await;
    for handler in &handlers {
        pods.notify_again(*handler);
    }
    phase("all handlers are notified again", &called, PODS * HANDLERS, || true).await;
    let since = Instant::now();
    add_handler(&pods, "late".to_owned(), &called);
    println!("{:<44} longest slice {:>10.3?}", "a late handler is added", since.elapsed());
    phase("it is shown the cache", &called, PODS - 1_000, || true).await;
    let version = pods.last_sync_resource_version();
    expire.notify_one();
    phase("another list, in which all pods differ", &called, PODS * (HANDLERS + 1), || {
        pods.last_sync_resource_version() != version
    })
    .await;
    sleep((RESYNC + Duration::from_millis(1)).saturating_sub(began.elapsed())).await;
    phase("resync of all handlers", &called, PODS * HANDLERS, || true).await;
    let since = Instant::now();
    black_box(pods.list());
    println!("{:<44} longest slice {:>10.3?}", "a reader lists all pods", since.elapsed());
    let since = Instant::now();
    black_box(pods.in_namespace("team-007"));
    println!("{:<44} longest slice {:>10.3?}", "a reader lists a namespace", since.elapsed());
    let since = Instant::now();
    let late = pods.index("late", owner);
    println!("{:<44} longest slice {:>10.3?}", "a late index is made", since.elapsed());
    drop((indexes, by_node, by_label, late));
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime must start").block_on(measure());
}
