mod apply;
mod event_mapping;
mod invariants;
mod plan;

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::Job;
use serde_json::{Value, json};

use crate::tests::cluster::NAMESPACE;
use crate::tests::fixtures::ago;

/// A job with a time to live of a minute that completed, or will, so many seconds ago.
fn completed(name: &str, seconds_ago: i64) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": {
            "ttlSecondsAfterFinished": 60,
            "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "image" }] } },
        },
        "status": { "conditions": [condition("Complete", "True", seconds_ago)] },
    })
}

fn condition(type_: &str, status: &str, seconds_ago: i64) -> Value {
    json!({ "type": type_, "status": status, "lastTransitionTime": ago(seconds_ago) })
}

fn with(mut job: Value, at: &str, name: &str, value: Value) -> Value {
    job.pointer_mut(at).expect("the fixture must have this object")[name] = value;
    job
}

fn view_of(job: &Value) -> Arc<Job> {
    Arc::new(Job::decode(&job.to_string()).unwrap())
}
