//! Evictions that keep to pod disruption budgets. A script compares the status of budgets.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use futures::{TryStreamExt, pin_mut};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::policy::v1 as policyv1;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{PATIENCE, eventually};
use kube::ResourceExt;
use kube::api::{Api, EvictParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

kcm_e2e_harness::scenarios! {
    Setup::of("disruption,replicaset") => {
        "disruption/evictions_keep_to_a_budget": evictions_keep_to_a_budget,
    }
    Setup::of("disruption,replicaset").with_own_managers() => {
        // It cordons a node, on which other scenarios need pods.
        "disruption/a_drain_keeps_to_a_budget": a_drain_keeps_to_a_budget,
    }
    Setup::of("disruption,replicaset").ours().with_own_managers() => {
        "disruption/is_handed_over_amid_evictions": is_handed_over,
    }
}

/// The pods whose eviction a budget limits.
const REPLICAS: i32 = 5;

/// The objects of a scenario.
struct Objects {
    case: Case,
    pods: Api<corev1::Pod>,
    sets: Api<appsv1::ReplicaSet>,
    budgets: Api<policyv1::PodDisruptionBudget>,
}

impl Objects {
    fn of(case: Case) -> Self {
        Self { pods: case.api(), sets: case.api(), budgets: case.api(), case }
    }

    /// Creates the replica set `web`.
    async fn create_set(&self) -> Result<()> {
        let set = json!({
            "metadata": { "name": "web" },
            "spec": {
                "replicas": REPLICAS,
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{ "name": "main", "image": "example/main:1" }],
                    },
                },
            },
        });
        self.sets.create(&PostParams::default(), &serde_json::from_value(set)?).await?;
        Ok(())
    }

    async fn pods(&self) -> Result<Vec<corev1::Pod>> {
        Ok(self.pods.list(&ListParams::default().labels("app=web")).await?.items)
    }

    /// Waits until a budget allows so many disruptions of so many healthy pods, where so many have to be healthy and so
    /// many are expected.
    async fn allows(&self, name: &str, expected: [i32; 4]) -> Result<()> {
        eventually(&format!("the budget {name} has {expected:?}"), async || {
            let budget = self.budgets.get(name).await?;
            let status = budget.status.context("it has no status")?;
            let numbers =
                [status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods]
                    .map(Option::unwrap_or_default);
            ensure!(numbers == expected, "it has {numbers:?}");
            ensure!(status.observed_generation == budget.metadata.generation, "an old generation was observed");
            let condition = status.conditions.into_iter().flatten().find(|one| one.type_ == "DisruptionAllowed");
            let condition = condition.context("it has no condition")?;
            let (holds, reason) =
                if expected[0] > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
            ensure!((&*condition.status, &*condition.reason) == (holds, reason), "{condition:?}");
            ensure!(condition.observed_generation == budget.metadata.generation, "{condition:?}");
            Ok(())
        })
        .await
    }

    /// Creates the budget of the replica set, which lets one pod be unavailable.
    async fn create_budget(&self) -> Result<()> {
        Kubectl::of(&self.case).run("create poddisruptionbudget web --selector=app=web --max-unavailable=1").await?;
        self.allows("web", [1, REPLICAS, REPLICAS - 1, REPLICAS]).await
    }

    /// Waits for `act`, and fails as soon as fewer pods are ready than the budget wants.
    async fn while_enough_are_ready(&self, act: impl Future<Output = Result<()>>) -> Result<()> {
        let listed = self.pods.list(&ListParams::default().labels("app=web")).await?;
        let mut healthy: BTreeMap<String, bool> =
            listed.items.iter().map(|pod| (pod.name_any(), is_healthy(pod))).collect();
        let version = listed.metadata.resource_version.context("a list has a version")?;
        let params = WatchParams::default().labels("app=web");
        let watch = self.pods.watch(&params, &version).await?;
        pin_mut!(watch);
        let count = async {
            while let Some(event) = watch.try_next().await? {
                match event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                        healthy.insert(pod.name_any(), is_healthy(&pod));
                    }
                    WatchEvent::Deleted(pod) => {
                        healthy.remove(&pod.name_any());
                    }
                    WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(status) => anyhow::bail!("the watch failed: {status:?}"),
                }
                let ready = healthy.values().filter(|healthy| **healthy).count();
                ensure!(ready + 1 >= usize::try_from(REPLICAS)?, "only {ready} pods are ready");
            }
            anyhow::bail!("the watch ended first")
        };
        let acted = async {
            tokio::select! {
                ended = act => ended,
                ended = count => ended,
            }
        };
        tokio::time::timeout(PATIENCE, acted).await.map_err(|_| anyhow::anyhow!("not all pods were evicted in time"))?
    }

    /// Evicts a pod; returns whether its budget allows that.
    async fn evict(&self, name: &str) -> Result<bool> {
        match self.pods.evict(name, &EvictParams::default()).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 429 => Ok(false),
            Err(error) => Err(error).with_context(|| format!("cannot evict {name}")),
        }
    }

    /// Evicts all pods, each as soon as the budget allows it, and waits until they are replaced. `evicted` is called after
    /// each eviction.
    async fn evict_all(&self, mut evicted: impl AsyncFnMut() -> Result<()>) -> Result<()> {
        let mut left: Vec<String> = self.pods().await?.iter().map(ResourceExt::name_any).collect();
        while !left.is_empty() {
            let mut refused = Vec::new();
            for name in std::mem::take(&mut left) {
                if self.evict(&name).await? {
                    evicted().await?;
                } else {
                    refused.push(name);
                }
            }
            left = refused;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        self.allows("web", [1, REPLICAS, REPLICAS - 1, REPLICAS]).await
    }
}

