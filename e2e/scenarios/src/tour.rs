//! The sandbox as README and docs/sandbox.md introduce it: one process with its controllers, and kubectl beside it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kcm_e2e_harness::control_plane::free_ports;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;

kcm_e2e_harness::scenarios! {
    Setup::of("").ours().with_own_managers() => {
        "host/sandbox_is_toured": is_toured,
        "host/sandbox_explains": explains,
        "host/sandbox_serves_and_drains": serves_and_drains,
        "host/sandbox_autoscales": autoscales,
    }
}

/// How long the sandbox may take to end.
const END: Duration = Duration::from_secs(30);
const ROLLED: &str = "rollout status deployment/web --timeout=90s";

async fn is_toured(case: Case) -> Result<()> {
    let folder = case.plane().logs();
    let kubeconfig = folder.join("sandbox.kubeconfig");
    // No flags: what the first command of the README starts.
    let mut sandbox = case.start_program(&Subject::Ours.program()?, &["sandbox"])?;
    let output = eventually("the sandbox to print what runs", async || {
        sandbox.must_run()?;
        let output = sandbox.printed()?;
        ensure!(output.contains("Ctrl-C ends it all."), "{output}");
        Ok(output)
    })
    .await?;
    let kubectl = Kubectl { kubeconfig: &kubeconfig, namespace: "default", folder };

    let commands: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("  kubectl ")).collect();
    let [create, set_image, watch] = commands.as_slice() else {
        anyhow::bail!("not the three commands that are run here: {commands:?}")
    };
    kubectl.run(create).await?;
    kubectl.run(ROLLED).await?;
    let watch = kubectl.start(watch)?;
    is_printed(&watch, "Running").await?;
    kubectl.run(set_image).await?;
    kubectl.run(ROLLED).await?;
    is_printed(&watch, "Terminating").await?;

    // As docs/sandbox.md goes on.
    kubectl.run("set image deployment/web shop=shop:missing").await?;
    eventually("the image to be missed", async || {
        let pods = kubectl.run("get pods").await?;
        ensure!(pods.contains("ImagePullBackOff"), "{pods}");
        Ok(())
    })
    .await?;
    kubectl.run("rollout undo deployment/web").await?;
    kubectl.run(ROLLED).await?;
    let image = kubectl.run("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}").await?;
    ensure!(image == "shop:2.0", "{image}");

    for command in [
        "create job report --image=tool:1.0",
        "wait job/report --for=condition=complete --timeout=90s",
        "create cronjob nightly --image=tool:1.0 --schedule=@daily",
        "create job tonight --from=cronjob/nightly",
        "wait job/tonight --for=condition=complete --timeout=90s",
    ] {
        kubectl.run(command).await?;
    }
    let pods = kubectl.run("get pods -l batch.kubernetes.io/job-name").await?;
    ensure!(pods.lines().filter(|line| line.contains("Completed")).count() == 2, "{pods}");
    kubectl.run("delete cronjob nightly").await?;
    kubectl.run("delete job report --timeout=90s").await?;

    kubectl.run("drain node-1 --timeout=90s").await?;
    kubectl.run(ROLLED).await?;
    let pods = kubectl.run("get pods -o wide").await?;
    ensure!(!pods.contains("node-1"), "{pods}");
    let node = kubectl.run("get node node-1").await?;
    ensure!(node.contains("Ready,SchedulingDisabled"), "{node}");

    kubectl.run("delete deployment web --timeout=90s").await?;
    eventually("the pods to go", async || {
        let pods = kubectl.run("get pods").await?;
        ensure!(pods.contains("No resources found"), "{pods}");
        Ok(())
    })
    .await?;
    drop(watch);

    sandbox.must_run()?;
    sandbox.terminate()?;
    let status = sandbox.wait(END).await?;
    ensure!(status.success(), "it ended with {status}:\n{}", sandbox.printed()?);
    ensure!(!kubeconfig.exists(), "its kubeconfig was left behind");
    Ok(())
}

