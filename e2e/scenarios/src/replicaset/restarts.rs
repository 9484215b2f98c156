//! The manager is killed, or replaced by another, without any effect on the pods.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::TryStreamExt;
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::random::Random;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::throughout;
use kube::ResourceExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};

use super::{Objects, is_active, is_controlled_by, replica_set};

const MANY: usize = 200;

/// Killed again and again while it creates 200 pods, the manager never creates one too many.
pub(super) async fn survives_kills(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let set = objects.create_set(replica_set("web", MANY)).await?;
    let start = objects.pods.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    let watch = never_more(&objects.pods, &set, &start);
    let work = kill_until_done(&case, &objects, &set);
    tokio::select! {
        broken = watch => broken,
        done = work => done,
    }
}

async fn kill_until_done(case: &Case, objects: &Objects, set: &appsv1::ReplicaSet) -> Result<()> {
    const KILLS: usize = 25;
    let mut random = Random::from_environment()?;
    let seed = random.seed();
    // Slow enough that the work spans several lives, one of which may end between a request and
    // its answer.
    let limits = ["--kube-api-qps=60", "--kube-api-burst=20"];
    let mut deaths = 0;
    while deaths < KILLS && objects.active(set).await?.len() < MANY {
        let mut manager = case.start(case.subject(), &limits)?;
        // The shortest lives end before the caches are filled, the longest amid the work.
        tokio::time::sleep(Duration::from_millis(random.between(20, 900))).await;
        manager.must_run()?;
        manager.kill9()?;
        deaths += 1;
    }
    ensure!(deaths >= 3, "it was done after {deaths} deaths: the scenario shows nothing (seed {seed})");
    let mut manager = case.start(case.subject(), &[])?;
    let settled = async {
        objects.settled("web").await?;
        throughout("exactly 200", Duration::from_secs(3), async || {
            let owned = objects.owned(set).await?;
            ensure!(owned.len() == MANY && owned.iter().all(is_active), "{} pods", owned.len());
            Ok(())
        })
        .await?;
        manager.must_run()
    };
    settled.await.with_context(|| format!("after {deaths} deaths (seed {seed}; repeat with E2E_SEED={seed})"))
}

/// Follows every change to the pods, and ends only when there are too many.
async fn never_more(pods: &Api<corev1::Pod>, set: &appsv1::ReplicaSet, from: &str) -> Result<()> {
    let mut version = from.to_owned();
    let mut alive: HashSet<String> = HashSet::new();
    loop {
        let changes = pods.watch(&WatchParams::default(), &version).await.context("cannot watch pods")?;
        let mut changes = Box::pin(changes);
        while let Some(change) = changes.try_next().await.context("the watch of pods broke")? {
            let (pod, gone) = match change {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
                WatchEvent::Deleted(pod) => (pod, true),
                WatchEvent::Bookmark(bookmark) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => bail!("the watch of pods failed: {status:?}"),
            };
            version = pod.resource_version().unwrap_or_default();
            if !gone && is_active(&pod) && is_controlled_by(&pod, set) {
                alive.insert(pod.name_any());
            } else {
                alive.remove(&pod.name_any());
            }
            ensure!(alive.len() <= MANY, "there were {} pods, of {MANY} replicas", alive.len());
        }
    }
}
