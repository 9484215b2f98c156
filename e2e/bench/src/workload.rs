//! The work: objects that are created, changed and waited for.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{TryStreamExt, stream};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::wait;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::manifests::{deployment, replica_set};
use super::probe::Probe;

/// How long a phase may take.
pub(super) const LIMIT: Duration = Duration::from_mins(15);
/// Requests in flight.
pub(super) const AT_ONCE: usize = 16;
const NAMESPACE: &str = "bench";

/// A client that creates, changes and awaits objects.
#[derive(Clone)]
pub(super) struct Workload {
    pub(super) client: Client,
    /// The kind of object that shows that the manager under test works.
    pub(super) probe: Probe,
}

/// A number of equal deployments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fleet {
    pub(super) deployments: usize,
    pub(super) pods: usize,
    /// Namespaces over which they are spread.
    pub(super) namespaces: usize,
}

impl Fleet {
    fn namespace(self, index: usize) -> String {
        format!("{NAMESPACE}-{}", index % self.namespaces)
    }
}

impl Workload {
    pub(super) async fn make_namespace(&self, name: &str) -> Result<()> {
        let mut namespace = corev1::Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let namespaces: Api<corev1::Namespace> = Api::all(self.client.clone());
        match namespaces.create(&PostParams::default(), &namespace).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            made => made.map(drop).with_context(|| format!("cannot make namespace {name}")),
        }
    }

    /// Creates a probe, and returns the path of what the manager writes.
    pub(super) async fn begin_probe(&self, name: &str) -> Result<String> {
        self.make_namespace("probe").await?;
        // Names of phases have spaces and commas: `with 5,000 pods`.
        let name = format!("probe-{}", name.replace(' ', "-").replace(',', ""));
        self.post(self.probe.path, &(self.probe.object)(&name)).await?;
        let path = format!("{}/{name}", self.probe.path);
        if let Some(status) = (self.probe.status)() {
            self.merge(&format!("{path}/status"), &json!({ "status": status })).await?;
        }
        Ok(self.probe.effect.map_or(path, |effect| effect(&name)))
    }

    /// Waits until the manager has acted on a probe.
    pub(super) async fn end_probe(&self, path: &str) -> Result<()> {
        wait::eventually_within("the probe to be reconciled", LIMIT, async || {
            let probe = self.get(path).await.context("cannot read the probe")?;
            ensure!((self.probe.is_done)(probe.as_ref()), "nothing has been done about {path}");
            Ok(())
        })
        .await
    }

    /// Creates replica sets of so many pods, which are not scheduled, and waits until their statuses report them.
    pub(super) async fn make_replica_sets(&self, range: Range<usize>, pods: usize) -> Result<()> {
        self.make_namespace(NAMESPACE).await?;
        let sets: Api<appsv1::ReplicaSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let total = range.end;
        stream::iter(range.map(anyhow::Ok))
            .try_for_each_concurrent(AT_ONCE, |index| {
                let sets = sets.clone();
                async move {
                    let name = format!("set-{index}");
                    let set = serde_json::from_value(replica_set(&name, pods)).context("a set from its JSON")?;
                    sets.create(&PostParams::default(), &set).await.with_context(|| format!("cannot make {name}"))?;
                    Ok(())
                }
            })
            .await?;
        self.await_pods(total * pods).await?;
        wait::eventually_within("the statuses to be written", LIMIT, async || {
            let list = sets.list(&ListParams::default()).await?;
            let replicas = i32::try_from(pods)?;
            let done = list.iter().filter(|set| set.status.as_ref().is_some_and(|it| it.replicas == replicas)).count();
            ensure!(done == total, "{done} of {total} are written");
            Ok(())
        })
        .await
    }

    /// Deletes all replica sets and waits until their pods are gone.
    pub(super) async fn delete_replica_sets(&self) -> Result<()> {
        let sets: Api<appsv1::ReplicaSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        sets.delete_collection(&DeleteParams::background(), &ListParams::default()).await.context("cannot delete")?;
        self.await_pods(0).await
    }

    /// Waits until there are so many pods.
    ///
    /// They are counted by a page of one and its remaining item count, which costs the API server little: it shares the
    /// cores with the manager.
    async fn await_pods(&self, expected: usize) -> Result<()> {
        let pods: Api<corev1::Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        wait::eventually_within("the pods", LIMIT, async || {
            let page = pods.list_metadata(&ListParams::default().limit(1)).await?;
            let behind = usize::try_from(page.metadata.remaining_item_count.unwrap_or(0))?;
            let there = page.items.len() + behind;
            ensure!(there == expected, "{there} of {expected} are there");
            Ok(())
        })
        .await
    }

    /// Creates deployments and waits until all their pods are available.
    pub(super) async fn make_deployments(&self, fleet: Fleet) -> Result<()> {
        for index in 0..fleet.namespaces {
            self.make_namespace(&fleet.namespace(index)).await?;
        }
        self.each(fleet, async |api, name| {
            let made = serde_json::from_value(deployment(name, fleet.pods)).context("a deployment from its JSON")?;
            api.create(&PostParams::default(), &made).await.map(drop).with_context(|| format!("cannot make {name}"))
        })
        .await?;
        self.await_deployments(fleet, fleet.pods).await
    }

    /// Gives all deployments another image and waits until all pods have it.
    pub(super) async fn roll(&self, fleet: Fleet, image: &str) -> Result<()> {
        let containers = json!([{ "name": "main", "image": image }]);
        self.patch(fleet, json!({ "spec": { "template": { "spec": { "containers": containers } } } })).await?;
        self.await_deployments(fleet, fleet.pods).await
    }

    /// Scales all deployments and waits until they are complete.
    pub(super) async fn scale(&self, fleet: Fleet, pods: usize) -> Result<()> {
        self.patch(fleet, json!({ "spec": { "replicas": pods } })).await?;
        self.await_deployments(fleet, pods).await
    }

    /// Changes an annotation of one deployment after the other, at an interval.
    pub(super) async fn churn(&self, fleet: Fleet, every: Duration, changes: usize) -> Result<()> {
        let mut ticks = tokio::time::interval(every);
        for change in 0..changes {
            ticks.tick().await;
            let index = change % fleet.deployments;
            let api: Api<appsv1::Deployment> = Api::namespaced(self.client.clone(), &fleet.namespace(index));
            let patch = json!({ "metadata": { "annotations": { "bench/change": change.to_string() } } });
            api.patch(&format!("web-{index}"), &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
        self.await_deployments(fleet, fleet.pods).await
    }

    async fn patch(&self, fleet: Fleet, patch: Value) -> Result<()> {
        self.each(fleet, async |api, name| {
            let patched = api.patch(name, &PatchParams::default(), &Patch::Strategic(&patch)).await;
            patched.map(drop).with_context(|| format!("cannot patch {name}"))
        })
        .await
    }

    async fn each(&self, fleet: Fleet, act: impl AsyncFn(&Api<appsv1::Deployment>, &str) -> Result<()>) -> Result<()> {
        let act = &act;
        stream::iter((0..fleet.deployments).map(anyhow::Ok))
            .try_for_each_concurrent(AT_ONCE, |index| async move {
                let api: Api<appsv1::Deployment> = Api::namespaced(self.client.clone(), &fleet.namespace(index));
                act(&api, &format!("web-{index}")).await
            })
            .await
    }

    async fn await_deployments(&self, fleet: Fleet, pods: usize) -> Result<()> {
        let all: Api<appsv1::Deployment> = Api::all(self.client.clone());
        let pods = i32::try_from(pods)?;
        let is_done = |deployment: &&appsv1::Deployment| {
            let observed = deployment.status.as_ref().and_then(|status| status.observed_generation);
            deployment.status.as_ref().is_some_and(|status| {
                observed == deployment.metadata.generation
                    && [status.replicas, status.updated_replicas, status.available_replicas]
                        .iter()
                        .all(|count| count.unwrap_or(0) == pods)
            })
        };
        wait::eventually_within("the deployments to be complete", LIMIT, async || {
            let list = all.list(&ListParams::default()).await?;
            let done = list.iter().filter(is_done).count();
            if done < fleet.deployments {
                // A large list costs the API server CPU time, and it shares the cores with the manager.
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            ensure!(done == fleet.deployments, "{done} of {} are", fleet.deployments);
            Ok(())
        })
        .await
    }
}