/// The kubectl commands of a section of docs/sandbox.md.
fn commands_of(section: &str) -> Result<Vec<&'static str>> {
    const PAGE: &str = include_str!("../../../docs/sandbox.md");
    let mut sections = PAGE.split("\n## ");
    let found = sections.find(|found| found.lines().next() == Some(section));
    let found = found.with_context(|| format!("no section {section:?}"))?;
    Ok(found.lines().filter_map(|line| line.strip_prefix("kubectl ")).collect())
}

/// Starts a sandbox with these further flags, whose files are in a folder.
async fn start_sandbox(case: &Case, folder: &Path, flags: &[&str]) -> Result<Process> {
    std::fs::create_dir_all(folder)?;
    let kubeconfig = format!("--write-kubeconfig={}", folder.join("sandbox.kubeconfig").display());
    let arguments: Vec<&str> = ["sandbox", &kubeconfig, "--socket="].iter().chain(flags).copied().collect();
    let mut sandbox = case.start_program(&Subject::Ours.program()?, &arguments)?;
    eventually("the sandbox to run", async || {
        sandbox.must_run()?;
        let output = sandbox.printed()?;
        ensure!(output.contains("Ctrl-C ends it all."), "{output}");
        Ok(())
    })
    .await?;
    Ok(sandbox)
}

/// Ends a sandbox as an operator does.
async fn end_sandbox(mut sandbox: Process) -> Result<()> {
    sandbox.terminate()?;
    let status = sandbox.wait(END).await?;
    ensure!(status.success(), "it ended with {status}:\n{}", sandbox.printed()?);
    Ok(())
}

/// The commands of the section "Services and disruption budgets" of docs/sandbox.md.
async fn serves_and_drains(case: Case) -> Result<()> {
    let folder = case.plane().logs().join(case.namespace());
    let sandbox = start_sandbox(&case, &folder, &[]).await?;
    let kubeconfig = folder.join("sandbox.kubeconfig");
    let kubectl = Kubectl { kubeconfig: &kubeconfig, namespace: "default", folder: &folder };
    kubectl.run("create deployment web --image=shop:1.0 --replicas=5").await?;
    kubectl.run(ROLLED).await?;
    let commands = commands_of("Services and disruption budgets")?;
    let [expose, endpoints, limit, drain, budgets, uncordon] = commands.as_slice() else {
        anyhow::bail!("not the six commands that are run here: {commands:?}")
    };
    kubectl.run(expose).await?;
    eventually("the service to have a slice and endpoints of five pods", async || {
        let shown = kubectl.run(endpoints).await?;
        ensure!(
            shown.lines().filter(|line| line.contains("/web") && line.contains("+ 2 more...")).count() == 2,
            "{shown}"
        );
        Ok(())
    })
    .await?;
    kubectl.run(limit).await?;
    let allows_one = async || {
        let shown = kubectl.run(budgets).await?;
        let row: Vec<&str> = shown.lines().nth(1).unwrap_or_default().split_whitespace().collect();
        ensure!(matches!(row.as_slice(), ["web", "4", "N/A", "1", _age]), "{shown}");
        Ok(())
    };
    eventually("the budget to allow one disruption", allows_one).await?;
    // Two of its five pods are on the node, or one: the second is evicted when the first is replaced.
    kubectl.run(&format!("{drain} --timeout=90s")).await?;
    let pods = kubectl.run("get pods -o wide").await?;
    ensure!(!pods.contains("node-1"), "{pods}");
    eventually("the budget to allow one disruption again", allows_one).await?;
    kubectl.run(uncordon).await?;
    end_sandbox(sandbox).await
}

