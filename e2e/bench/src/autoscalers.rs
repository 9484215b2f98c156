//! Autoscalers over a metrics API: made, at rest, scaled, and gone through by a manager that starts.
//!
//! The pods run nowhere: the benchmark writes their statuses. The latencies of `rested` are the times between two syncs of
//! an autoscaler; those of `restarted` lead from the first sync of any autoscaler to the first one of each.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::aggregated_api::{AggregatedApi, Served};
use kcm_e2e_harness::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::manifests::{deployment, template};
use super::size::Size;
use super::testbed::Testbed;
use super::workload::{LIMIT, Workload};

/// What the managers run.
pub(super) const CONTROLLERS: &str = "horizontalpodautoscaling";
/// What they send requests about.
pub(super) const REQUESTS: &[&str] = &["deployments/scale", "horizontalpodautoscalers/status", "events"];

const PODS: &str = "/api/v1/namespaces/bench/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/bench/deployments";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/bench/horizontalpodautoscalers";
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
/// The pods of each deployment.
const PODS_EACH: usize = 2;
/// When the pods became ready, and their usage was sampled. A pod that is younger than five minutes counts otherwise.
const THEN: &str = "2020-01-01T00:00:00Z";
/// What the requests to the metrics API are called beside the others.
const KIND: &str = "LIST pods.metrics.k8s.io";
/// A manager that was killed has sent its last request by then, and its successor syncs nothing for a period of 15 s.
const KILLED: Duration = Duration::from_secs(2);

/// Autoscalers of deployments that use half of what their pods request, then all of it.
pub(super) async fn scaled(testbed: &mut Testbed, size: Size) -> Result<()> {
    let count = testbed.scaled(size.pick(200, 1_000));
    let api = testbed.aggregated_api().await?;
    serve(&api, count, "5m");
    let start = Instant::now();
    testbed
        .phase("made", async |it| {
            it.register(&api).await?;
            it.make_namespace("bench").await?;
            it.many(count, async |number| it.make_autoscaler(number).await).await?;
            are_synced(&api, start, count).await
        })
        .await?;
    // The syncs of autoscalers that were made together come together: a phase begins between two such rounds, so that it
    // sees as many of them for both managers.
    are_synced(&api, Instant::now(), count).await?;
    let start = Instant::now();
    testbed
        .phase("rested", async |_| {
            // At least one sync of each.
            tokio::time::sleep(Duration::from_secs(size.pick(16, 60))).await;
            Ok(())
        })
        .await?;
    testbed.latencies(&periods(&api.served(), start));
    testbed.aggregated_requests(KIND, served_since(&api, start));
    are_synced(&api, Instant::now(), count).await?;
    let start = Instant::now();
    testbed
        .phase("scaled", async |it| {
            serve(&api, count, "10m");
            it.are(DEPLOYMENTS, count, |it| it["spec"]["replicas"] == json!(2 * PODS_EACH)).await
        })
        .await?;
    testbed.aggregated_requests(KIND, served_since(&api, start));
    let killed = Instant::now() + KILLED;
    testbed.restart("restarted").await?;
    are_synced(&api, killed, count).await?;
    testbed.latencies(&round(&api.served(), killed));
    Ok(())
}

impl Workload {
    /// Registers the metrics API, which is served when it returns.
    async fn register(&self, api: &AggregatedApi) -> Result<()> {
        for object in api.registrations(&[("metrics.k8s.io", "v1beta1")]) {
            let path =
                if object["kind"] == "APIService" { API_SERVICES } else { "/api/v1/namespaces/default/services" };
            self.post(path, &object).await?;
        }
        wait::eventually_within("the metrics API to be served", LIMIT, async || {
            self.get(METRICS).await?.context("it is not there").map(drop)
        })
        .await
    }

