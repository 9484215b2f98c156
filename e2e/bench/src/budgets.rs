//! Disruption budgets while all of their pods are drained.
//!
//! The benchmark evicts pods and makes those that replace them, as an owner does, so that the managers run nothing but
//! the controller of budgets; kwok makes the pods ready.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kcm_e2e_harness::wait;
use serde_json::{Value, json};

use super::manifests::{replica_set, template};
use super::objects::reference;
use super::size::Size;
use super::testbed::{NODES, Testbed};
use super::workload::{LIMIT, Workload};

/// What the managers run.
pub(super) const CONTROLLERS: &str = "disruption";
/// What they send requests about.
pub(super) const REQUESTS: &[&str] = &["poddisruptionbudgets/status"];

const PODS: &str = "/api/v1/namespaces/bench/pods";
const SETS: &str = "/apis/apps/v1/namespaces/bench/replicasets";
const BUDGETS: &str = "/apis/policy/v1/namespaces/bench/poddisruptionbudgets";
/// The pods of each budget, of which one may be unavailable.
const PODS_EACH: usize = 4;

/// Budgets, made and drained.
pub(super) async fn drained(testbed: &mut Testbed, size: Size) -> Result<()> {
    let budgets = testbed.scaled(size.pick(100, 500));
    testbed
        .phase("made", async |it| {
            it.make_namespace("bench").await?;
            it.many(budgets, async |number| it.make_budget(number).await).await?;
            it.are(BUDGETS, budgets, allows_one).await
        })
        .await?;
    testbed
        .phase("drained", async |it| {
            it.many(budgets, async |number| it.drain(number).await).await?;
            it.are(BUDGETS, budgets, allows_one).await
        })
        .await
}

impl Workload {
    /// Creates a replica set, its pods, and their budget.
    async fn make_budget(&self, number: usize) -> Result<()> {
        let name = format!("web-{number}");
        let uid = self.post(SETS, &replica_set(&name, PODS_EACH)).await?;
        for at in 0..PODS_EACH {
            self.post(PODS, &pod(number, at, &uid)).await?;
        }
        let selector = json!({ "matchLabels": { "app": name } });
        let spec = json!({ "maxUnavailable": 1, "selector": selector });
        self.post(BUDGETS, &json!({ "metadata": { "name": name }, "spec": spec })).await.map(drop)
    }

    /// Evicts the pods of a budget one after the other, as soon as it allows that, and replaces each.
    async fn drain(&self, number: usize) -> Result<()> {
        let set = self.get(&format!("{SETS}/web-{number}")).await?.unwrap_or_default();
        let uid = set["metadata"]["uid"].as_str().context("a replica set has a uid")?;
        for at in 0..PODS_EACH {
            self.evict(&name_of(number, at)).await?;
            self.post(PODS, &pod(number, at + PODS_EACH, uid)).await?;
        }
        Ok(())
    }

    /// Evicts a pod as soon as its budget allows that.
    async fn evict(&self, name: &str) -> Result<()> {
        let path = format!("{PODS}/{name}/eviction");
        let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } });
        let what = format!("{name} to be evicted");
        let evicted = wait::eventually_within(&what, LIMIT, async || {
            let request = http::Request::post(&path).header("content-type", "application/json");
            match self.client.request_text(request.body(eviction.to_string().into_bytes())?).await {
                Err(kube::Error::Api(status)) if status.code == 429 => {
                    // A refusal costs the API server CPU time, and it shares the cores with the manager.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    bail!("its budget does not allow it")
                }
                answer => Ok(answer.map(drop)),
            }
        });
        evicted.await?.with_context(|| format!("POST {path}"))
    }
}

/// Whether a budget is up to date, has all of its pods, and allows one disruption.
fn allows_one(budget: &Value) -> bool {
    let status = &budget["status"];
    status["observedGeneration"] == budget["metadata"]["generation"]
        && [&status["expectedPods"], &status["currentHealthy"]].into_iter().all(|pods| *pods == json!(PODS_EACH))
        && status["disruptionsAllowed"] == 1
}

fn name_of(number: usize, at: usize) -> String {
    format!("pod-{number}-{at}")
}

fn pod(number: usize, at: usize, owner: &str) -> Value {
    let name = format!("web-{number}");
    let mut pod = template(&name);
    pod["metadata"]["name"] = json!(name_of(number, at));
    pod["metadata"]["ownerReferences"] = json!([reference("apps/v1", "ReplicaSet", &name, owner)]);
    pod["spec"]["nodeName"] = json!(format!("node-{}", 1 + (number + at) % NODES));
    pod
}