/// The commands of the section "Autoscaling" of docs/sandbox.md; the autoscaler looks every second.
async fn autoscales(case: Case) -> Result<()> {
    let folder = case.plane().logs().join(case.namespace());
    // Usage of pods counts from their start on.
    let flags =
        ["--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-cpu-initialization-period=0s"];
    let sandbox = start_sandbox(&case, &folder, &flags).await?;
    let kubeconfig = folder.join("sandbox.kubeconfig");
    let kubectl = Kubectl { kubeconfig: &kubeconfig, namespace: "default", folder: &folder };
    kubectl.run("create deployment web --image=shop:1.0 --replicas=2").await?;
    let commands = commands_of("Autoscaling")?;
    let [request, autoscale, annotate, top, watch] = commands.as_slice() else {
        anyhow::bail!("not the five commands that are run here: {commands:?}")
    };
    kubectl.run(request).await?;
    kubectl.run(ROLLED).await?;
    kubectl.run(autoscale).await?;
    kubectl.run(annotate).await?;
    eventually("the usage of the two pods", async || {
        let used = kubectl.run(top).await?;
        let is_shown = |line: &&str| line.starts_with("web-") && line.contains(" 200m ") && line.contains(" 1Mi");
        ensure!(used.lines().filter(is_shown).count() == 2, "{used}");
        Ok(())
    })
    .await?;
    let nodes = kubectl.run("top nodes").await?;
    ensure!(nodes.contains("node-1") && nodes.contains('%'), "{nodes}");
    let watch = kubectl.start(watch)?;
    is_printed(&watch, "/50%").await?;
    // Two pods use what eight may use; those that are new use next to nothing.
    eventually("the autoscaler to scale up", async || {
        let replicas = kubectl.run("get deployment web -o jsonpath={.spec.replicas}").await?;
        ensure!(replicas == "8", "{replicas}");
        Ok(())
    })
    .await?;
    drop(watch);
    end_sandbox(sandbox).await
}

/// The section "Why" of docs/sandbox.md: the command is taken from what the sandbox prints.
async fn explains(case: Case) -> Result<()> {
    let folder = case.plane().logs().join(case.namespace());
    std::fs::create_dir_all(&folder)?;
    let [port] = free_ports()?;
    let kubeconfig = folder.join("sandbox.kubeconfig");
    let arguments = [
        "sandbox".to_owned(),
        format!("--secure-port={port}"),
        format!("--write-kubeconfig={}", kubeconfig.display()),
        format!("--socket={}", folder.join("sandbox.socket").display()),
    ];
    let program = Subject::Ours.program()?;
    let mut sandbox = case.start_program(&program, &arguments.each_ref().map(String::as_str))?;
    let command = eventually("the sandbox to print how to explain", async || {
        sandbox.must_run()?;
        let output = sandbox.printed()?;
        ensure!(output.contains("Ctrl-C ends it all."), "{output}");
        let joined = output.replace("\\\n", " ");
        let command = joined.lines().find_map(|line| line.trim().strip_prefix("kube-controller-manager explain "));
        Ok(command.with_context(|| format!("no command in {output}"))?.to_owned())
    })
    .await?;
    let kubectl = Kubectl { kubeconfig: &kubeconfig, namespace: "default", folder: &folder };
    kubectl.run("create deployment web --image=shop:1.0 --replicas=5").await?;
    kubectl.run(ROLLED).await?;
    let words = ["explain"].into_iter().chain(command.split_whitespace());
    let output = Command::new(&program).args(words).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    for part in
        ["deployments.apps default/web, deployment-controller", "    because  ", "    decided  ", "    wrote    "]
    {
        ensure!(text.contains(part), "{part:?} is not in {text}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    sandbox.terminate()?;
    let status = sandbox.wait(END).await?;
    ensure!(status.success(), "it ended with {status}:\n{}", sandbox.printed()?);
    Ok(())
}

async fn is_printed(process: &Process, text: &str) -> Result<()> {
    eventually(&format!("{} to print {text}", process.name()), async || {
        let printed = process.printed()?;
        ensure!(printed.contains(text), "{printed}");
        Ok(())
    })
    .await
}
