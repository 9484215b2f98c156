//! The time of the plans, for 50 pods and for 5,000.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use kcm_controllers_apps::{deployment, replicaset};
use kcm_framework::api::View as _;
use kcm_framework::api::views::{Deployment, Pod, PodPhase, ReplicaSet};
use serde_json::{Value, json};

const DEPLOYMENT: &str = include_str!("../../../api/fixtures/deployment.json");
const REPLICA_SET: &str = include_str!("../../../api/fixtures/replica_set.json");
const POD: &str = include_str!("../../../api/fixtures/pod.json");

const SIZES: [i32; 2] = [50, 5000];

/// How many old replica sets a deployment keeps by default.
const HISTORY: i32 = 10;

const REVISION: &str = "deployment.kubernetes.io/revision";

fn now() -> Timestamp {
    "2026-03-02T00:00:00Z".parse().expect("must be a time")
}

fn object(json: &str) -> Value {
    serde_json::from_str(json).expect("fixture must be JSON")
}

/// The deployment of the fixture with so many replicas, all of them reported.
fn deployment_of(size: i32, strategy: &Value) -> Arc<Deployment> {
    let mut object = object(DEPLOYMENT);
    object["metadata"]["annotations"][REVISION] = json!((HISTORY + 1).to_string());
    object["spec"]["replicas"] = json!(size);
    object["spec"]["strategy"] = strategy.clone();
    for count in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
        object["status"][count] = json!(size);
    }
    Arc::new(Deployment::decode(&object.to_string()).expect("fixture must decode"))
}

/// A replica set of that deployment; the one of the highest revision has its template.
fn set_of(size: i32, revision: i32, replicas: i32) -> Arc<ReplicaSet> {
    let mut object = object(REPLICA_SET);
    let annotations = &mut object["metadata"]["annotations"];
    annotations[REVISION] = json!(revision.to_string());
    annotations["deployment.kubernetes.io/desired-replicas"] = json!(size.to_string());
    // A surge of 25 %, rounded up.
    annotations["deployment.kubernetes.io/max-replicas"] = json!((size + (size + 3) / 4).to_string());
    object["spec"]["replicas"] = json!(replicas);
    for count in ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
        object["status"][count] = json!(replicas);
    }
    let mut text = object.to_string();
    if revision <= HISTORY {
        let hash = format!("{revision:010}");
        text = text
            .replace("7d9c5b8f6d", &hash)
            .replace("checkout:1.42.0", &format!("checkout:1.{revision}.0"))
            .replace("0d1b6c1e-0f5b", &format!("{revision:08}-0f5b"));
    }
    Arc::new(ReplicaSet::decode(&text).expect("fixture must decode"))
}

/// All replica sets of a deployment, of which the new one and the last but one have replicas.
fn sets_of(size: i32, new: i32, last: i32) -> Vec<Arc<ReplicaSet>> {
    let old = (1..HISTORY).map(|revision| set_of(size, revision, 0));
    old.chain([set_of(size, HISTORY, last), set_of(size, HISTORY + 1, new)]).collect()
}

fn plan_of_a_deployment(criterion: &mut Criterion) {
    let rolling = &object(DEPLOYMENT)["spec"]["strategy"];
    let mut group = criterion.benchmark_group("plan of a deployment");
    for size in SIZES {
        let mut measure = |name: &str, input: &deployment::bench::PlanInput, steps: usize| {
            assert_eq!(input.plan(), steps, "{name} of {size}");
            group.bench_function(BenchmarkId::new(name, size), |bencher| bencher.iter(|| black_box(input).plan()));
        };
        let input = |strategy: &Value, sets: Vec<Arc<ReplicaSet>>, pods| {
            deployment::bench::PlanInput::new(deployment_of(size, strategy), sets, pods, now())
        };
        measure("at rest", &input(rolling, sets_of(size, size, 0), Vec::new()), 0);
        measure("in mid-rollout", &input(rolling, sets_of(size, size / 2, size / 2), Vec::new()), 1);
        // Finished pods do not end the search for one that may run, so each of them is read.
        let sets = sets_of(size, 0, 0);
        let finished = (0..size).map(|_| (sets[0].metadata.uid.clone(), PodPhase::Succeeded)).collect();
        measure("recreated", &input(&json!({ "type": "Recreate" }), sets, finished), 1);
    }
    group.finish();
}

/// A pod of the replica set of the fixture, ready, on one of a hundred nodes.
fn pod(number: i32) -> Arc<Pod> {
    let text = POD
        .replace("7d9c5b8f6d-x2k9w", &format!("7d9c5b8f6d-{number:05}"))
        .replace("6f1e2d3c-4b5a", &format!("{number:08}-4b5a"))
        .replace("worker-017", &format!("worker-{:03}", number % 100));
    Arc::new(Pod::decode(&text).expect("fixture must decode"))
}

fn plan_of_a_replica_set(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan of a replica set");
    for size in SIZES {
        let pods: Vec<_> = (0..size).map(pod).collect();
        for (name, wanted, off) in [("with enough pods", size, 0), ("with one pod too many", size - 1, 1)] {
            let owner = set_of(size, HISTORY + 1, wanted);
            let input = replicaset::bench::PlanInput::new(owner, pods.clone(), now());
            assert_eq!((input.plan(), input.reconcile()), (off, (off, None)), "{name} of {size}");
            group.bench_function(BenchmarkId::new(name, size), |bencher| bencher.iter(|| black_box(&input).plan()));
            let id = BenchmarkId::new(format!("{name}, claims and status included"), size);
            group.bench_function(id, |bencher| bencher.iter(|| black_box(&input).reconcile()));
        }
    }
    group.finish();
}

criterion_group!(benches, plan_of_a_deployment, plan_of_a_replica_set);
criterion_main!(benches);
