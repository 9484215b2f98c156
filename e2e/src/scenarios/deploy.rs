//! What deploys the program, on a real API server with its authorization.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use serde_json::Value;

use super::host::{create_set, has_pods};
use crate::binaries;
use crate::kubectl::Kubectl;
use crate::scenario::{Case, Runs, Scenario};
use crate::subject::Subject;

pub(super) static SCENARIOS: [Scenario; 2] = [
    Scenario {
        name: "deploy/has_the_rights_that_it_needs",
        controllers: "",
        subjects: &[Subject::Ours],
        runs: Runs::WithOwnManagers,
        expected_errors: &[],
        source: file!(),
        run: |case| has_the_rights_that_it_needs(case).boxed_local(),
    },
    Scenario {
        name: "deploy/is_taken_by_the_api_server",
        controllers: "",
        subjects: &[Subject::Ours],
        runs: Runs::WithOwnManagers,
        expected_errors: &[],
        source: file!(),
        run: |case| is_taken_by_the_api_server(case).boxed_local(),
    },
];

fn deploy(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(path).display().to_string()
}

/// The manager of the Deployment, with its settings and as its service account, leads and makes pods.
async fn has_the_rights_that_it_needs(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    kubectl.run(&format!("apply --namespace=kube-system -f {}", deploy("kubernetes"))).await?;
    let object = async |name: &str| -> Result<Value> {
        let text = kubectl.run(&format!("get {name} --namespace=kube-system --output=json")).await?;
        serde_json::from_str(&text).with_context(|| format!("{name} is no JSON"))
    };
    let map = object("configmap/kcm").await?;
    let config = kubectl.folder.join("kcm.yaml");
    std::fs::write(&config, map["data"]["kcm.yaml"].as_str().context("the map has no file")?)?;
    let token = kubectl.run("create token kcm --namespace=kube-system").await?;
    let kubeconfig = kubectl.folder.join("kcm.kubeconfig");
    std::fs::copy(kubectl.kubeconfig, &kubeconfig)?;
    let own = Kubectl { kubeconfig: &kubeconfig, ..Kubectl::of(&case) };
    own.run(&format!("config set-credentials kcm --token={}", token.trim())).await?;
    own.run("config set-context --current --user=kcm").await?;

    let deployment = object("deployment/kcm").await?;
    let args =
        deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().context("it has no arguments")?;
    let args = args.iter().filter_map(Value::as_str).filter(|arg| !arg.starts_with("--config="));
    let mut args: Vec<String> = args.map(str::to_owned).collect();
    args.push(format!("--config={}", config.display()));
    args.push(format!("--kubeconfig={}", kubeconfig.display()));
    args.push("--secure-port=0".to_owned());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let _manager = case.start_program(&Subject::Ours.program()?, &args)?;
    create_set(&case, 2).await?;
    has_pods(&case, 2).await?;
    let lease = object("lease/kcm").await?;
    ensure!(lease["spec"]["holderIdentity"].is_string(), "it leads: {lease}");
    Ok(())
}

/// All manifests, and those that the chart renders.
async fn is_taken_by_the_api_server(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let helm = Command::new(binaries::control_plane("helm")?)
        .args(["template", "kcm", &deploy("helm/kube-controller-manager"), "--namespace=kube-system"])
        .args(["--kube-version=1.36.3", "--set=args={--controller-shutdown-timeout=5s}"])
        .output()
        .context("cannot start helm")?;
    ensure!(helm.status.success(), "the chart does not render: {}", String::from_utf8_lossy(&helm.stderr));
    let rendered = kubectl.folder.join("chart.yaml");
    std::fs::write(&rendered, helm.stdout)?;
    for file in [deploy("kubernetes"), deploy("kubeadm"), rendered.display().to_string()] {
        kubectl.run(&format!("apply --namespace=kube-system --dry-run=server --validate=strict -f {file}")).await?;
    }
    Ok(())
}
