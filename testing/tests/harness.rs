//! The guarantees of the test harness, one test each.

mod greeter;

use std::sync::Arc;
use std::time::Duration;

use greeter::GREETER;
use kcm_framework::Stop;
use kcm_framework::clock::SimulatedClock;
use kcm_testing::sandbox::{EVENTS, Fault, NAMESPACES, ObjectKey, Sandbox, SandboxOptions, Status};
use kcm_testing::{START, TestCluster, TestEnvironment, discover, kill_after_each_write, passing_faults};
use serde_json::json;
use tokio::time::Instant;

fn is_greeted(sandbox: &Sandbox, namespace: &str) -> bool {
    let namespace = sandbox.get(&NAMESPACES, &ObjectKey::cluster_scoped(namespace));
    namespace.is_some_and(|namespace| namespace["metadata"]["labels"]["greeting"] == "hello")
}

async fn all_are_greeted(cluster: &TestCluster) {
    cluster
        .eventually("all namespaces are greeted", |sandbox| {
            let namespaces = sandbox.list(&NAMESPACES, None);
            namespaces.iter().all(|namespace| namespace["metadata"]["labels"]["greeting"] == "hello")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_the_environment_are_there_before_the_manager_starts() {
    let cluster = TestEnvironment::new([GREETER]).namespace("shop").start().await;
    all_are_greeted(&cluster).await;
    assert!(is_greeted(cluster.sandbox(), "shop"));
    assert_eq!(cluster.requests_of("greeter").len(), 5);
}

#[tokio::test(start_paused = true)]
async fn hours_pass_immediately() {
    let cluster = TestEnvironment::new([GREETER]).start().await;
    let started = cluster.sandbox().now();
    cluster.advance(Duration::from_hours(2)).await;
    assert!(cluster.sandbox().now().duration_since(started).as_hours() >= 2);
    cluster.stop().await.expect("it stops cleanly");
}

#[tokio::test(start_paused = true)]
async fn a_test_starts_at_a_time_of_its_own_and_knows_how_long_it_runs() {
    assert_eq!(START.to_string(), "2026-01-02T12:00:00Z");
    let cluster = TestEnvironment::new([GREETER]).start().await;
    assert_eq!(cluster.sandbox().now(), START);
    cluster.advance(Duration::from_secs(90)).await;
    assert_eq!(cluster.elapsed(), Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn writes_are_the_requests_that_are_not_reads() {
    let cluster = TestEnvironment::new([GREETER]).start().await;
    all_are_greeted(&cluster).await;
    assert_eq!(cluster.writes_of("greeter").len(), 4, "one for each namespace of a new cluster");
    let bodies = cluster.bodies_of("greeter", "PATCH");
    assert_eq!(bodies.len(), 4);
    assert!(bodies.iter().all(|body| body["metadata"]["labels"]["greeting"] == "hello"), "{bodies:?}");
    assert!(!cluster.requests_of("shared-informers").is_empty() && cluster.writes_of("shared-informers").is_empty());
}

#[tokio::test(start_paused = true)]
async fn events_are_those_of_one_component_in_sorted_lines() {
    let cluster = TestEnvironment::new([GREETER]).start().await;
    let about = json!({ "kind": "Pod", "namespace": "default", "name": "web" });
    for (name, component, reason) in [("a", "kubelet", "Started"), ("b", "kubelet", "Created"), ("c", "other", "Seen")]
    {
        let event = json!({
            "metadata": { "namespace": "default", "name": name }, "involvedObject": about, "type": "Normal",
            "reason": reason, "message": "by hand", "source": { "component": component },
        });
        cluster.sandbox().create(&EVENTS, event).expect("the event is valid");
    }
    assert_eq!(cluster.events_of("kubelet"), ["Normal Created by hand", "Normal Started by hand"]);
}

#[tokio::test(start_paused = true)]
async fn a_controller_ends_under_passing_faults_as_without_them() {
    for fault in passing_faults() {
        let environment = TestEnvironment::new([GREETER]).prepare(|sandbox| {
            sandbox.faults().inject(fault);
        });
        let cluster = environment.start().await;
        all_are_greeted(&cluster).await;
        let rejected = cluster.writes_of("greeter").iter().any(|request| request.status != Some(200));
        assert!(rejected, "the fault must have met a write");
    }
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the manager logged errors that the test did not announce:\nReconcile panicked")]
async fn a_caught_panic_fails_the_test() {
    let cluster = TestEnvironment::new([GREETER]).namespace("evil").start().await;
    cluster.advance(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_allowed_panic_does_not() {
    let environment = TestEnvironment::new([GREETER]).namespace("evil").allow_error("Reconcile panicked");
    let cluster = environment.start().await;
    cluster.eventually("the others are greeted", |sandbox| is_greeted(sandbox, "default")).await;
    cluster.consistently("evil is not", Duration::from_mins(1), |sandbox| !is_greeted(sandbox, "evil")).await;
}

#[tokio::test(start_paused = true)]
async fn faults_are_there_from_the_start() {
    let environment = TestEnvironment::new([GREETER]).prepare(|sandbox| {
        let conflict = Status::conflict(&NAMESPACES, "default", "the object has been modified");
        sandbox.faults().inject(Fault::on_writes().resource(NAMESPACES).name("default").times(3).fail(conflict));
    });
    let cluster = environment.start().await;
    all_are_greeted(&cluster).await;
    let requests = cluster.requests_of("greeter");
    assert_eq!(requests.iter().filter(|request| request.path.ends_with("/default")).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_killed_manager_is_replaced_by_one_that_knows_only_what_the_api_server_knows() {
    let cluster = TestEnvironment::new([GREETER]).start().await;
    all_are_greeted(&cluster).await;
    cluster.kill();
    cluster.eventually("another manager runs", |_| cluster.managers_started() == 2).await;
    cluster.sandbox().create_namespace("shop").expect("the name is free");
    all_are_greeted(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_scenario_runs_once_per_write_with_the_manager_killed_after_it() {
    let runs = std::cell::Cell::new(0);
    let writes = kill_after_each_write(
        || TestEnvironment::new([GREETER]),
        async |cluster| {
            runs.set(runs.get() + 1);
            all_are_greeted(cluster).await;
            let requests = cluster.requests_of("greeter");
            // The write whose response was withheld took effect: its successor does not repeat it.
            assert_eq!(requests.iter().filter(|request| request.method == "PATCH").count(), 4);
        },
    )
    .await;
    assert_eq!((writes, runs.get()), (4, 5));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the manager writes nothing in this scenario")]
async fn a_scenario_without_writes_is_refused() {
    let scenario = async |cluster: &TestCluster| cluster.settle().await;
    kill_after_each_write(|| TestEnvironment::new([GREETER]).select(&["-greeter"]), scenario).await;
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_run() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let started = Instant::now();
        let cluster = TestEnvironment::new([GREETER]).namespace("a").namespace("b").start().await;
        all_are_greeted(&cluster).await;
        let requests = cluster.sandbox().requests();
        let lines: Vec<_> = requests.iter().map(|one| (one.at, one.method.clone(), one.path.clone())).collect();
        runs.push((lines, started.elapsed()));
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn a_prepared_manager_runs_any_number_of_times_with_metrics_of_its_own() {
    let environment = TestEnvironment::new([GREETER]);
    let discovery = discover(&Sandbox::new(SandboxOptions::default())).await.unwrap();
    let prepared = environment.prepare_manager().discovery(discovery);
    let mut reconciles = None;
    for seed in 1..=2 {
        let sandbox = Sandbox::new(SandboxOptions::default());
        let manager = prepared.manager(SimulatedClock::starting_at(sandbox.now()), seed);
        let manager = manager.build(sandbox.client(), "sandbox:443");
        let (metrics, stop) = (Arc::clone(manager.metrics()), Stop::default());
        let running = manager.run(stop.clone());
        let greeted = async {
            while !["default", "kube-system"].iter().all(|namespace| is_greeted(&sandbox, namespace)) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stop.drain.cancel();
        };
        let (ended, ()) = tokio::join!(running, greeted);
        ended.unwrap();
        let text = metrics.encode();
        let counted = text.lines().find(|line| line.starts_with("controller_reconciles_total{")).unwrap().to_owned();
        assert_eq!(*reconciles.get_or_insert_with(|| counted.clone()), counted);
        assert!(!sandbox.requests().iter().any(|request| request.path == "/apis"));
    }
}
