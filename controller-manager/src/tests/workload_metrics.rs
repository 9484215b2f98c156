//! The metrics of workloads, which exist only with jobs, stateful sets and pods to collect, have the names, types,
//! labels, buckets and stability of upstream's table.

use std::time::Duration;

use kcm_framework::Format;
use kcm_framework::api::views::{Job, StatefulSet};
use kcm_framework::api::{KnownView as _, ObjectKey};
use kcm_sandbox_apiserver::{Fault, PODS, Sandbox, Status, Verb};
use serde_json::{Value, json};

use super::running_with;
use super::upstream_metrics::{scraped, table};

const NAMESPACE: &str = "default";

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "test" } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "image" }] },
    })
}

fn create_workloads(sandbox: &Sandbox) {
    let job = |name: &str, spec: Value| {
        let mut job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": spec,
        });
        job["spec"]["template"] = template();
        sandbox.create(&Job::RESOURCE, job).expect("the job must be valid");
    };
    let rule = json!({ "action": "Count", "onExitCodes": { "operator": "In", "values": [1] } });
    job(
        "indexed",
        json!({
            "completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0, "podFailurePolicy": { "rules": [rule] },
        }),
    );
    job("of-another", json!({ "managedBy": "example.com/queue" }));
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "web", "namespace": NAMESPACE },
        "spec": { "replicas": 1, "podManagementPolicy": "Parallel", "serviceName": "web", "selector": { "matchLabels": { "app": "test" } } },
    });
    set["spec"]["template"] = template();
    set["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    sandbox.create(&StatefulSet::RESOURCE, set).expect("the stateful set must be valid");
    let orphan = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "orphan", "namespace": NAMESPACE },
        "spec": { "nodeName": "gone", "containers": [{ "name": "main", "image": "image" }] },
    });
    sandbox.create(&PODS, orphan).expect("the pod must be valid");
}

/// Ends the pods of jobs: the first fails.
fn end_pods(sandbox: &Sandbox) {
    let pods = sandbox.list(&PODS, Some(NAMESPACE));
    let of_jobs = pods.iter().filter(|pod| pod["metadata"]["ownerReferences"][0]["kind"] == "Job");
    for (code, pod) in [1, 0].into_iter().zip(of_jobs) {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let ended = json!({ "exitCode": code, "finishedAt": "2026-01-01T00:00:00Z" });
        let container = json!({ "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": { "terminated": ended } });
        let status = json!({ "status": { "phase": phase, "containerStatuses": [container] } });
        let name = pod["metadata"]["name"].as_str().expect("pods have names");
        sandbox.patch_status(&PODS, &ObjectKey::namespaced(NAMESPACE, name), &status).expect("the pod must be there");
    }
}

#[tokio::test(start_paused = true)]
async fn what_workloads_show_agrees_with_the_table() {
    let controllers = ["job", "statefulset", "podgc"];
    let manager = running_with(&controllers, &["--feature-gates=MaxUnavailableStatefulSet=true"]).await;
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    let refused = Fault::on(Verb::Delete).resource(PODS).name("orphan").times(1).fail(refused);
    manager.sandbox.faults().inject(refused);
    create_workloads(&manager.sandbox);
    tokio::time::sleep(Duration::from_secs(5)).await;
    end_pods(&manager.sandbox);
    // The quarantine of a deleted node, and some rounds.
    tokio::time::sleep(Duration::from_mins(5)).await;
    let page = String::from_utf8(manager.metrics.expose(Format::Text)).expect("it is text");
    let ours = scraped(&page);
    let (prefixes, mut compared) = (["job_controller_", "pod_gc_collector_", "statefulset_controller_"], 0);
    for (name, theirs) in table() {
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            assert_eq!(ours.get(name), Some(&theirs), "{name}");
            compared += 1;
        }
    }
    assert_eq!(compared, 15, "10 of jobs, 3 of stateful sets, 2 of collected pods");
}
