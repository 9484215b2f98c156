//! A cluster with the controller, and a kubelet that finishes pods and keeps count of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;

use kcm_framework::api::{KnownView as _, Resource, views};
use kcm_testing::TestCluster;
use kcm_testing::sandbox::{PODS, Sandbox};
use serde_json::{Value, json};

use crate::job::DESCRIPTOR;
use crate::tests::cluster::{NAMESPACE, key};

pub(super) const JOBS: Resource = views::Job::RESOURCE;

/// The job `sum`.
pub(super) fn new_job(completions: i32, parallelism: i32) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "namespace": NAMESPACE, "name": "sum" },
        "spec": {
            "completions": completions,
            "parallelism": parallelism,
            "template": {
                "metadata": { "labels": { "app": "sum" } },
                "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "image" }] },
            },
        },
    })
}

/// An API server and a manager with the controller on it, which stops on drop.
pub(super) struct Cluster(crate::tests::cluster::Cluster);

impl Deref for Cluster {
    type Target = crate::tests::cluster::Cluster;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Cluster {
    pub(super) async fn start(prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        Self(crate::tests::cluster::Cluster::start(&[DESCRIPTOR], &[PODS, JOBS], prepare).await)
    }

    pub(super) fn create(&self, job: Value) -> Value {
        self.sandbox().create(&JOBS, job).expect("the job must be valid")
    }
}

pub(super) fn job(sandbox: &Sandbox) -> Option<Value> {
    sandbox.get(&JOBS, &key("sum"))
}

pub(super) fn status(sandbox: &Sandbox) -> Value {
    job(sandbox).expect("the job must be there")["status"].clone()
}

/// Whether the job is complete or failed.
pub(super) fn is_finished(sandbox: &Sandbox) -> bool {
    let conditions = status(sandbox)["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Complete" || condition["type"] == "Failed")
}

/// How many pods have the finalizer of jobs.
pub(super) fn finalizers(sandbox: &Sandbox) -> usize {
    let pods = sandbox.list(&PODS, Some(NAMESPACE));
    pods.iter().filter(|pod| is_tracked(pod)).count()
}

fn is_tracked(pod: &Value) -> bool {
    let finalizers = pod["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers.contains(&json!("batch.kubernetes.io/job-tracking"))
}

pub(super) fn index(pod: &Value) -> Option<i32> {
    pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"].as_str()?.parse().ok()
}

/// Ends a pod as a kubelet does.
pub(super) fn finish(sandbox: &Sandbox, pod: &str, succeeds: bool) {
    let (phase, code) = if succeeds { ("Succeeded", 0) } else { ("Failed", 1) };
    let ended = json!({ "exitCode": code, "finishedAt": kcm_framework::api::time::format_seconds(sandbox.now()) });
    let container = json!({ "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": { "terminated": ended } });
    let status = json!({ "status": { "phase": phase, "containerStatuses": [container] } });
    sandbox.patch_status(&PODS, &key(pod), &status).expect("the pod must be there");
}

/// Whether a pod fails, of which so many have finished before.
type Fails = dyn Fn(&Value, usize) -> bool;

/// Finishes every pod that it sees, and keeps count of them by uid.
pub(super) struct Kubelet {
    fails: Box<Fails>,
    outcomes: RefCell<BTreeMap<String, bool>>,
}

impl Kubelet {
    fn new(fails: impl Fn(&Value, usize) -> bool + 'static) -> Self {
        Self { fails: Box::new(fails), outcomes: RefCell::default() }
    }

    pub(super) fn succeeding() -> Self {
        Self::new(|_, _| false)
    }

    pub(super) fn failing() -> Self {
        Self::new(|_, _| true)
    }

    /// The first so many pods fail.
    pub(super) fn failing_first(count: usize) -> Self {
        Self::new(move |_, finished| finished < count)
    }

    /// All pods of an index fail.
    pub(super) fn failing_of_index(failing: i32) -> Self {
        Self::new(move |pod, _| index(pod) == Some(failing))
    }

    /// The first pod of an index fails.
    pub(super) fn failing_once_of_index(failing: i32) -> Self {
        let has_failed = RefCell::new(false);
        Self::new(move |pod, _| index(pod) == Some(failing) && !has_failed.replace(true))
    }

    /// So many pods have succeeded and failed before.
    pub(super) fn after(self, succeeded: usize, failed: usize) -> Self {
        let before = (0..succeeded + failed).map(|number| (format!("before-{number}"), number < succeeded));
        self.outcomes.borrow_mut().extend(before);
        self
    }

    /// How many pods succeeded and failed.
    pub(super) fn outcomes(&self) -> (usize, usize) {
        let outcomes = self.outcomes.borrow();
        let succeeded = outcomes.values().filter(|succeeded| **succeeded).count();
        (succeeded, outcomes.len() - succeeded)
    }

    /// Runs until `is_done`, and holds all along that no pod is counted that has not finished, and none twice.
    pub(super) async fn run(&self, cluster: &TestCluster, what: &str, is_done: impl Fn(&Sandbox) -> bool) {
        let step = |sandbox: &Sandbox| {
            self.finish_pods(sandbox);
            self.assert_counted_once(sandbox);
            is_done(sandbox)
        };
        cluster.eventually(what, step).await;
    }

    fn finish_pods(&self, sandbox: &Sandbox) {
        for pod in sandbox.list(&PODS, Some(NAMESPACE)) {
            let meta = &pod["metadata"];
            if ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase) || !is_tracked(&pod) {
                continue;
            }
            let finished = self.outcomes.borrow().len();
            let fails = (self.fails)(&pod, finished);
            finish(sandbox, meta["name"].as_str().expect("pods have names"), !fails);
            self.outcomes.borrow_mut().insert(meta["uid"].as_str().expect("pods have uids").to_owned(), !fails);
        }
    }

    /// A pod with the finalizer is counted nowhere but in the list; the counts and the list together are no more than the
    /// pods that have finished.
    fn assert_counted_once(&self, sandbox: &Sandbox) {
        let Some(job) = job(sandbox) else { return };
        let status = &job["status"];
        let (succeeded, failed) = self.outcomes();
        let is_indexed = job["spec"]["completionMode"] == "Indexed";
        for (field, finished) in [("succeeded", succeeded), ("failed", failed)] {
            let listed = status["uncountedTerminatedPods"][field].as_array().map_or(0, Vec::len);
            let counted = usize::try_from(status[field].as_i64().unwrap_or(0)).expect("counts are not negative");
            let tracked = self.tracked(sandbox, field == "succeeded", is_indexed);
            assert!(
                counted + listed.max(tracked) <= finished,
                "{field}: {finished} have, {tracked} of them with the finalizer, and the status is {status}"
            );
        }
    }

    /// How many finished pods with the finalizer no count may have; indexes stand for the pods that succeeded.
    fn tracked(&self, sandbox: &Sandbox, succeeded: bool, is_indexed: bool) -> usize {
        let outcomes = self.outcomes.borrow();
        let pods = sandbox.list(&PODS, Some(NAMESPACE));
        let waits = |pod: &&Value| {
            let outcome = outcomes.get(pod["metadata"]["uid"].as_str().unwrap_or_default());
            is_tracked(pod) && outcome == Some(&succeeded) && !(succeeded && is_indexed)
        };
        pods.iter().filter(waits).count()
    }

    /// Asserts that the status of the finished job counts each finished pod once.
    pub(super) fn assert_all_counted(&self, sandbox: &Sandbox) {
        let (succeeded, failed) = self.outcomes();
        let status = status(sandbox);
        let counted =
            |field: &str| usize::try_from(status[field].as_i64().unwrap_or(0)).expect("counts are not negative");
        assert_eq!((counted("succeeded"), counted("failed")), (succeeded, failed), "{status}");
        assert_eq!(finalizers(sandbox), 0);
    }
}
