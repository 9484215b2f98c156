//! The manager is killed, or replaced by another, without any effect on the pods.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::TryStreamExt;
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::random::Random;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{eventually, throughout};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, WatchEvent, WatchParams};

use super::{Objects, is_active, is_controlled_by, names, replica_set};

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

/// From the peer to ours and back: no pod is created or deleted, and objects at rest are not written.
pub(super) async fn takes_over_and_gives_back(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let mut manager = case.start(Subject::Peer, &[])?;
    objects.settle(replica_set("probe", 1)).await?;
    let (set, pods) = objects.settle(replica_set("web", 3)).await?;
    for next in [Subject::Ours, Subject::Peer] {
        // One ends before the next begins, as leader election would have it.
        manager.terminate()?;
        manager.wait(kcm_e2e_harness::wait::PATIENCE).await?;
        manager = case.start(next, &[])?;
        acts(&objects).await.with_context(|| format!("{next} is to have taken over"))?;
        let (set_now, pods_now) = objects.settled("web").await?;
        ensure!(names(&pods_now) == names(&pods), "{next} exchanged pods: {:?}", names(&pods_now));
        ensure!(set_now.resource_version() == set.resource_version(), "{next} wrote a set at rest");
        for (now, before) in sorted(&pods_now).iter().zip(sorted(&pods)) {
            ensure!(now.resource_version() == before.resource_version(), "{next} wrote pod {}", now.name_any());
        }
    }
    Ok(())
}

fn sorted(pods: &[corev1::Pod]) -> Vec<&corev1::Pod> {
    let mut pods: Vec<&corev1::Pod> = pods.iter().collect();
    pods.sort_unstable_by_key(|pod| pod.name_any());
    pods
}

/// Waits until the manager that runs replaces a pod.
async fn acts(objects: &Objects) -> Result<()> {
    let (probe, pods) = objects.settled("probe").await?;
    let [pod] = pods.as_slice() else { bail!("the probe has {} pods", pods.len()) };
    objects.pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
    eventually("the probe's pod to be replaced", async || {
        let now = objects.active(&probe).await?;
        ensure!(now.len() == 1 && now[0].name_any() != pod.name_any(), "{:?}", names(&now));
        Ok(())
    })
    .await
}
