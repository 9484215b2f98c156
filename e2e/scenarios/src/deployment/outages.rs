//! The API server, or etcd behind it, is killed or hangs amid rollouts, which go on as soon as it is back.
//!
//! The scenario itself makes pods ready, and none has a node: scheduler and kwok would have to recover as well, and wait
//! for up to half a minute.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::control_plane::{Component, free_ports};
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{PATIENCE, eventually, eventually_within};
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::serving::{Credential, Port};
use super::{Objects, held, image, is_complete, is_ready};

const DEPLOYMENTS: usize = 20;
const REPLICAS: usize = 3;

/// Three outages within five minutes: a back-off that outlives an outage shows in the last.
const OUTAGES: u64 = 3;

/// How a component fails.
#[derive(Clone, Copy)]
enum Outage {
    /// It is killed, and started again a second later.
    Killed,
    /// It answers nothing for so long, and keeps its connections.
    Hangs(Duration),
}

impl Outage {
    /// Waits for the end of the outage, when the API server is ready again.
    async fn pass(self, case: &Case, component: Component) -> Result<()> {
        let plane = case.plane();
        match self {
            Self::Killed => {
                plane.kill(component)?;
                tokio::time::sleep(Duration::from_secs(1)).await;
                plane.start_again(component)?;
            }
            Self::Hangs(time) => {
                plane.pause(component)?;
                tokio::time::sleep(time).await;
                plane.resume(component)?;
            }
        }
        plane.is_ready().await
    }
}

/// How much longer the rollouts may take through an outage than without one, from the moment at which the API server is
/// ready again. The peer, whose informers back off each by itself, was seen to take up to 14 s longer, and is given as long
/// as it needs.
const fn margin(subject: Subject) -> Duration {
    match subject {
        Subject::Ours => Duration::from_secs(5),
        Subject::Peer => PATIENCE,
    }
}

/// How long after an outage the caches of our manager may take to hold a change that is made when the API server is ready
/// again.
const LIVE_WITHIN: Duration = Duration::from_secs(2);

/// How long after an outage our manager may take to act on a new object, from the moment at which the API server is ready
/// again.
const ACTS_WITHIN: Duration = Duration::from_secs(3);

/// How many times longer the rollouts themselves may take: caches of the API server are cold after it.
const SLOWER: u32 = 3;

/// Killed three times amid the rollouts of twenty deployments, the API server comes back to a manager that goes on.
pub(super) async fn of_the_api_server(case: Case) -> Result<()> {
    roll_through(&case, Component::ApiServer, Outage::Killed, OUTAGES).await
}

/// Killed amid the rollouts of twenty deployments, etcd comes back to a manager that goes on.
pub(super) async fn of_etcd(case: Case) -> Result<()> {
    roll_through(&case, Component::Etcd, Outage::Killed, 1).await
}

/// For a minute amid the rollouts of twenty deployments, the API server does not answer: its connections are given up
/// meanwhile.
pub(super) async fn hang_of_the_api_server(case: Case) -> Result<()> {
    roll_through(&case, Component::ApiServer, Outage::Hangs(Duration::from_mins(1)), 1).await
}

/// For ten seconds amid the rollouts of twenty deployments, etcd does not answer: requests wait for it.
pub(super) async fn hang_of_etcd(case: Case) -> Result<()> {
    roll_through(&case, Component::Etcd, Outage::Hangs(Duration::from_secs(10)), 1).await
}

async fn roll_through(case: &Case, component: Component, outage: Outage, outages: u64) -> Result<()> {
    let objects = Objects::of(case);
    let [port] = free_ports()?;
    let flags = [
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--authorization-always-allow-paths={CACHES}"),
    ];
    let (flags, port) = (flags.each_ref().map(String::as_str), Port(port));
    let mut manager = case.start(case.subject(), if case.subject() == Subject::Ours { &flags } else { &[] })?;
    try_join_all((0..DEPLOYMENTS).map(|number| objects.create(held(&name(number), REPLICAS)))).await?;
    all_are_complete(&objects).await?;

    let begun = Instant::now();
    roll(&objects, 2).await?;
    all_are_complete(&objects).await?;
    let undisturbed = begun.elapsed();

    let bound = undisturbed * SLOWER + margin(case.subject());
    for number in 1..=outages {
        roll(&objects, 2 + number).await?;
        outage.pass(case, component).await?;
        let back = Instant::now();
        if case.subject() == Subject::Ours {
            let name = format!("new-{number}");
            let checks =
                async { tokio::try_join!(caches_are_live(&objects, &port, &name), acts_on_a_new_set(&objects, &name)) };
            checks.await.with_context(|| format!("after outage {number} the manager did not go on in time"))?;
        }
        all_are_complete(&objects).await?;
        let took = back.elapsed();
        ensure!(
            took <= bound,
            "after outage {number} all had rolled in {took:?}, which is more than {bound:?}; undisturbed it took \
             {undisturbed:?}"
        );
    }
    manager.must_run()
}

