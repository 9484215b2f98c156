//! Leader election: replicas of our program take turns on one lease.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::coordination::v1 as coordinationv1;
use kcm_e2e_failovers::{self as failovers, Fault, Pair, Plan};
use kcm_e2e_harness::cgroup::{Cgroup, Limits};
use kcm_e2e_harness::manager::with_upstreams_roles;
use kcm_e2e_harness::process::{Process, send};
use kcm_e2e_harness::procfs;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;
use kube::api::{Api, Patch, PatchParams};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::Instant;

use super::host::{create_set, has_pods};

kcm_e2e_harness::scenarios! {
    Setup::of("").ours().with_own_managers() => {
        "host/takes_turns_on_the_lease": takes_turns_on_the_lease,
        "host/runs_in_a_container": runs_in_a_container,
    }
    Setup::of("").ours().exclusively() => {
        "host/fails_over": |_| fails_over(),
    }
    Setup::of("").ours().exclusively().in_full_runs() => {
        "lease/forty_handovers_by_sigterm_and_ten_by_expiry": |_| fifty_handovers(),
    }
}

/// Joins control groups up to an empty word, and becomes the rest of the command.
const LIMITED: &str = r#"while [ -n "$1" ]; do echo $$ > "$1" || exit; shift; done; shift; exec unshare "$@""#;

/// What a small container has. A development build takes twice the memory of the shipped one.
const LIMITS: Limits = Limits { memory: 96 << 20, cpu_percent: 50 };

/// Makes the root file system read-only, and becomes the program: process 1 of its namespace.
const CONTAINER: &str =
    r#"mount --rbind / "$0" && mount -o remount,ro,bind "$0" && ! touch "$0/written" && exec chroot "$0" "$@""#;

/// Enough to be busy for a while.
const PODS: i32 = 100;

/// More threads than these would be as many as there are processors, whatever the limits of the container.
const THREADS: usize = 5;

