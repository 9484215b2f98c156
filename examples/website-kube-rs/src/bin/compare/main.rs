//! Runs both operators, one after the other, on an API server in this process, and prints the table of
//! `docs/plugins.md`.
//!
//! `cargo run --release -p kcm-example-website-kube-rs --bin compare -- 5000`, after both operators have been built with
//! the same profile.

mod lines;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kcm_example_website::WEBSITES;
use kcm_example_website::website::Website;
use kcm_sandbox_apiserver::{DEPLOYMENTS, ObjectKey, Resource, Sandbox, SandboxOptions, Status};
use kcm_sandbox_listener::{ListenOptions, Listener};
use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const DEFINITIONS: Resource =
    Resource::cluster_scoped("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition");

/// The figures of one operator.
struct Figures {
    lines: usize,
    /// From the first website to the last status.
    created: Duration,
    /// From the first ready Deployment to the last status.
    available: Duration,
    resident: u64,
    restarted: u64,
    requests: BTreeMap<String, usize>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let websites = std::env::args().nth(1).map_or(Ok(5000), |count| count.parse()).context("not a number")?;
    let programs = std::env::current_exe()?;
    let programs = programs.parent().context("a program lies in a folder")?;
    let limits = ["--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000"];
    let hosts = tempfile::tempdir()?;
    let mut arguments = limits.map(str::to_owned).to_vec();
    arguments.push(format!("--website-hosts-dir={}", hosts.path().display()));
    let ours = figures(&programs.join("kcm-example-website"), &arguments, websites, lines::ours()).await?;
    let hosts = tempfile::tempdir()?;
    let arguments =
        [format!("--website-hosts-dir={}", hosts.path().display()), "--bind-address=127.0.0.1:0".to_owned()];
    let theirs = figures(&programs.join("kcm-example-website-kube-rs"), &arguments, websites, lines::theirs()).await?;
    print(websites, &ours, &theirs);
    Ok(())
}

async fn figures(program: &Path, arguments: &[String], websites: usize, lines: usize) -> Result<Figures> {
    let sandbox = Sandbox::new(SandboxOptions::default());
    accepted(sandbox.create(&DEFINITIONS, serde_json::to_value(Website::crd())?))?;
    let listener = Listener::bind(&sandbox, ListenOptions::default()).await?;
    let kubeconfig = tempfile::NamedTempFile::new()?;
    std::fs::write(kubeconfig.path(), listener.kubeconfig())?;
    let mut served = JoinSet::new();
    served.spawn(listener.serve(std::future::pending()));
    let mut requests = BTreeMap::new();

    let mut operator = start(program, arguments, kubeconfig.path())?;
    let begun = Instant::now();
    for number in 0..websites {
        accepted(sandbox.create(&WEBSITES, website(number)))?;
    }
    until(&sandbox, &mut operator, &mut requests, "Progressing", websites).await?;
    let created = begun.elapsed();
    let begun = Instant::now();
    for number in 0..websites {
        let status = json!({ "status": { "replicas": 2, "readyReplicas": 2 } });
        accepted(sandbox.patch_status(&DEPLOYMENTS, &key(number), &status))?;
    }
    until(&sandbox, &mut operator, &mut requests, "Available", websites).await?;
    let available = begun.elapsed();
    // Both have freed their buffers by then.
    sleep(Duration::from_secs(5)).await;
    let resident = resident_of(&operator)?;
    operator.kill().await?;
    count(&sandbox, "", &mut requests);

    let mut operator = start(program, arguments, kubeconfig.path())?;
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        sleep(Duration::from_millis(200)).await;
        count(&sandbox, ", restarted", &mut requests);
    }
    ensure!(operator.try_wait()?.is_none(), "{} has ended", program.display());
    let restarted = resident_of(&operator)?;
    operator.kill().await?;
    served.shutdown().await;
    Ok(Figures { lines, created, available, resident, restarted, requests })
}

fn start(program: &Path, arguments: &[String], kubeconfig: &Path) -> Result<Child> {
    let mut command = Command::new(program);
    command.args(arguments).env("KUBECONFIG", kubeconfig).stderr(Stdio::null()).stdout(Stdio::null());
    // Plain kube-rs takes the variable.
    if !program.ends_with("kcm-example-website-kube-rs") {
        command.arg(format!("--kubeconfig={}", kubeconfig.display()));
    }
    command.kill_on_drop(true).spawn().with_context(|| format!("cannot start {}", program.display()))
}

fn key(number: usize) -> ObjectKey {
    ObjectKey::namespaced("default", format!("site-{number}"))
}

fn website(number: usize) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Website",
        "metadata": { "namespace": "default", "name": key(number).name() },
        "spec": { "image": "nginx", "replicas": 2, "host": format!("site-{number}.example.com") },
    })
}

fn accepted<T>(answer: Result<T, Status>) -> Result<T> {
    answer.map_err(|status| anyhow::anyhow!("the API server refuses: {}", status.to_json()))
}

/// Waits until all websites have a reason, and counts requests meanwhile: the API server keeps the last ones only.
async fn until(
    sandbox: &Sandbox,
    operator: &mut Child,
    requests: &mut BTreeMap<String, usize>,
    reason: &str,
    websites: usize,
) -> Result<()> {
    let has_reason = |website: &&Value| website["status"]["conditions"][0]["reason"] == reason;
    // To look at all of them takes time from the API server in this process.
    let pause = Duration::from_millis(200.max(websites as u64 / 2));
    let waiting = async {
        loop {
            count(sandbox, "", requests);
            ensure!(operator.try_wait()?.is_none(), "the operator has ended");
            if sandbox.list(&WEBSITES, None).iter().filter(has_reason).count() == websites {
                return Ok(());
            }
            sleep(pause).await;
        }
    };
    timeout(Duration::from_mins(20), waiting).await.with_context(|| format!("websites did not become {reason}"))?
}

fn count(sandbox: &Sandbox, when: &str, requests: &mut BTreeMap<String, usize>) {
    let logged = sandbox.requests();
    sandbox.clear_requests();
    for request in logged {
        let what = if request.path.contains("/events") { "events" } else { request.method.as_str() };
        *requests.entry(format!("{what}{when}")).or_default() += 1;
    }
}

fn resident_of(process: &Child) -> Result<u64> {
    let pid = process.id().context("it runs")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the system says no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

#[expect(clippy::print_stdout, clippy::cast_precision_loss, reason = "it prints a table of rounded figures")]
fn print(websites: usize, ours: &Figures, theirs: &Figures) {
    let row = |name: &str, ours: String, theirs: String| println!("| {name} | {ours} | {theirs} |");
    println!("| {websites} websites | ours | kube-rs |\n| --- | --- | --- |");
    row("lines of code", ours.lines.to_string(), theirs.lines.to_string());
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    row("created", seconds(ours.created), seconds(theirs.created));
    row("available", seconds(ours.available), seconds(theirs.available));
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    row("resident", megabytes(ours.resident), megabytes(theirs.resident));
    row("resident, restarted", megabytes(ours.restarted), megabytes(theirs.restarted));
    let verbs: BTreeSet<&String> = ours.requests.keys().chain(theirs.requests.keys()).collect();
    for verb in verbs {
        let of = |figures: &Figures| figures.requests.get(verb).copied().unwrap_or_default().to_string();
        row(&format!("requests: {verb}"), of(ours), of(theirs));
    }
}
