//! Daemon sets on many nodes: made, and rolled.

use anyhow::Result;
use kcm_e2e_harness::nodes;
use serde_json::{Value, json};

use super::size::Size;
use super::testbed::Testbed;

/// What the managers run.
pub(super) const CONTROLLERS: &str = "daemonset";

const SETS: &str = "/apis/apps/v1/namespaces/bench/daemonsets";

/// Daemon sets on nodes beside those of the testbed: made with the nodes there, and rolled with a tenth unavailable.
pub(super) async fn made_and_rolled(testbed: &mut Testbed, size: Size) -> Result<()> {
    let (sets, nodes) = (size.pick(2, 10), testbed.scaled(size.pick(50, 450)));
    testbed.phase("nodes", async |it| nodes::create(&it.client, "daemon", nodes).await).await?;
    testbed
        .phase("made", async |it| {
            it.make_namespace("bench").await?;
            it.many(sets, async |number| it.post(SETS, &daemon_set(number)).await.map(drop)).await?;
            it.are(SETS, sets, is_available).await
        })
        .await?;
    testbed
        .phase("rolled", async |it| {
            let containers = json!([{ "name": "main", "image": "example/main:2" }]);
            let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
            it.many(sets, async |number| it.merge(&format!("{SETS}/agent-{number}"), &patch).await).await?;
            it.are(SETS, sets, is_available).await
        })
        .await
}

fn daemon_set(number: usize) -> Value {
    let name = format!("agent-{number}");
    json!({
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "10%" } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    })
}

/// Whether all pods that a daemon set should have are available and of its template.
fn is_available(set: &Value) -> bool {
    let status = &set["status"];
    let count = |field: &str| status[field].as_u64().unwrap_or(0);
    let desired = count("desiredNumberScheduled");
    status["observedGeneration"] == set["metadata"]["generation"]
        && desired > 0
        && ["updatedNumberScheduled", "numberAvailable"].iter().all(|field| count(field) == desired)
}
