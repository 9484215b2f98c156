//! Cost of one event of a watch: splitting and decoding it, and applying it to the cache and its indexes.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kcm_api::views::Pod;
use kcm_api::{Interner, Uid, View};
use kcm_informers::frames::Lines;
use kcm_informers::{Event, Index, Store};

// The allocator of the product: the places of objects in memory decide the hits of the processor's caches.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A pod as a replica set makes it, with a status and managed fields, of about 4 KB.
fn pod(number: u32, version: u32) -> String {
    let managed = r#"{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2030-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:type":{},"f:status":{},"f:lastTransitionTime":{}}}}}},"#
        .repeat(10);
    let managed = managed.trim_end_matches(',');
    let container = r#"{"name":"app","image":"registry.example.com/app:v1","resources":{"requests":{"cpu":"100m"}},"terminationMessagePath":"/dev/termination-log"}"#;
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{number:06}","generateName":"web-","namespace":"default","uid":"00000000-0000-4000-8000-{number:012}","resourceVersion":"{version}","creationTimestamp":"2030-01-01T00:00:00Z","labels":{{"app":"web","pod-template-hash":"5d9c7b8f6"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-{}","uid":"11111111-0000-4000-8000-{:012}","controller":true,"blockOwnerDeletion":true}}],"managedFields":[{managed}]}},"spec":{{"containers":[{container}],"nodeName":"node-{}","schedulerName":"default-scheduler"}},"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"True","lastTransitionTime":"2030-01-01T00:00:00Z"}}],"podIP":"10.0.0.1"}}}}"#,
        number / 50,
        number / 50,
        number % 50,
    )
}

fn decoded(number: u32, version: u32) -> Arc<Pod> {
    Arc::new(Pod::decode(&pod(number, version)).expect("the pod must be valid"))
}

fn stream(criterion: &mut Criterion) {
    let line = format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", pod(1, 2));
    let interner = Arc::new(Interner::default());
    let mut group = criterion.benchmark_group("event");
    group.throughput(Throughput::Bytes(line.len() as u64));
    let each = |line: &[u8]| -> ControlFlow<()> {
        let event = Event::split(line).expect("the line must be an event");
        black_box(event.object.decode::<Pod>().expect("the pod must be valid"));
        ControlFlow::Continue(())
    };
    let mut lines = Lines::default();
    group.bench_function("cut and decode", |bencher| {
        bencher.iter(|| interner.scope(|| lines.feed(black_box(line.as_bytes()), each).is_ok()));
    });
    let (head, tail) = line.as_bytes().split_at(line.len() / 2);
    group.bench_function("cut from two chunks and decode", |bencher| {
        bencher.iter(|| interner.scope(|| lines.feed(head, each).is_ok() && lines.feed(tail, each).is_ok()));
    });
    group.bench_function("cut and split", |bencher| {
        bencher.iter(|| {
            lines
                .feed(line.as_bytes(), |line| {
                    black_box(Event::split(line).is_ok());
                    ControlFlow::<()>::Continue(())
                })
                .is_ok()
        });
    });
    group.finish();
}

fn owner(pod: &Pod) -> Option<Uid> {
    pod.metadata.controller().map(|owner| owner.uid.clone())
}

/// A store of so many pods, 50 to an owner, and its index by owner.
fn filled(interner: &Arc<Interner>, pods: u32) -> (Arc<Store<Pod>>, Index<Pod, Uid>) {
    let store = Arc::new(Store::new());
    let by_owner = store.index("owner", owner);
    interner.scope(|| store.replace((0..pods).map(|number| decoded(number, 1)).collect()));
    (store, by_owner)
}

fn store(criterion: &mut Criterion) {
    const PODS: u32 = 20_000;
    let interner = Arc::new(Interner::default());
    let mut group = criterion.benchmark_group("store of 20000 pods with two indexes");
    let (full, _) = filled(&interner, PODS);
    assert_eq!(full.in_namespace("default").len(), PODS as usize, "which makes the index");
    let (mut version, mut number) = (1, 0);
    group.bench_function("update", |bencher| {
        bencher.iter_batched(
            || {
                (version, number) = (version + 1, (number + 7919) % PODS);
                interner.scope(|| decoded(number, version))
            },
            |pod| interner.scope(|| full.put(pod)),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("remove and add", |bencher| {
        bencher.iter_batched(
            || {
                number = (number + 7919) % PODS;
                full.list()[number as usize].metadata.key.clone()
            },
            |key| {
                let removed = full.remove(&key).expect("the pod must be there");
                interner.scope(|| full.put(removed))
            },
            BatchSize::SmallInput,
        );
    });
    let all = full.list();
    group.bench_function("the same list again", |bencher| {
        bencher.iter_batched(|| all.clone(), |all| full.replace(all), BatchSize::LargeInput);
    });
    group.finish();
}

/// Cost of an event beside more and more pods: at most 1.3 times from 1,000 to 50,000.
///
/// `tests/growth.rs` counts the work alone; this measures the caches of the processor too.
fn growth(criterion: &mut Criterion) {
    // A read of a connection brings a few lines, and what it brings is near the processor: with a batch of megabytes
    // the benchmark would measure its own lines.
    const ONE_READ: BatchSize = BatchSize::NumIterations(8);
    let mut group = criterion.benchmark_group("growth");
    for pods in [1_000, 10_000, 50_000] {
        let interner = Arc::new(Interner::default());
        let (full, by_owner) = filled(&interner, pods);
        let (mut version, mut number) = (1, 0);
        let mut next = || {
            (version, number) = (version + 1, (number + 7919) % pods);
            (number, version)
        };
        let apply_and_select = |pod: Arc<Pod>| {
            let owner = owner(&pod).expect("the pod must have an owner");
            (full.put(pod).expect("the index must take the pod"), by_owner.get(&owner))
        };

        let mut lines = Lines::default();
        group.bench_function(BenchmarkId::new("cut, decode, update and select by owner", pods), |bencher| {
            bencher.iter_batched_ref(
                || {
                    let (number, version) = next();
                    format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", pod(number, version))
                },
                |line| {
                    let each = |line: &[u8]| -> ControlFlow<()> {
                        let event = Event::split(line).expect("the line must be an event");
                        let pod = event.object.decode::<Pod>().expect("the pod must be valid");
                        black_box(apply_and_select(Arc::new(pod)));
                        ControlFlow::Continue(())
                    };
                    interner.scope(|| lines.feed(line.as_bytes(), each).is_ok())
                },
                ONE_READ,
            );
        });
        group.bench_function(BenchmarkId::new("update and select by owner", pods), |bencher| {
            let fresh = || {
                let (number, version) = next();
                interner.scope(|| decoded(number, version))
            };
            bencher.iter_batched(fresh, apply_and_select, ONE_READ);
        });

        let all = full.list();
        let mut remove_and_add = |name: &str| {
            group.bench_function(BenchmarkId::new(name, pods), |bencher| {
                bencher.iter_batched(
                    || all[next().0 as usize].metadata.key.clone(),
                    |key| full.put(full.remove(&key).expect("the pod must be there")),
                    ONE_READ,
                );
            });
        };
        remove_and_add("remove and add");
        assert_eq!(full.in_namespace("default").len(), pods as usize, "which makes the index");
        remove_and_add("remove and add with all pods in one namespace");
    }
    group.finish();
}

criterion_group!(benches, stream, store, growth);
criterion_main!(benches);
