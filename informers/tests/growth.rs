//! An event costs the same however many objects the cache holds.
//!
//! Work is counted instead of timed, so that the outcome depends on no machine: allocations, bytes, and how often
//! objects are looked at. Time itself is measured by the group `growth` of `benches/events.rs`.

use std::alloc::System;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use futures::channel::mpsc;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kcm_api::{DecodeError, KnownView, Meta, PartialObjectMeta, Resource, Uid, View};
use kcm_informers::{Factory, FactoryOptions, HandlerOptions, Informer, ListOptions};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SIZES: [usize; 3] = [1_000, 10_000, 50_000];
const EVENTS: usize = 1_000;
const PODS_OF_AN_OWNER: usize = 50;

/// Number of reads of the metadata of any pod. An informer reads objects only through their metadata.
static LOOKS: AtomicUsize = AtomicUsize::new(0);

struct Pod(PartialObjectMeta);

impl View for Pod {
    const METADATA_ONLY: bool = true;

    fn decode(json: &str) -> Result<Self, DecodeError> {
        PartialObjectMeta::decode(json).map(Self)
    }

    fn meta(&self) -> &Meta {
        LOOKS.fetch_add(1, Relaxed);
        self.0.meta()
    }
}

impl KnownView for Pod {
    const RESOURCE: Resource = Resource::namespaced("", "v1", "pods", "Pod");
}

/// The event line of a pod; all are in one namespace, 50 to an owner.
fn event(kind: &str, number: usize, version: usize) -> String {
    let owner = number / PODS_OF_AN_OWNER;
    format!(
        "{}\n",
        serde_json::json!({ "type": kind, "object": { "metadata": {
            "namespace": "default",
            "name": format!("web-{owner:04}-{number:06}"),
            "uid": format!("00000000-0000-4000-8000-{number:012}"),
            "resourceVersion": version.to_string(),
            "labels": { "app": "web" },
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": format!("web-{owner:04}"),
                "uid": format!("11111111-0000-4000-8000-{owner:012}"),
                "controller": true,
            }],
        }}})
    )
}

fn owner(pod: &Pod) -> Option<Uid> {
    pod.meta().controller().map(|owner| owner.uid.clone())
}

type Chunks = mpsc::UnboundedSender<Result<Frame<Bytes>, io::Error>>;

/// A client that is asked for one streaming list, and the end from which that is sent.
fn streaming_list() -> (Client, Chunks) {
    let (chunks, body) = mpsc::unbounded();
    let body = Mutex::new(Some(body));
    let service = tower::service_fn(move |_: Request<Body>| {
        let answer = body.lock().take().map(|body| Response::new(StreamBody::new(body)));
        ready(answer.ok_or_else(|| io::Error::other("a watch that goes on is not asked for again")))
    });
    (Client::new(service, "default"), chunks)
}

fn send(chunks: &Chunks, lines: String) {
    chunks.unbounded_send(Ok(Frame::data(lines.into()))).expect("the informer must listen");
}

/// Names of the counters.
const COUNTED: [&str; 3] = ["allocations", "bytes allocated", "looks at objects"];

/// Cost of a thousand events, in the order of [`COUNTED`].
type Cost = [usize; 3];

/// Sends `lines`, of which the last has that version, and counts until the informer has seen them.
async fn cost_of(lines: String, version: usize, chunks: &Chunks, pods: &Informer<Pod>) -> Cost {
    let version = version.to_string().as_str().into();
    let region = Region::new(ALLOCATOR);
    let looked = LOOKS.load(Relaxed);
    send(chunks, lines);
    pods.wait_for_resource_version(&version).await;
    let change = region.change();
    [change.allocations + change.reallocations, change.bytes_allocated, LOOKS.load(Relaxed) - looked]
}

/// Returns the cost of updates, and of deletions with additions, beside that many pods.
///
/// The cache is indexed by owner and by namespace. A subscriber selects the pods of the owner at each change, as
/// controllers do.
async fn costs_beside(size: usize) -> [Cost; 2] {
    let (client, chunks) = streaming_list();
    let factory = Factory::new(FactoryOptions::new(client, 7));
    let pods = factory.informer::<Pod>(ListOptions::default());
    let by_owner = pods.index("owner", owner);
    assert!(pods.in_namespace("default").is_empty(), "which makes the index");
    let selected = Arc::new(AtomicUsize::new(0));
    let most_selected = Arc::clone(&selected);
    pods.add_event_handler(HandlerOptions::named("selection"), move |change, _| {
        let owner = owner(change.object()).expect("every pod has an owner");
        most_selected.fetch_max(by_owner.get(&owner).len(), Relaxed);
    });
    factory.start();

    let all: String = (0..size).map(|number| event("ADDED", number, number + 1)).collect();
    let end = serde_json::json!({ "type": "BOOKMARK", "object": { "metadata": {
        "resourceVersion": size.to_string(),
        "annotations": { "k8s.io/initial-events-end": "true" },
    }}});
    send(&chunks, format!("{all}{end}\n"));
    pods.wait_synced().await;
    assert_eq!(pods.len(), size);

    // A prime, so that neighbours in the stream are none in the cache.
    let some = |at: usize| at * 7919 % size;
    let lines = (0..EVENTS).map(|at| event("MODIFIED", some(at), size + at + 1)).collect();
    let updates = cost_of(lines, size + EVENTS, &chunks, &pods).await;
    let pair = |at: usize| {
        let version = size + EVENTS + 2 * at + 1;
        event("DELETED", some(at), version) + &event("ADDED", some(at), version + 1)
    };
    let lines = (0..EVENTS / 2).map(pair).collect();
    let replacements = cost_of(lines, size + 2 * EVENTS, &chunks, &pods).await;

    assert_eq!((pods.len(), selected.load(Relaxed)), (size, PODS_OF_AN_OWNER));
    factory.shut_down().await;
    [updates, replacements]
}

// One test, since allocator and looks are counted for the whole process.
#[tokio::test(start_paused = true)]
async fn an_event_costs_the_same_however_many_objects_there_are() {
    let mut costs = Vec::new();
    for size in SIZES {
        costs.push(costs_beside(size).await);
    }
    for (kind, events) in ["updates", "deletions and additions"].iter().enumerate() {
        for (what, counted) in COUNTED.iter().enumerate() {
            let counts: Vec<usize> = costs.iter().map(|beside| beside[kind][what]).collect();
            let (least, most) =
                counts.iter().fold((usize::MAX, 0), |(least, most), count| (least.min(*count), most.max(*count)));
            let is_flat = least >= EVENTS && most * 10 <= least * 13;
            assert!(is_flat, "{counted} of {EVENTS} {events} beside {SIZES:?} pods: {counts:?}");
        }
    }
}
