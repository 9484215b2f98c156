//! The manager is killed again and again amid rollouts, which stay within their bounds.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::random::Random;
use kcm_e2e_harness::scenario::Case;
use kube::ResourceExt;
use serde_json::json;

use super::watch::{follow, now};
use super::{Objects, deployment, image, is_complete, is_ready};

const KILLS: usize = 50;
const REPLICAS: i32 = 10;
/// 30 % of ten, rounded up.
const SURGE: i32 = 3;
/// 25 % of ten, rounded down.
const UNAVAILABLE: usize = 2;

/// Killed fifty times amid rollouts of ten pods, the manager never asks for more than the surge allows
/// and never leaves fewer available than it must.
pub(super) async fn survives_kills(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let mut web = deployment("web", usize::try_from(REPLICAS)?);
    // Every set must exist at the end, to be counted.
    web["spec"]["revisionHistoryLimit"] = json!(KILLS);
    web["spec"]["strategy"] = json!({ "rollingUpdate": { "maxSurge": "30%", "maxUnavailable": "25%" } });
    {
        let _manager = case.start(case.subject(), &[])?;
        objects.settle(web).await?;
    }
    let (sets, pods) = (now(&objects.sets).await?, now(&objects.pods).await?);
    let bounds = Bounds::new(&objects).await?;
    let mut random = Random::from_environment()?;
    let seed = random.seed();
    let held = tokio::select! {
        broken = follow(&objects.sets, sets, |set, gone| bounds.see_set(set, gone)) => broken,
        broken = follow(&objects.pods, pods, |pod, gone| bounds.see_pod(pod, gone)) => broken,
        done = roll_and_die(&case, &objects, &mut random) => done,
    };
    held.with_context(|| format!("repeat with E2E_SEED={seed}"))
}

async fn roll_and_die(case: &Case, objects: &Objects, random: &mut Random) -> Result<()> {
    // Slow enough that a rollout spans several lives.
    let limits = ["--kube-api-qps=25", "--kube-api-burst=10"];
    let (mut tag, mut deaths) = (1, 0);
    while deaths < KILLS {
        if is_complete(&objects.deployments.get("web").await?).is_ok() {
            tag += 1;
            objects.patch("web", &image(tag)).await?;
        }
        let mut manager = case.start(case.subject(), &limits)?;
        // The shortest lives end before the caches are filled, the longest amid the work.
        tokio::time::sleep(Duration::from_millis(random.between(20, 1000))).await;
        manager.must_run()?;
        manager.kill9()?;
        // A kill after the rollout is complete proves nothing.
        deaths += usize::from(is_complete(&objects.deployments.get("web").await?).is_err());
    }
    ensure!(tag >= 3, "only {} rollouts were begun in {KILLS} lives: the scenario shows nothing", tag - 1);
    let mut manager = case.start(case.subject(), &[])?;
    let web = objects.complete("web").await?;
    let sets = objects.sets_of(&web).await?.len();
    ensure!(sets == usize::try_from(tag)?, "{sets} replica sets for {tag} templates");
    ensure!(super::revision(&web) == tag, "the revision of {tag} templates is {}", super::revision(&web));
    manager.must_run()
}

/// The bounds of the strategy, checked against every change.
struct Bounds {
    asked: RefCell<BTreeMap<String, i32>>,
    available: RefCell<BTreeSet<String>>,
}

impl Bounds {
    async fn new(objects: &Objects) -> Result<Self> {
        let web = objects.deployments.get("web").await?;
        let sets = objects.sets_of(&web).await?;
        let asked = sets.iter().map(|set| (set.name_any(), asked(set))).collect();
        let pods = objects.pods_of("web").await?;
        let available = pods.iter().filter(|pod| is_available(pod)).map(ResourceExt::name_any).collect();
        Ok(Self { asked: RefCell::new(asked), available: RefCell::new(available) })
    }

    /// The bound is on the replicas that the sets ask for: surplus pods may take a moment to go.
    fn see_set(&self, set: &appsv1::ReplicaSet, gone: bool) -> Result<()> {
        let mut sets = self.asked.borrow_mut();
        sets.insert(set.name_any(), if gone { 0 } else { asked(set) });
        let sum: i32 = sets.values().sum();
        ensure!(sum <= REPLICAS + SURGE, "the sets ask for {sum} pods: {sets:?}");
        Ok(())
    }

    fn see_pod(&self, pod: &corev1::Pod, gone: bool) -> Result<()> {
        let mut available = self.available.borrow_mut();
        if !gone && is_available(pod) {
            available.insert(pod.name_any());
        } else {
            available.remove(&pod.name_any());
        }
        let least = usize::try_from(REPLICAS)? - UNAVAILABLE;
        ensure!(available.len() >= least, "{} pods are available, not {least}", available.len());
        Ok(())
    }
}

fn asked(set: &appsv1::ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

fn is_available(pod: &corev1::Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && is_ready(pod)
}
