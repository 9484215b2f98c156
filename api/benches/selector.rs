//! Time to match the labels of a pod with a selector, which adoption does for each pod of an owner.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use kcm_api::views::Pod;
use kcm_api::{LabelSelector, Selector, View as _};

const POD: &str = include_str!("../fixtures/pod.json");

/// As a replica set has it: the labels of its template and their hash.
const FROM_MAP: &str = r#"{"matchLabels":{"app.kubernetes.io/instance":"checkout","app.kubernetes.io/name":"checkout","pod-template-hash":"7d9c5b8f6d"}}"#;

/// Of the same length in requirements; the last, sorted by key, is another hash.
const FROM_MAP_OF_ANOTHER: &str = r#"{"matchLabels":{"app.kubernetes.io/instance":"checkout","app.kubernetes.io/name":"checkout","pod-template-hash":"5f6d7c8b9d"}}"#;

/// One requirement of each operator.
const FROM_EXPRESSIONS: &str = r#"{"matchExpressions":[{"key":"app.kubernetes.io/name","operator":"In","values":["cart","checkout","payment"]},{"key":"tier","operator":"NotIn","values":["edge","frontend"]},{"key":"pod-template-hash","operator":"Exists"},{"key":"canary","operator":"DoesNotExist"}]}"#;

fn selector(json: &str) -> Selector {
    let raw: LabelSelector = serde_json::from_str(json).expect("the case must decode");
    Selector::try_from(&raw).expect("the case must be a selector that the API admits")
}

fn matches(criterion: &mut Criterion) {
    let pod = Pod::decode(POD).expect("fixture must decode");
    let labels = &pod.metadata.labels;
    let mut group = criterion.benchmark_group("selector");
    for (name, json, expected) in [
        ("from map", FROM_MAP, true),
        ("from map, of a sibling", FROM_MAP_OF_ANOTHER, false),
        ("from expressions", FROM_EXPRESSIONS, true),
    ] {
        let selector = selector(json);
        assert_eq!(selector.matches(labels), expected, "{name}");
        group.bench_function(name, |bencher| bencher.iter(|| black_box(&selector).matches(black_box(labels))));
    }
    group.finish();
}

criterion_group!(benches, matches);
criterion_main!(benches);
