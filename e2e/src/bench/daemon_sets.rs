//! Daemon sets on many nodes: made, and rolled.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::size::Size;
use super::testbed::Testbed;
use super::workload::{LIMIT, Workload};
use crate::{nodes, wait};

/// What the managers run.
pub(super) const CONTROLLERS: &str = "daemonset";

const NAMESPACE: &str = "bench";

/// Daemon sets on nodes beside those of the testbed: made with the nodes there, and rolled with a tenth unavailable.
pub(super) async fn made_and_rolled(testbed: &mut Testbed, size: Size) -> Result<()> {
    let (sets, nodes) = (size.pick(2, 10), size.pick(50, 450));
    testbed.phase("nodes", async |it| nodes::create(&it.client, "daemon", nodes).await).await?;
    testbed.phase("made", async |it| make(it, sets).await).await?;
    testbed.phase("rolled", async |it| roll(it, sets).await).await
}

async fn make(workload: &Workload, sets: usize) -> Result<()> {
    workload.make_namespace(NAMESPACE).await?;
    let api: Api<appsv1::DaemonSet> = Api::namespaced(workload.client.clone(), NAMESPACE);
    for number in 0..sets {
        let name = format!("agent-{number}");
        let set = json!({
            "metadata": { "name": name },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "10%" } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
                },
            },
        });
        let set = serde_json::from_value(set).context("a daemon set from its JSON")?;
        api.create(&PostParams::default(), &set).await.with_context(|| format!("cannot make {name}"))?;
    }
    are_available(&api, sets).await
}

async fn roll(workload: &Workload, sets: usize) -> Result<()> {
    let api: Api<appsv1::DaemonSet> = Api::namespaced(workload.client.clone(), NAMESPACE);
    let containers = json!([{ "name": "main", "image": "example/main:2" }]);
    let patch = Patch::Strategic(json!({ "spec": { "template": { "spec": { "containers": containers } } } }));
    for number in 0..sets {
        api.patch(&format!("agent-{number}"), &PatchParams::default(), &patch).await?;
    }
    are_available(&api, sets).await
}

async fn are_available(api: &Api<appsv1::DaemonSet>, sets: usize) -> Result<()> {
    wait::eventually_within("the daemon sets to be available", LIMIT, async || {
        let list = api.list(&ListParams::default()).await?;
        let is_done = |set: &&appsv1::DaemonSet| {
            set.status.as_ref().is_some_and(|status| {
                let desired = Some(status.desired_number_scheduled);
                status.observed_generation == set.metadata.generation
                    && status.desired_number_scheduled > 0
                    && [status.updated_number_scheduled, status.number_available] == [desired; 2]
            })
        };
        let done = list.iter().filter(is_done).count();
        ensure!(done == sets, "{done} of {sets} are");
        Ok(())
    })
    .await
}