/// As process 1, on a read-only root file system, within limits of memory and CPU where this machine lets us set them: it
/// leads, keeps the lease, takes SIGHUP and SIGTERM, and has few threads.
async fn runs_in_a_container(case: Case) -> Result<()> {
    let root = tempfile::tempdir().context("cannot make a folder for the root of a container")?;
    let program = Subject::Ours.program()?;
    let words = ["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CONTAINER].map(str::to_owned);
    let paths = [root.path(), &program].map(|path| path.display().to_string());
    let groups = Cgroup::limited(case.namespace(), LIMITS)?;
    let joined = groups.iter().flat_map(Cgroup::processes).map(|file| file.display().to_string());
    let limited = ["-c", LIMITED, "sh"].map(str::to_owned).into_iter().chain(joined).chain([String::new()]);
    let arguments: Vec<String> = limited.chain(words).chain(paths).chain(arguments(&case)).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut container = case.start_program(Path::new("/bin/sh"), &arguments)?;
    create_set(&case, PODS).await?;
    has_pods(&case, usize::try_from(PODS)?).await?;
    ensure!(record(&case).await?.lease_transitions == Some(0), "the lease was lost");
    let child = procfs::children(container.id())?.first().copied().context("unshare has no child")?;
    let threads = procfs::threads(child)?;
    ensure!(threads <= THREADS, "it has {threads} threads");
    send(child, Signal::HUP)?;
    eventually("the configuration to be reloaded", async || {
        ensure!(container.printed()?.contains("Reloaded the configuration"), "it is not reloaded");
        Ok(())
    })
    .await?;
    send(child, Signal::TERM)?;
    let status = container.wait(LEASE_DURATION).await?;
    ensure!(status.code() == Some(0), "it ended with {status}:\n{}", container.printed()?);
    ensure!(record(&case).await?.holder_identity.is_none_or(|holder| holder.is_empty()), "the lease is not released");
    Ok(())
}

/// A short form of `cargo xtask failovers`: one failover by each fault, with a short lease. Only the lease's holder
/// writes, and no replica set has more pods than desired at any revision.
async fn fails_over() -> Result<()> {
    let lease = Duration::from_secs(6);
    let plan = Plan { faults: Fault::ALL.to_vec(), pods: 60, jobs: false, lease };
    let outcome = failovers::run(Pair::Ours, &plan, &|_| {}).await?;
    let late = outcome.failovers.iter().find(|it| it.acted > lease + MARGIN * 2);
    ensure!(late.is_none(), "a successor acted late: {late:?}");
    ensure!(outcome.foreign.is_empty(), "writes without the lease: {:#?}", outcome.foreign);
    ensure!(outcome.surplus.is_empty(), "surplus pods: {:#?}", outcome.surplus);
    ensure!(outcome.writes > 0, "nothing was written");
    Ok(())
}

/// Handovers by SIGTERM and by the expiry of the lease, while a deployment is rolled and Jobs start: no replica set has more
/// pods than desired at any revision, and no index of a Job runs twice.
async fn fifty_handovers() -> Result<()> {
    let lease = Duration::from_secs(6);
    let by_expiry = [Fault::Killed, Fault::Frozen];
    let round = |number: usize| [[Fault::Terminated; 4].as_slice(), &[by_expiry[number % by_expiry.len()]]].concat();
    let plan = Plan { faults: (0..10).flat_map(round).collect(), pods: 60, jobs: true, lease };
    let outcome = failovers::run(Pair::Ours, &plan, &|_| {}).await?;
    ensure!(outcome.failovers.len() == 50, "{} failovers", outcome.failovers.len());
    ensure!(outcome.foreign.is_empty(), "writes without the lease: {:#?}", outcome.foreign);
    ensure!(outcome.surplus.is_empty(), "surplus pods: {:#?}", outcome.surplus);
    ensure!(outcome.repeated.is_empty(), "indexes that ran twice: {:#?}", outcome.repeated);
    let late = outcome.failovers.iter().find(|it| it.acted > lease + MARGIN * 2);
    ensure!(late.is_none(), "a successor acted late: {late:?}");
    Ok(())
}

/// The default of `--leader-elect-lease-duration`.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// Longer than a manager needs to start, and for a write to be seen on a busy machine.
const MARGIN: Duration = Duration::from_secs(5);

/// A standby acts at once when the leader stops, and within the lease's duration when it dies.
async fn takes_turns_on_the_lease(case: Case) -> Result<()> {
    let mut first = start(&case)?;
    create_set(&case, 1).await?;
    has_pods(&case, 1).await?;
    ensure!(record(&case).await?.lease_transitions == Some(0), "a lease is created without a transition");

    let mut second = start(&case)?;
    are_ready(&second, 2, 1).await?;
    let stopped = Instant::now();
    first.terminate()?;
    scale(&case, 2).await?;
    has_pods(&case, 2).await?;
    ensure!(stopped.elapsed() < MARGIN, "it took {:?} after the end of the leader", stopped.elapsed());
    ensure!(record(&case).await?.lease_transitions == Some(1), "the holder has changed once");

    let third = start(&case)?;
    are_ready(&third, 3, 2).await?;
    let killed = Instant::now();
    second.kill9()?;
    scale(&case, 3).await?;
    has_pods(&case, 3).await?;
    let took = killed.elapsed();
    ensure!(took < LEASE_DURATION + MARGIN, "it took {took:?} after the death of the leader");
    ensure!(record(&case).await?.lease_transitions == Some(2), "the holder has changed twice");
    Ok(())
}

/// Starts a manager that takes the lease of this scenario.
fn start(case: &Case) -> Result<Process> {
    let arguments = arguments(case);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    case.start_program(&Subject::Ours.program()?, &arguments)
}

fn arguments(case: &Case) -> Vec<String> {
    let mut arguments = vec![
        format!("--kubeconfig={}", case.plane().kubeconfig().display()),
        "--controllers=replicaset".to_owned(),
        "--leader-elect=true".to_owned(),
        "--secure-port=0".to_owned(),
        format!("--leader-elect-resource-namespace={}", case.namespace()),
    ];
    arguments.extend(with_upstreams_roles(case.plane()));
    arguments
}

/// Waits until as many managers have initialized their controllers, of which `leaders` have started them.
async fn are_ready(process: &Process, managers: usize, leaders: usize) -> Result<()> {
    eventually("the standby to be ready", async || {
        let log = process.printed()?;
        let ready = log.matches("Initialized controller").count();
        ensure!(ready == managers, "{ready} are ready:\n{log}");
        let leading = log.matches("Started controller").count();
        ensure!(leading == leaders, "{leading} have led:\n{log}");
        Ok(())
    })
    .await
}

async fn record(case: &Case) -> Result<coordinationv1::LeaseSpec> {
    let leases: Api<coordinationv1::Lease> = case.api();
    let lease = leases.get("kube-controller-manager").await.context("there is no lease")?;
    lease.spec.context("the lease has no record")
}

async fn scale(case: &Case, replicas: i32) -> Result<()> {
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    let sets = case.api::<appsv1::ReplicaSet>();
    sets.patch("web", &PatchParams::default(), &patch).await.context("cannot scale the set")?;
    Ok(())
}
