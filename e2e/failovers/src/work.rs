//! What the managers have to do: a deployment that is rolled all the time, and a replica set for each failover.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::batch::v1 as batchv1;
use kcm_e2e_harness::wait::eventually_within;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// The prefix of the names of the nodes, of which there is one: pods name it, so that no scheduler is needed.
pub(super) const NODES: &str = "failovers";

/// How long a rollout is waited for, before the next begins in its middle.
const ROLLOUT: Duration = Duration::from_mins(1);

fn template(app: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app } },
        "spec": {
            "nodeName": format!("{NODES}-1"),
            "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "main", "image": "example/main:1" }],
        },
    })
}

/// Makes the deployment.
pub(super) async fn create(client: &Client, pods: i32) -> Result<()> {
    let deployment = json!({
        "metadata": { "name": "rolled" },
        "spec": {
            "replicas": pods,
            "revisionHistoryLimit": 2,
            "selector": { "matchLabels": { "app": "rolled" } },
            "template": template("rolled"),
        },
    });
    let deployment: appsv1::Deployment = serde_json::from_value(deployment).context("it is a deployment")?;
    let deployments: Api<appsv1::Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&PostParams::default(), &deployment).await.context("cannot make the deployment")?;
    is_rolled(&deployments, Duration::from_mins(5)).await
}

async fn is_rolled(deployments: &Api<appsv1::Deployment>, within: Duration) -> Result<()> {
    eventually_within("the rollout", within, async || {
        let deployment = deployments.get("rolled").await?;
        let (wanted, status) = (deployment.spec.replicas, deployment.status.unwrap_or_default());
        let observed = status.observed_generation == deployment.metadata.generation;
        ensure!(observed && status.updated_replicas == wanted && status.available_replicas == wanted, "{status:?}");
        Ok(())
    })
    .await
}

/// Rolls the deployment again and again; returns only if it cannot be changed.
pub(super) async fn roll(client: &Client) -> Result<Infallible> {
    let deployments: Api<appsv1::Deployment> = Api::default_namespaced(client.clone());
    for number in 0_u64.. {
        let annotations = json!({ "rolled": number.to_string() });
        let patch = json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } });
        let rolled = deployments.patch("rolled", &PatchParams::default(), &Patch::Merge(patch)).await;
        rolled.context("cannot roll the deployment")?;
        // A rollout that a failover interrupts is rolled over.
        drop(is_rolled(&deployments, ROLLOUT).await);
    }
    std::future::pending().await
}

/// Creates an indexed Job, whose first pods the leader and its successor create.
pub(super) async fn create_job(client: &Client, number: usize) -> Result<()> {
    let name = format!("job-{number}");
    let mut template = template(&name);
    template["spec"]["restartPolicy"] = "Never".into();
    let spec = json!({ "completions": 20, "parallelism": 20, "completionMode": "Indexed", "template": template });
    let job = json!({ "metadata": { "name": name }, "spec": spec });
    let job: batchv1::Job = serde_json::from_value(job).context("it is a job")?;
    let jobs: Api<batchv1::Job> = Api::default_namespaced(client.clone());
    eventually_within("the job to be created", ROLLOUT, async || {
        match jobs.create(&PostParams::default(), &job).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            created => created.map(drop).context("cannot create the job"),
        }
    })
    .await
}

/// Makes the replica set that the successor of that failover has to act on, and returns its name.
pub(super) async fn create_probe(client: &Client, number: usize) -> Result<String> {
    let name = format!("probe-{number}");
    let set = json!({
        "metadata": { "name": name },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": name } }, "template": template(&name) },
    });
    let set: appsv1::ReplicaSet = serde_json::from_value(set).context("it is a replica set")?;
    let sets: Api<appsv1::ReplicaSet> = Api::default_namespaced(client.clone());
    // An API server that was stopped may close the connection of the first request.
    eventually_within("the replica set to be made", ROLLOUT, async || {
        match sets.create(&PostParams::default(), &set).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            made => made.map(drop).context("cannot make the replica set"),
        }
    })
    .await?;
    Ok(name)
}