fn is_healthy(pod: &corev1::Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_ready = conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    is_ready && pod.metadata.deletion_timestamp.is_none()
}

/// All pods of a replica set are evicted one after the other. At no time fewer are ready than the budget wants, which a
/// watch counts.
async fn evictions_keep_to_a_budget(case: Case) -> Result<()> {
    let objects = Objects::of(case);
    objects.create_set().await?;
    objects.create_budget().await?;
    objects.while_enough_are_ready(objects.evict_all(async || Ok(()))).await
}

/// The same, and after each eviction, when the budget allows no other, another manager takes over.
async fn is_handed_over(case: Case) -> Result<()> {
    let objects = Objects::of(case);
    let mut subjects = [Subject::Ours, Subject::Peer].into_iter().cycle();
    let mut start = || objects.case.start(subjects.next().unwrap_or(Subject::Ours), &[]);
    let mut manager = start()?;
    objects.create_set().await?;
    objects.create_budget().await?;
    let hand_over = async || {
        manager.terminate()?;
        manager.wait(PATIENCE).await?;
        manager = start()?;
        Ok(())
    };
    objects.while_enough_are_ready(objects.evict_all(hand_over)).await?;
    manager.must_run()
}

/// `kubectl drain` empties a node. At no time fewer pods are ready than the budget wants, which a watch counts.
async fn a_drain_keeps_to_a_budget(case: Case) -> Result<()> {
    let mut manager = case.start(case.subject(), &[])?;
    let objects = Objects::of(case);
    let kubectl = Kubectl::of(&objects.case);
    objects.create_set().await?;
    objects.create_budget().await?;
    let mut nodes: BTreeMap<String, usize> = BTreeMap::new();
    for pod in objects.pods().await? {
        *nodes.entry(pod.spec.and_then(|spec| spec.node_name).context("it has a node")?).or_default() += 1;
    }
    let (node, _) = nodes.into_iter().max_by_key(|(_, count)| *count).context("there are pods")?;
    let drain = async {
        kubectl.run(&format!("drain {node} --pod-selector=app=web --timeout=50s")).await?;
        let left = objects
            .pods()
            .await?
            .into_iter()
            .filter(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(&node));
        ensure!(left.count() == 0, "pods are left on {node}");
        objects.allows("web", [1, REPLICAS, REPLICAS - 1, REPLICAS]).await
    };
    let drained = objects.while_enough_are_ready(drain).await;
    kubectl.run(&format!("uncordon {node}")).await?;
    drained?;
    manager.must_run()
}
