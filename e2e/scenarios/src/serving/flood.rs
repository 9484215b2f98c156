//! Ten thousand connections of clients that send nothing, and then some that finish the handshake first, while the manager renews its lease and rolls out a deployment.

use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use kcm_e2e_harness::clock;
use kcm_e2e_harness::control_plane::free_ports;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::{eventually, throughout};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::client::TlsStream;

use super::credentials::{Credential, Port};
use super::tls_client::TlsClient;

/// How many connections are opened in all.
const CONNECTIONS: usize = 10_000;

/// How many of them the client keeps: many more than the manager does, which closes the oldest.
const KEPT: usize = 1_000;

/// How many connections finish the handshake of TLS, which is what an idle one costs most: more than the manager keeps.
const FINISHED: usize = 400;

const REPLICAS: i32 = 10;

/// The renewals of the lease come every two seconds. One may fall out.
const MOST_BETWEEN_RENEWALS: Duration = Duration::from_secs(5);

/// What connections may hold in all, as docs/serving.md states.
const MEMORY: u64 = 15 << 20;

/// During the flood, no key waits a second for its worker, the lease is renewed in time by its holder, rollouts end, a
/// probe succeeds, and the memory stays within its bound.
pub(super) async fn is_withstood(case: Case) -> Result<()> {
    let [port] = free_ports()?;
    let arguments = [
        "--leader-elect=true".to_owned(),
        format!("--leader-elect-resource-namespace={}", case.namespace()),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--authorization-always-allow-paths=/healthz,/metrics".to_owned(),
    ];
    let manager = case.start(case.subject(), &arguments.each_ref().map(String::as_str))?;
    create(&case).await?;
    is_rolled_out(&case).await?;
    let port = Port(port);
    let before = manager.rss_bytes()?;
    manager.forget_peak()?;

    let floods = Cell::new(true);
    let flood = async {
        let flooded = flood(port.0).await;
        floods.set(false);
        flooded
    };
    let rollouts = async {
        let mut revision = 0;
        while floods.get() || revision < 2 {
            revision += 1;
            roll_out(&case, revision).await?;
        }
        anyhow::Ok(())
    };
    let renewals = async {
        while floods.get() {
            let pause = Duration::from_millis(500);
            throughout("the lease is renewed in time", pause, async || is_renewed(&case).await).await?;
        }
        anyhow::Ok(())
    };
    let probes = async {
        while floods.get() {
            // One whose place a newer connection takes during its handshake is repeated, as the kubelet does.
            eventually("a probe to succeed", async || {
                let (code, body) = port.get("/healthz", &Credential::default()).await?;
                ensure!(code == 200, "{code}: {body}");
                Ok(())
            })
            .await?;
            sleep(Duration::from_millis(200)).await;
        }
        anyhow::Ok(())
    };
    let ((silent, finished), (), (), ()) = tokio::try_join!(flood, rollouts, renewals, probes)?;

    let peak = manager.peak_bytes()?;
    let held = silent.len() + finished.len();
    ensure!(peak <= before + MEMORY, "{held} connections took {} bytes", peak - before);
    let page = eventually("a scrape to be answered", async || {
        let (code, page) = port.get("/metrics", &Credential::default()).await?;
        ensure!(code == 200, "{code}: {page}");
        Ok(page)
    })
    .await?;
    let count = |name: &str, queue: &str, bound: &str| -> Result<f64> {
        let begin = format!("{name}{{name=\"{queue}\"{bound}}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&begin));
        line.and_then(|value| value.parse().ok()).with_context(|| format!("no {begin}in {page}"))
    };
    for queue in ["deployment", "replicaset"] {
        let all = count("workqueue_queue_duration_seconds_count", queue, "")?;
        let soon = count("workqueue_queue_duration_seconds_bucket", queue, ",le=\"1\"")?;
        ensure!(all > 0.0 && all <= soon, "{} of {all} keys of {queue} waited a second", all - soon);
    }
    Ok(())
}

/// Opens connections, every other one of which begins a handshake, and then some that finish it; returns the newest.
async fn flood(port: u16) -> Result<(VecDeque<TcpStream>, Vec<TlsStream<TcpStream>>)> {
    let mut open = VecDeque::new();
    for number in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.context("the port takes no connection")?;
        if number % 2 == 0 {
            // The begin of a record of a handshake. The manager may have closed the connection already.
            drop(stream.write_all(&[22, 3, 1, 2]).await);
        }
        open.push_back(stream);
        if open.len() > KEPT {
            open.pop_front();
        }
    }
    let (client, mut finished) = (TlsClient::new()?, Vec::new());
    while finished.len() < FINISHED {
        finished.push(client.open(port).await?);
    }
    Ok((open, finished))
}

async fn create(case: &Case) -> Result<()> {
    let web = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": REPLICAS,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "terminationGracePeriodSeconds": 0, "containers": [{ "name": "main", "image": "image:0" }] },
            },
        },
    });
    let web = serde_json::from_value(web)?;
    case.api::<Deployment>().create(&PostParams::default(), &web).await.context("cannot create web")?;
    Ok(())
}

async fn roll_out(case: &Case, revision: u32) -> Result<()> {
    let containers = json!([{ "name": "main", "image": format!("image:{revision}") }]);
    let patch = Patch::Strategic(json!({ "spec": { "template": { "spec": { "containers": containers } } } }));
    case.api::<Deployment>().patch("web", &PatchParams::default(), &patch).await.context("cannot change web")?;
    is_rolled_out(case).await
}

async fn is_rolled_out(case: &Case) -> Result<()> {
    eventually("the rollout to end", async || {
        let web = case.api::<Deployment>().get("web").await?;
        let status = web.status.unwrap_or_default();
        let counts = [status.replicas, status.updated_replicas, status.available_replicas];
        ensure!(status.observed_generation == web.metadata.generation && counts == [Some(REPLICAS); 3], "{status:?}");
        Ok(())
    })
    .await
}

async fn is_renewed(case: &Case) -> Result<()> {
    let lease = case.api::<Lease>().get("kube-controller-manager").await.context("there is no lease")?;
    let record = lease.spec.context("the lease has no record")?;
    ensure!(record.lease_transitions.unwrap_or_default() == 0, "the lease was lost: {record:?}");
    let renewed = record.renew_time.context("the lease was never renewed")?.0;
    let age = clock::now().duration_since(renewed);
    ensure!(age.unsigned_abs() < MOST_BETWEEN_RENEWALS, "the last renewal is {age} old");
    Ok(())
}
