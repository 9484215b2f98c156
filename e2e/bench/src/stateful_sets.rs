//! Ordered stateful sets: made, rolled, and scaled to zero.

use anyhow::Result;
use serde_json::{Value, json};

use super::manifests::template;
use super::size::Size;
use super::testbed::Testbed;
use super::workload::Workload;

/// What the managers run.
pub(super) const CONTROLLERS: &str = "statefulset";

const SETS: &str = "/apis/apps/v1/namespaces/bench/statefulsets";

/// Stateful sets whose pods are made, replaced and deleted one after another.
pub(super) async fn made_rolled_and_scaled(testbed: &mut Testbed, size: Size) -> Result<()> {
    let (sets, pods) = (testbed.scaled(size.pick(10, 50)), size.pick(10, 20));
    testbed
        .phase("made", async |it| {
            it.make_namespace("bench").await?;
            it.many(sets, async |number| it.post(SETS, &stateful_set(number, pods)).await.map(drop)).await?;
            it.are(SETS, sets, |set| has(set, pods)).await
        })
        .await?;
    testbed
        .phase("rolled", async |it| {
            let containers = json!([{ "name": "main", "image": "example/main:2" }]);
            change(it, sets, json!({ "template": { "spec": { "containers": containers } } })).await?;
            it.are(SETS, sets, |set| has(set, pods)).await
        })
        .await?;
    testbed
        .phase("scaled to zero", async |it| {
            change(it, sets, json!({ "replicas": 0 })).await?;
            it.are(SETS, sets, |set| has(set, 0)).await
        })
        .await
}

fn stateful_set(number: usize, pods: usize) -> Value {
    let name = format!("store-{number}");
    json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": pods, "serviceName": "store", "selector": { "matchLabels": { "app": name } },
            "template": template(&name),
        },
    })
}

async fn change(workload: &Workload, sets: usize, spec: Value) -> Result<()> {
    let patch = json!({ "spec": spec });
    workload.many(sets, async |number| workload.merge(&format!("{SETS}/store-{number}"), &patch).await).await
}

/// Whether a set has so many pods, all of them available and of its one revision.
fn has(set: &Value, pods: usize) -> bool {
    let status = &set["status"];
    let count = |field: &str| status[field].as_u64().unwrap_or(0);
    status["observedGeneration"] == set["metadata"]["generation"]
        && (pods == 0 || status["currentRevision"] == status["updateRevision"])
        && usize::try_from(count("replicas")) == Ok(pods)
        && ["readyReplicas", "availableReplicas"].iter().all(|field| count(field) == count("replicas"))
}