    /// Creates a deployment, its pods, and their autoscaler.
    async fn make_autoscaler(&self, number: usize) -> Result<()> {
        let name = format!("web-{number}");
        self.post(DEPLOYMENTS, &deployment(&name, PODS_EACH)).await?;
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": THEN });
        let status = json!({ "status": { "phase": "Running", "startTime": THEN, "conditions": [ready] } });
        for at in 0..PODS_EACH {
            let mut pod = template(&name);
            pod["metadata"]["name"] = json!(format!("{name}-{at}"));
            pod["spec"]["schedulerName"] = json!("no-scheduler");
            self.post(PODS, &pod).await?;
            self.merge(&format!("{PODS}/{name}-{at}/status"), &status).await?;
        }
        self.post(AUTOSCALERS, &autoscaler(&name)).await.map(drop)
    }
}

/// Serves this usage of each pod.
fn serve(api: &AggregatedApi, count: usize, cpu: &str) {
    for number in 0..count {
        let usage = (0..PODS_EACH).map(|at| {
            json!({
                "metadata": { "namespace": "bench", "name": format!("web-{number}-{at}") },
                "timestamp": THEN, "window": "15s",
                "containers": [{ "name": "main", "usage": { "cpu": cpu, "memory": "1Mi" } }],
            })
        });
        let usage = json!({
            "kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {},
            "items": usage.collect::<Vec<_>>(),
        });
        api.set(&format!("{METRICS}/namespaces/bench/pods?labelSelector=app=web-{number}"), Some(usage));
    }
}

fn autoscaler(target: &str) -> Value {
    let cpu = json!({ "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 } });
    json!({
        "metadata": { "name": target },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": target },
            "minReplicas": 1, "maxReplicas": 10, "metrics": [{ "type": "Resource", "resource": cpu }],
        },
    })
}

/// Waits until the usage of so many deployments has been served since a time: each sync asks for that of one.
async fn are_synced(api: &AggregatedApi, since: Instant, expected: usize) -> Result<()> {
    wait::eventually_within("each autoscaler to be synced", LIMIT, async || {
        let synced = round(&api.served(), since).len();
        ensure!(synced == expected, "{synced} of {expected} were");
        Ok(())
    })
    .await
}

fn served_since(api: &AggregatedApi, since: Instant) -> u64 {
    api.served().iter().filter(|it| it.at >= since).fold(0, |count, _| count + 1)
}

/// The times between two requests about one deployment, of which the later is not before `since`.
fn periods(served: &[Served], since: Instant) -> Vec<Duration> {
    let mut last: BTreeMap<&str, Instant> = BTreeMap::new();
    let between = served.iter().filter_map(|it| {
        let before = last.insert(&it.path, it.at)?;
        (it.at >= since).then(|| it.at.duration_since(before))
    });
    between.collect()
}

/// The times from the first request since then to the first one about each deployment.
fn round(served: &[Served], since: Instant) -> Vec<Duration> {
    let mut first: BTreeMap<&str, Instant> = BTreeMap::new();
    for it in served.iter().filter(|it| it.at >= since) {
        first.entry(&it.path).or_insert(it.at);
    }
    let start = first.values().min().copied().unwrap_or(since);
    first.into_values().map(|at| at.duration_since(start)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_and_rounds_are_those_of_each_deployment() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let served = [("a", 0), ("b", 4), ("a", 15), ("b", 21), ("a", 31), ("b", 36)];
        let served = served.map(|(path, seconds)| Served { at: at(seconds), path: path.to_owned() });
        let seconds = |times: Vec<Duration>| times.iter().map(Duration::as_secs).collect::<Vec<_>>();
        assert_eq!(seconds(periods(&served, start)), [15, 17, 16, 15]);
        assert_eq!(seconds(periods(&served, at(30))), [16, 15]);
        assert_eq!(seconds(round(&served, start)), [0, 4]);
        assert_eq!(seconds(round(&served, at(30))), [0, 5]);
        assert!(round(&served, at(40)).is_empty());
    }
}
