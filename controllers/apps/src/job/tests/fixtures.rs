//! Jobs and their pods, as the API serves them.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{Job, Pod, PodTermination};
use kcm_framework::api::{DecodeContext, Need, Needs, PartReader, View as _};
use serde_json::{Value, json};

use crate::job::job_pod::{COMPLETION_INDEX, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT, JobPod};
use crate::job::plan::Step;
use crate::job::track::Applied;
use crate::tests::cluster::{NAMESPACE, now};
use crate::tests::fixtures::ago;

/// A job as a test builds it.
#[derive(Clone)]
pub(super) struct JobBuilder(pub(super) Value);

/// The job `sum` of one pod at a time and one completion, which has run for an hour.
pub(super) fn job() -> JobBuilder {
    JobBuilder(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "namespace": NAMESPACE,
            "name": "sum",
            "uid": "uid-of-sum",
            "resourceVersion": "10",
            "generation": 1,
        },
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": false,
            "podReplacementPolicy": "TerminatingOrFailed",
            "selector": { "matchLabels": { "batch.kubernetes.io/controller-uid": "uid-of-sum" } },
            "template": {
                "metadata": { "labels": { "batch.kubernetes.io/controller-uid": "uid-of-sum", "app": "sum" } },
                "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "image" }] },
            },
        },
        "status": { "startTime": ago(3600), "ready": 0, "terminating": 0, "uncountedTerminatedPods": {} },
    }))
}

/// An indexed job of so many completions, all at once.
pub(super) fn indexed(completions: i32) -> JobBuilder {
    job().spec("completionMode", json!("Indexed")).completions(completions).parallelism(completions)
}

impl JobBuilder {
    pub(super) fn spec(mut self, field: &str, value: Value) -> Self {
        self.0["spec"][field] = value;
        self
    }

    pub(super) fn status(mut self, field: &str, value: Value) -> Self {
        self.0["status"][field] = value;
        self
    }

    pub(super) fn metadata(mut self, field: &str, value: Value) -> Self {
        self.0["metadata"][field] = value;
        self
    }

    pub(super) fn completions(self, completions: i32) -> Self {
        self.spec("completions", json!(completions))
    }

    pub(super) fn parallelism(self, parallelism: i32) -> Self {
        self.spec("parallelism", json!(parallelism))
    }

    pub(super) fn failure_rules(self, rules: Value) -> Self {
        let mut policy = json!({});
        policy["rules"] = rules;
        self.spec("podFailurePolicy", policy).spec("podReplacementPolicy", json!("Failed"))
    }

    pub(super) fn build(&self) -> Job {
        Job::decode(&self.0.to_string()).expect("the fixture must be a job")
    }
}

/// A pod as a test builds it.
#[derive(Clone)]
pub(super) struct PodBuilder(pub(super) Value);

/// A running pod of the job `sum` with its finalizer, on a node, that is not ready.
pub(super) fn pod(name: &str) -> PodBuilder {
    PodBuilder(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": format!("uid-of-{name}"),
            "resourceVersion": "20",
            "creationTimestamp": ago(600),
            "labels": { "batch.kubernetes.io/controller-uid": "uid-of-sum" },
            "annotations": {},
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "ownerReferences": [{
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "sum",
                "uid": "uid-of-sum",
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": { "nodeName": "node" },
        "status": { "phase": "Running" },
    }))
}

impl PodBuilder {
    pub(super) fn with(mut self, at: &str, field: &str, value: Value) -> Self {
        self.0.pointer_mut(at).expect("the fixture must have this object")[field] = value;
        self
    }

    pub(super) fn phase(self, phase: &str) -> Self {
        self.with("/status", "phase", json!(phase))
    }

    /// Succeeded so many seconds ago.
    pub(super) fn succeeded(self, seconds_ago: i64) -> Self {
        self.phase("Succeeded").exited(0, seconds_ago)
    }

    /// Failed with exit code 1, so many seconds ago.
    pub(super) fn failed(self, seconds_ago: i64) -> Self {
        self.phase("Failed").exited(1, seconds_ago)
    }

    /// The container `main` ended with that code.
    pub(super) fn exited(self, code: i32, seconds_ago: i64) -> Self {
        let state = json!({ "terminated": { "exitCode": code, "finishedAt": ago(seconds_ago) } });
        self.with("/status", "containerStatuses", json!([{ "name": "main", "state": state }]))
    }

    pub(super) fn ready(self) -> Self {
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": ago(60) });
        self.with("/status", "conditions", json!([ready]))
    }

    pub(super) fn condition(self, type_: &str) -> Self {
        self.with("/status", "conditions", json!([{ "type": type_, "status": "True" }]))
    }

    pub(super) fn terminating(self) -> Self {
        self.with("/metadata", "deletionTimestamp", json!(ago(1)))
    }

    pub(super) fn counted(self) -> Self {
        self.with("/metadata", "finalizers", json!([]))
    }

    pub(super) fn index(self, index: i32) -> Self {
        self.with("/metadata/annotations", COMPLETION_INDEX, json!(index.to_string()))
    }

    pub(super) fn failures_before(self, counted: i32, ignored: i32) -> Self {
        self.with("/metadata/annotations", INDEX_FAILURE_COUNT, json!(counted.to_string())).with(
            "/metadata/annotations",
            INDEX_IGNORED_FAILURE_COUNT,
            json!(ignored.to_string()),
        )
    }

    /// The view with the annotations and the part that the controller needs.
    pub(super) fn view(&self) -> Arc<Pod> {
        let context = Arc::new(DecodeContext::new::<Pod>(Arc::default(), &needs()));
        Arc::new(context.scope(|| Pod::decode(&self.0.to_string())).expect("the fixture must be a pod"))
    }

    pub(super) fn build(&self) -> JobPod {
        JobPod::new(self.view(), false, terminations())
    }
}

fn needs() -> Needs {
    [
        Need::part::<PodTermination>(),
        Need::annotation::<Pod>(COMPLETION_INDEX),
        Need::annotation::<Pod>(INDEX_FAILURE_COUNT),
        Need::annotation::<Pod>(INDEX_IGNORED_FAILURE_COUNT),
    ]
    .into_iter()
    .collect()
}

pub(super) fn terminations() -> PartReader<PodTermination> {
    needs().reader().expect("the part is among the needs")
}

pub(super) fn pods(builders: &[PodBuilder]) -> Vec<JobPod> {
    builders.iter().map(PodBuilder::build).collect()
}

/// That long before [`now`].
pub(super) fn before(seconds: i64) -> Timestamp {
    now() - jiff::SignedDuration::from_secs(seconds)
}

pub(super) fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": type_,
        "status": status,
        "lastProbeTime": ago(100),
        "lastTransitionTime": ago(100),
        "reason": reason,
        "message": "reported",
    })
}

/// Returns the result of a step whose requests all succeed.
pub(super) fn applied(step: &Step<'_>) -> Applied {
    let number = |count: usize| i32::try_from(count).expect("tests have few pods");
    match step {
        Step::DeleteActive(pods) | Step::Suspend(pods) | Step::DeleteSurplus { pods, wanted: _ } => Applied {
            deleted: number(pods.len()),
            deleted_ready: number(pods.iter().filter(|pod| pod.pod.is_ready()).count()),
            created: 0,
        },
        Step::Create { pods, wanted: _ } => Applied { created: number(pods.len()), ..Applied::default() },
        Step::BackOff { .. } | Step::Keep | Step::LeaveToDeletion => Applied::default(),
    }
}
