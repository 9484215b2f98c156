//! Indexed jobs, whose pods finish as soon as they run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use anyhow::Result;
use kube::api::WatchEvent;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::objects::{METADATA, WHOLE};
use super::size::Size;
use super::testbed::Testbed;

/// What the managers run.
pub(super) const CONTROLLERS: &str = "job";

const JOBS: &str = "/apis/batch/v1/namespaces/bench/jobs";
const SUCCEEDED: &str = "/api/v1/namespaces/bench/pods?fieldSelector=status.phase%3DSucceeded";

/// Jobs of 20 pods.
pub(super) async fn many(testbed: &mut Testbed, _size: Size) -> Result<()> {
    completed(testbed, testbed.scaled(100), 20).await
}

/// One job of many pods.
pub(super) async fn large(testbed: &mut Testbed, size: Size) -> Result<()> {
    completed(testbed, 1, testbed.scaled(size.pick(1_000, 5_000))).await
}

/// Makes jobs, waits until they are complete, and times each from its last pod that finished.
async fn completed(testbed: &mut Testbed, jobs: usize, pods: usize) -> Result<()> {
    let times = RefCell::new(Times::default());
    testbed
        .phase("completed", async |it| {
            it.make_namespace("bench").await?;
            let made = it.many(jobs, async |number| it.post(JOBS, &job(number, pods)).await.map(drop));
            let finished = it.watch_until(SUCCEEDED, METADATA, |event| {
                times.borrow_mut().see_pod(event, Instant::now());
                times.borrow().pods == jobs * pods
            });
            let completed = it.watch_until(JOBS, WHOLE, |event| {
                times.borrow_mut().see_job(&event, Instant::now());
                times.borrow().complete.len() == jobs
            });
            tokio::try_join!(made, finished, completed).map(drop)
        })
        .await?;
    testbed.latencies(&times.into_inner().latencies());
    Ok(())
}

fn job(number: usize, pods: usize) -> Value {
    json!({
        "metadata": { "name": format!("batch-{number}") },
        "spec": {
            "completionMode": "Indexed", "completions": pods, "parallelism": pods,
            "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [{ "name": "main", "image": "example/main:1" }],
            } },
        },
    })
}

/// When the pods of jobs finished, and when the jobs were complete.
#[derive(Debug, Default)]
struct Times {
    pods: usize,
    /// The last pod that finished, by the name of its job.
    last_pod: HashMap<String, Instant>,
    complete: HashMap<String, Instant>,
}

impl Times {
    /// A pod joins the selection of those that succeeded once, and changes in it later.
    fn see_pod(&mut self, event: WatchEvent<Value>, now: Instant) {
        if let WatchEvent::Added(pod) = event {
            self.pods += 1;
            self.last_pod.insert(text(&pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]), now);
        }
    }

    fn see_job(&mut self, event: &WatchEvent<Value>, now: Instant) {
        if let WatchEvent::Added(job) | WatchEvent::Modified(job) = event
            && let Some(conditions) = job["status"]["conditions"].as_array()
            && conditions.iter().any(|condition| condition["type"] == "Complete" && condition["status"] == "True")
        {
            self.complete.entry(text(&job["metadata"]["name"])).or_insert(now);
        }
    }

    /// From the last pod of each job until the job was complete.
    fn latencies(&self) -> Vec<Duration> {
        let since = |(job, complete): (&String, &Instant)| {
            // The events of two watches may come in another order than they happened.
            self.last_pod.get(job).map(|&last| complete.saturating_duration_since(last))
        };
        self.complete.iter().filter_map(since).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_timed_from_its_last_pod_to_its_first_complete_status() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let pod = || json!({ "metadata": { "labels": { "batch.kubernetes.io/job-name": "batch-0" } } });
        let job = |type_: &str| {
            let conditions = json!([{ "type": type_, "status": "True" }]);
            WatchEvent::Modified(json!({ "metadata": { "name": "batch-0" }, "status": { "conditions": conditions } }))
        };
        let mut times = Times::default();
        times.see_pod(WatchEvent::Added(pod()), at(1));
        times.see_pod(WatchEvent::Added(pod()), at(3));
        times.see_pod(WatchEvent::Modified(pod()), at(4));
        times.see_job(&job("SuccessCriteriaMet"), at(5));
        assert!(times.latencies().is_empty());
        times.see_job(&job("Complete"), at(7));
        times.see_job(&job("Complete"), at(9));
        assert_eq!((times.pods, times.latencies()), (2, vec![Duration::from_secs(4)]));
    }
}
