//! Deployments: the commands of kubectl, crashes of the manager, and outages. A script compares the rest.

mod edits;
mod kills;
mod outages;
mod progress;
mod rollouts;
pub(super) mod watch;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of(CONTROLLERS).ours().with_own_managers() => {
        "deployment/survives_kills": kills::survives_kills,
    }
    Setup::of(CONTROLLERS).ours().exclusively() => {
        // Upstream's informers back off each by itself: after the third outage it was not done within a minute.
        "deployment/rolls_through_outages_of_the_api_server": outages::of_the_api_server,
        "deployment/rolls_through_a_hang_of_the_api_server": outages::hang_of_the_api_server,
        "deployment/rolls_through_a_hang_of_etcd": outages::hang_of_etcd,
    }
    Setup::of(CONTROLLERS).exclusively() => {
        "deployment/rolls_through_an_outage_of_etcd": outages::of_etcd,
    }
    Setup::of(CONTROLLERS) => {
        "deployment/is_watched": progress::is_watched,
        "deployment/is_stuck_and_recovers": progress::is_stuck_and_recovers,
        "deployment/rolls_out_and_back": rollouts::rolls_out_and_back,
        "deployment/pauses_and_resumes": rollouts::pauses_and_resumes,
        "deployment/scales_and_restarts": rollouts::scales_and_restarts,
        "deployment/is_edited": edits::is_edited,
        "deployment/is_applied_by_the_server": edits::is_applied_by_the_server,
    }
}

const CONTROLLERS: &str = "deployment,replicaset";

/// A deployment whose pods run at once.
fn deployment(name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    })
}

/// A deployment whose pods wait until the scenario lets them run.
fn held(name: &str, replicas: usize) -> Value {
    let mut deployment = deployment(name, replicas);
    deployment["spec"]["template"]["spec"]["schedulerName"] = json!("no-scheduler");
    deployment
}

/// A change of the template: another image.
fn image(tag: u64) -> Value {
    let containers = json!([{ "name": "main", "image": format!("example/main:{tag}") }]);
    json!({ "spec": { "template": { "spec": { "containers": containers } } } })
}

/// The objects of one scenario.
struct Objects {
    client: Client,
    deployments: Api<appsv1::Deployment>,
    sets: Api<appsv1::ReplicaSet>,
    pods: Api<corev1::Pod>,
}

impl Objects {
    fn of(case: &Case) -> Self {
        Self { client: case.client(), deployments: case.api(), sets: case.api(), pods: case.api() }
    }

    async fn create(&self, deployment: Value) -> Result<appsv1::Deployment> {
        let deployment: appsv1::Deployment = serde_json::from_value(deployment).context("this is no deployment")?;
        let created = self.deployments.create(&PostParams::default(), &deployment).await;
        created.with_context(|| format!("cannot create deployment {}", deployment.name_any()))
    }