/// What shows the caches of our manager.
const CACHES: &str = "/debug/caches";

/// Changes an object of each kind that the manager caches, and waits until the caches hold the changes.
async fn caches_are_live(objects: &Objects, port: &Port, name: &str) -> Result<()> {
    let touch = Patch::Merge(json!({ "metadata": { "annotations": { "touched": name } } }));
    let params = PatchParams::default();
    let deployment = objects.deployments.patch(&self::name(0), &params, &touch).await?.resource_version();
    let sets = objects.sets.list(&ListParams::default().limit(1)).await.context("cannot list replica sets")?;
    let set = sets.items.first().context("there is no replica set")?.name_any();
    let set = objects.sets.patch(&set, &params, &touch).await?.resource_version();
    let pod = json!({
        "metadata": { "name": format!("pod-{name}") },
        "spec": held(name, 1)["spec"]["template"]["spec"],
    });
    let pod: corev1::Pod = serde_json::from_value(pod).context("this is no pod")?;
    let pod =
        objects.pods.create(&PostParams::default(), &pod).await.context("cannot create a pod")?.resource_version();
    let written = [("Deployment", deployment), ("ReplicaSet", set), ("Pod", pod)];
    eventually_within("the caches to hold the changes", LIVE_WITHIN, async || {
        let (code, body) = port.get(CACHES, &Credential::default()).await?;
        ensure!(code == 200, "{code}: {body}");
        let body: Value = serde_json::from_str(&body).context("the caches are shown as JSON")?;
        let caches = body["caches"].as_array().context("there are no caches")?;
        for (kind, version) in &written {
            let version: u64 = version.as_deref().unwrap_or_default().parse().context("the version is no number")?;
            let mut of_kind = caches.iter().filter(|cache| cache["kind"] == *kind).peekable();
            ensure!(of_kind.peek().is_some(), "no cache of {kind}: {body}");
            let is_behind = |cache: &&Value| {
                cache["resourceVersion"]
                    .as_str()
                    .and_then(|seen| seen.parse::<u64>().ok())
                    .is_none_or(|seen| seen < version)
            };
            let behind = of_kind.find(is_behind);
            ensure!(behind.is_none(), "{version} is not in {behind:?}");
        }
        Ok(())
    })
    .await
}

/// Creates a replica set, whose pod the manager creates in time.
async fn acts_on_a_new_set(objects: &Objects, name: &str) -> Result<()> {
    let mut set = held(name, 1);
    set["kind"] = json!("ReplicaSet");
    let set: appsv1::ReplicaSet = serde_json::from_value(set).context("this is no replica set")?;
    objects.sets.create(&PostParams::default(), &set).await.context("cannot create the replica set")?;
    let of_set = ListParams::default().labels(&format!("app={name}"));
    eventually_within("the pod of a new replica set", ACTS_WITHIN, async || {
        let pods = objects.pods.list(&of_set).await.context("cannot list pods")?;
        ensure!(!pods.items.is_empty(), "there is no pod");
        Ok(())
    })
    .await
}

fn name(number: usize) -> String {
    format!("web-{number}")
}

/// Changes the template of all deployments.
async fn roll(objects: &Objects, tag: u64) -> Result<()> {
    let image = image(tag);
    try_join_all((0..DEPLOYMENTS).map(|number| {
        let image = &image;
        async move { objects.patch(&name(number), image).await }
    }))
    .await?;
    Ok(())
}

async fn all_are_complete(objects: &Objects) -> Result<()> {
    eventually("all deployments to be complete", async || {
        let pods = objects.pods.list(&ListParams::default()).await.context("cannot list pods")?;
        try_join_all(pods.iter().filter(|pod| !is_ready(pod)).map(|pod| make_ready(objects, pod))).await?;
        let deployments = objects.deployments.list(&ListParams::default()).await.context("cannot list deployments")?;
        ensure!(deployments.items.len() == DEPLOYMENTS, "there are {}", deployments.items.len());
        deployments.items.iter().try_for_each(is_complete)
    })
    .await
}

/// Reports a pod as ready, as its kubelet would. A pod that no longer exists is no error.
async fn make_ready(objects: &Objects, pod: &corev1::Pod) -> Result<()> {
    let name = pod.name_any();
    let status = json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } });
    match objects.pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(&status)).await {
        Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
        patched => patched.map(drop).with_context(|| format!("cannot make pod {name} ready")),
    }
}
