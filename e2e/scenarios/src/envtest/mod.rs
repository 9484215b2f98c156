//! Beside the binaries of envtest, as `docs/envtest.md` shows it: the recipes of the page, and how fast and small the
//! manager is there.

mod kube_rs;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use kcm_e2e_harness::binaries::{self, root};
use kcm_e2e_harness::control_plane::{ControlPlane, Options, free_ports};
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::scenario::Setup;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::Instant;

kcm_e2e_harness::scenarios! {
    Setup::of("garbagecollector,namespace").ours().with_own_managers() => {
        "envtest/the_script_of_the_page_works": |_| script_works(),
        "envtest/the_recipe_for_kube_rs_works": |_| kube_rs_works(),
        "envtest/the_recipe_for_go_works": |_| go_works(),
    }
    Setup::of("garbagecollector,namespace").ours().exclusively() => {
        "envtest/is_fast_and_small": |_| is_fast_and_small(),
    }
}

/// How soon `/healthz` succeeds after the start.
const HEALTHY: Duration = Duration::from_millis(200);
/// How soon all caches have synced after the start.
const LIVE: Duration = Duration::from_secs(2);
/// The most memory, in bytes, that is resident and the manager's own: pages of the binary are left out, which a build for
/// development has many of.
const MEMORY: u64 = 20_000_000;
/// The best of so many starts counts, as what else the machine does is no property of the manager.
const STARTS: usize = 3;

fn recipes() -> PathBuf {
    root().join("e2e/envtest")
}

/// The folder of the binaries of a control plane, as `KUBEBUILDER_ASSETS`.
fn assets() -> Result<PathBuf> {
    let etcd = binaries::control_plane("etcd")?;
    Ok(etcd.parent().context("a program lies in a folder")?.to_owned())
}

/// Runs a recipe to its end.
async fn run(command: &mut Command) -> Result<()> {
    command.env("KUBEBUILDER_ASSETS", assets()?).env("KUBE_CONTROLLER_MANAGER", Subject::Ours.program()?);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.context("cannot start the recipe")?;
    let text = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "it ended with {}:\n{}", output.status, String::from_utf8_lossy(&text));
    Ok(())
}

async fn script_works() -> Result<()> {
    let [etcd, peer, api] = free_ports()?.map(|port: u16| port.to_string());
    let mut script = Command::new(recipes().join("plain.sh"));
    run(script.env("ETCD_PORT", etcd).env("ETCD_PEER_PORT", peer).env("API_PORT", api)).await
}

async fn go_works() -> Result<()> {
    let mut go = Command::new("go");
    run(go.args(["test", "-count=1", "-vet=off", "./..."]).current_dir(recipes().join("go")).env("GOWORK", "off")).await
}

async fn kube_rs_works() -> Result<()> {
    let plane = ControlPlane::start(Options::default()).await?;
    let _manager = kube_rs::start_controller_manager(&Subject::Ours.program()?, plane.kubeconfig())?;
    let maps: Api<corev1::ConfigMap> = Api::namespaced(plane.client(), "default");
    let owner = maps.create(&PostParams::default(), &map("owner")).await?;
    let mut child = map("child");
    child.metadata.owner_references = Some(vec![metav1::OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        ..metav1::OwnerReference::default()
    }]);
    maps.create(&PostParams::default(), &child).await?;
    maps.delete("owner", &DeleteParams::background()).await?;
    eventually("the child to be collected", async || {
        ensure!(maps.get_opt("child").await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    let namespaces: Api<corev1::Namespace> = Api::all(plane.client());
    let mut shop = corev1::Namespace::default();
    shop.metadata.name = Some("shop".to_owned());
    namespaces.create(&PostParams::default(), &shop).await?;
    Api::namespaced(plane.client(), "shop").create(&PostParams::default(), &map("other")).await?;
    namespaces.delete("shop", &DeleteParams::default()).await?;
    eventually("the namespace to be gone", async || {
        ensure!(namespaces.get_opt("shop").await?.is_none(), "it is there");
        Ok(())
    })
    .await
}

fn map(name: &str) -> corev1::ConfigMap {
    let mut map = corev1::ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

/// What a start costs.
#[derive(Debug, Clone, Copy)]
struct Start {
    healthy: Duration,
    live: Duration,
    memory: u64,
}

async fn is_fast_and_small() -> Result<()> {
    let plane = ControlPlane::start(Options::default()).await?;
    let mut starts = Vec::new();
    for number in 0..STARTS {
        starts.push(start(&plane, number).await?);
    }
    let is_good = |it: &Start| it.healthy < HEALTHY && it.live < LIVE && it.memory < MEMORY;
    ensure!(starts.iter().any(is_good), "{starts:#?}");
    Ok(())
}

/// Starts a manager, and waits until all its caches are live.
async fn start(plane: &ControlPlane, number: usize) -> Result<Start> {
    let [port] = free_ports()?;
    let args = [
        format!("--kubeconfig={}", plane.kubeconfig().display()),
        "--controllers=garbage-collector-controller,namespace-controller".to_owned(),
        "--leader-elect=false".to_owned(),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--authorization-always-allow-paths=/*".to_owned(),
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
    ];
    let mut config = kube::Config::new(format!("https://127.0.0.1:{port}").parse()?);
    // The manager signs its certificate itself.
    config.accept_invalid_certs = true;
    config.default_retry = false;
    let client = kube::Client::try_from(config)?;
    let get = async |path: &str| -> Result<String> {
        Ok(client.request_text(http::Request::get(path).body(Vec::new())?).await?)
    };
    let manager = Process::start(&format!("start-{number}"), &Subject::Ours.program()?, &args, plane.logs())?;
    let started = Instant::now();
    let healthy = loop {
        if get("/healthz").await.is_ok() {
            break started.elapsed();
        }
        ensure!(started.elapsed() < LIVE * 10, "it is not healthy:\n{}", manager.printed()?);
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    let live = loop {
        let caches: Value = serde_json::from_str(&get("/debug/caches").await?)?;
        let caches = caches["caches"].as_array().context("there are no caches")?;
        // A server without custom kinds has more than fifty that can be collected.
        if caches.len() > 40 && caches.iter().all(|cache| cache["synced"] == true) {
            break started.elapsed();
        }
        ensure!(started.elapsed() < LIVE * 10, "caches have not synced:\n{caches:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    Ok(Start { healthy, live, memory: manager.own_bytes()? })
}

#[cfg(test)]
mod tests {
    const PAGE: &str = include_str!("../../../../docs/envtest.md");

    #[test]
    fn the_page_shows_the_recipes_as_they_are_run() {
        let kube_rs = include_str!("kube_rs.rs").replace("pub(super) fn", "pub fn");
        for recipe in [
            include_str!("../../../envtest/plain.sh"),
            include_str!("../../../envtest/go/envtest_test.go"),
            kube_rs.as_str(),
        ] {
            assert!(PAGE.contains(recipe), "the page does not have\n{recipe}");
        }
    }
}