    async fn patch(&self, name: &str, patch: &Value) -> Result<()> {
        self.deployments
            .patch(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .with_context(|| format!("cannot patch deployment {name} with {patch}"))?;
        Ok(())
    }

    /// Creates a deployment and waits until it is complete.
    async fn settle(&self, deployment: Value) -> Result<appsv1::Deployment> {
        let name = self.create(deployment).await?.name_any();
        self.complete(&name).await
    }

    /// Waits until all replicas are of the deployment's template and available, and its status reports them.
    async fn complete(&self, name: &str) -> Result<appsv1::Deployment> {
        eventually(&format!("deployment {name} to be complete"), async || {
            let deployment = self.deployments.get(name).await?;
            is_complete(&deployment)?;
            Ok(deployment)
        })
        .await
    }

    /// As [`Self::complete`], binding waiting pods to a node meanwhile.
    async fn complete_held(&self, name: &str) -> Result<appsv1::Deployment> {
        eventually(&format!("deployment {name} to be complete"), async || {
            for pod in self.pods.list(&ListParams::default().labels(&format!("app={name}"))).await? {
                if is_waiting(&pod) {
                    self.run(&pod).await?;
                }
            }
            let deployment = self.deployments.get(name).await?;
            is_complete(&deployment)?;
            Ok(deployment)
        })
        .await
    }

    /// Binds a pod to a node, where it runs at once. A pod that no longer exists is no error.
    async fn run(&self, pod: &corev1::Pod) -> Result<()> {
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": name },
            "target": { "apiVersion": "v1", "kind": "Node", "name": "node-1" },
        });
        let request = http::Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/binding"))
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&binding)?)?;
        match self.client.request::<Value>(request).await {
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
            bound => bound.map(drop).with_context(|| format!("cannot put pod {name} on a node")),
        }
    }

    /// The replica sets that the deployment controls, by revision.
    async fn sets_of(&self, deployment: &appsv1::Deployment) -> Result<Vec<appsv1::ReplicaSet>> {
        let sets = self.sets.list(&ListParams::default()).await.context("cannot list replica sets")?;
        let mut sets: Vec<_> = sets.items.into_iter().filter(|set| is_controlled_by(set, deployment)).collect();
        sets.sort_by_key(|set| (revision(set), set.name_any()));
        Ok(sets)
    }

    /// The pods labelled as this deployment's, terminating ones included.
    async fn pods_of(&self, name: &str) -> Result<Vec<corev1::Pod>> {
        let pods = self.pods.list(&ListParams::default().labels(&format!("app={name}"))).await;
        Ok(pods.with_context(|| format!("cannot list the pods of {name}"))?.items)
    }
}

/// Fails, naming the counters, unless the status reports as many as the spec asks for.
fn is_complete(deployment: &appsv1::Deployment) -> Result<()> {
    let asked = deployment.spec.replicas.unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    let counters = [status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas]
        .map(Option::unwrap_or_default);
    ensure!(counters == [asked; 4], "it asks for {asked}; all, updated, ready, available: {counters:?}");
    ensure!(status.observed_generation == deployment.metadata.generation, "it has not observed its last change");
    Ok(())
}

/// A condition as its status and reason; `None` where there is none.
fn condition<'a>(deployment: &'a appsv1::Deployment, kind: &str) -> Option<(&'a str, &'a str)> {
    let condition =
        deployment.status.as_ref()?.conditions.as_ref()?.iter().find(|it| it.type_.as_deref() == Some(kind))?;
    Some((condition.status.as_deref()?, condition.reason.as_deref().unwrap_or_default()))
}

/// Waits until a condition has a status and a reason.
async fn reports(objects: &Objects, name: &str, kind: &str, expected: (&str, &str)) -> Result<appsv1::Deployment> {
    eventually(&format!("deployment {name} to report {kind} {expected:?}"), async || {
        let deployment = objects.deployments.get(name).await?;
        let found = condition(&deployment, kind);
        ensure!(found == Some(expected), "it reports {found:?}");
        Ok(deployment)
    })
    .await
}

/// The revision of a deployment or a replica set; 0 where there is none.
fn revision(object: &impl ResourceExt) -> u64 {
    annotation(object, "deployment.kubernetes.io/revision").and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn annotation<'a>(object: &'a impl ResourceExt, name: &str) -> Option<&'a str> {
    object.annotations().get(name).map(String::as_str)
}

fn is_controlled_by(object: &impl ResourceExt, owner: &impl ResourceExt) -> bool {
    let uid = owner.uid();
    object.owner_references().iter().any(|it| it.controller == Some(true) && Some(&it.uid) == uid.as_ref())
}

fn is_ready(pod: &corev1::Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether a pod waits until the scenario binds it to a node.
fn is_waiting(pod: &corev1::Pod) -> bool {
    let spec = pod.spec.as_ref();
    pod.metadata.deletion_timestamp.is_none()
        && spec.is_some_and(|spec| spec.node_name.is_none() && spec.scheduler_name.as_deref() == Some("no-scheduler"))
}

/// The image of the first container.
fn image_of(template: Option<&corev1::PodTemplateSpec>) -> Option<&str> {
    template?.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// Uids, sorted.
fn uids(pods: &[corev1::Pod]) -> Vec<String> {
    let mut uids: Vec<String> = pods.iter().filter_map(ResourceExt::uid).collect();
    uids.sort_unstable();
    uids
}
