//! Two API servers over one etcd, one of which loses its connection to etcd but still responds.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::balancer::{Balancer, kubeconfig_at};
use kcm_e2e_harness::control_plane::{ControlPlane, Options, connect};
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::scenario::{LIMITS, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually_within;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

kcm_e2e_harness::scenarios! {
    Setup::of("").ours().exclusively().in_full_runs() => {
        "host/two_api_servers_one_sick": |_| one_sick(),
    }
}

/// Time within which a manager acts while one of two API servers is sick: the renew deadline, the rest of the lease, and a
/// start of the loops on a busy machine.
const ACTS: Duration = Duration::from_secs(45);

/// Longer than an API server needs to start.
const START: Duration = Duration::from_mins(2);

/// Number of times that the second server falls sick.
const ROUNDS: i32 = 3;

/// All connections of both managers are on the server that falls sick. They leave it, and what changes is acted on, with no
/// surplus pod and no exit but for a lost lease.
async fn one_sick() -> Result<()> {
    let plane = ControlPlane::start(Options { kwok: true, ..Options::default() }).await?;
    let (healthy, etcd) = plane.ports()?;
    let to_etcd = Balancer::start(&[etcd]).await?;
    let (mut second, sick) = plane.start_api_server_over(to_etcd.port())?;
    let balancer = Balancer::start(&[sick]).await?;
    let kubeconfig = balancer.kubeconfig(&plane.kubeconfig_for("managers", &["system:masters"])?)?;
    let through = connect(&kubeconfig).await?;
    is_ready(&through, true).await?;

    let mut managers = vec![start(&plane, "first", &kubeconfig)?, start(&plane, "second", &kubeconfig)?];
    let client = plane.client();
    create_set(&client).await?;
    has_pods(&client, 1).await?;
    for round in 1..=ROUNDS {
        // Connections that exist stay where they are; new ones reach either server.
        balancer.balance(&[sick, healthy]);
        to_etcd.cut();
        is_ready(&connect_to(&plane, sick).await?, false).await?;
        scale(&client, round + 1).await?;
        has_pods(&client, usize::try_from(round + 1)?).await.with_context(|| format!("round {round}"))?;
        second.must_run()?;
        to_etcd.balance(&[etcd]);
        is_ready(&connect_to(&plane, sick).await?, true).await?;
        // Everything moves back to the second server, for the next round.
        balancer.cut();
        balancer.balance(&[sick]);
        for manager in &mut managers {
            if let Some(status) = manager.exited()? {
                ensure!(status.code() == Some(3), "it ended with {status}:\n{}", manager.printed()?);
                manager.start_again()?;
            }
        }
        scale(&client, round).await?;
        has_pods(&client, usize::try_from(round)?).await.with_context(|| format!("after round {round}"))?;
    }
    Ok(())
}

fn start(plane: &ControlPlane, name: &str, kubeconfig: &std::path::Path) -> Result<Process> {
    let mut args = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--controllers=replicaset".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    args.extend(LIMITS.map(str::to_owned));
    Process::start(name, &Subject::Ours.program()?, &args, plane.logs())
}

/// A client of the server at that port alone.
async fn connect_to(plane: &ControlPlane, port: u16) -> Result<Client> {
    connect(&kubeconfig_at(&plane.kubeconfig_for("reader", &["system:masters"])?, port)?).await
}

/// Waits until the server says that it is ready, or that it is not.
async fn is_ready(client: &Client, expected: bool) -> Result<()> {
    eventually_within("the API server to change its readiness", START, async || {
        let request = http::Request::get("/readyz").body(Vec::new())?;
        let ready = client.request_text(request).await.is_ok();
        ensure!(ready == expected, "its readiness is {ready}");
        Ok(())
    })
    .await
}

async fn create_set(client: &Client) -> Result<()> {
    let set: appsv1::ReplicaSet = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "schedulerName": "no-scheduler", "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    }))?;
    let sets: Api<appsv1::ReplicaSet> = Api::default_namespaced(client.clone());
    sets.create(&PostParams::default(), &set).await.context("cannot create the set")?;
    Ok(())
}

async fn scale(client: &Client, replicas: i32) -> Result<()> {
    let sets: Api<appsv1::ReplicaSet> = Api::default_namespaced(client.clone());
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    sets.patch("web", &PatchParams::default(), &patch).await.context("cannot scale the set")?;
    Ok(())
}

/// Waits for that many pods, of which there are never more.
async fn has_pods(client: &Client, count: usize) -> Result<()> {
    let pods: Api<corev1::Pod> = Api::default_namespaced(client.clone());
    eventually_within(&format!("{count} pods"), ACTS, async || {
        let found = pods.list(&ListParams::default()).await?.items;
        let active = found.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count();
        ensure!(active == count, "there are {active}");
        Ok(())
    })
    .await
}
