//! Time to decode the objects of watches: the limit is 6 µs for a pod of 4 KB.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use k8s_openapi::api::core::v1 as corev1;
use kcm_api::views::{Deployment, Pod, ReplicaSet};
use kcm_api::{DecodeContext, Document, Needs, PartialObjectMeta, View};

const POD: &str = include_str!("../fixtures/pod.json");
const REPLICA_SET: &str = include_str!("../fixtures/replica_set.json");
const DEPLOYMENT: &str = include_str!("../fixtures/deployment.json");

fn decode_view<V: View>(criterion: &mut Criterion, name: &str, json: &str) {
    let context = Arc::new(DecodeContext::new::<V>(Arc::default(), &Needs::default()));
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Bytes(json.len() as u64));
    group.bench_function(name, |bencher| {
        // As in a cache: the strings of an earlier state are still held when the next one is decoded.
        let _held = context.scope(|| V::decode(json).expect("fixture must decode"));
        bencher.iter(|| context.scope(|| V::decode(black_box(json)).expect("fixture must decode")));
    });
}

fn decode(criterion: &mut Criterion) {
    decode_view::<Pod>(criterion, "pod", POD);
    decode_view::<PartialObjectMeta>(criterion, "pod metadata", POD);
    decode_view::<ReplicaSet>(criterion, "replica set with its document", REPLICA_SET);
    decode_view::<Deployment>(criterion, "deployment with its document", DEPLOYMENT);
    criterion.bench_function("decode/pod as k8s-openapi", |bencher| {
        bencher.iter(|| serde_json::from_str::<corev1::Pod>(black_box(POD)).expect("fixture must decode"));
    });
    criterion.bench_function("edit/status field of a replica set", |bencher| {
        let document = Document::parse(REPLICA_SET).expect("fixture must decode");
        bencher.iter(|| {
            let mut document = document.clone();
            document.set(black_box(&["status", "replicas"]), &7).expect("status must be an object");
            document
        });
    });
}

criterion_group!(benches, decode);
criterion_main!(benches);
