//! The sub-command `explain` against the port of a manager, with the credentials of service accounts.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kcm_e2e_harness::control_plane::free_ports;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;
use kube::api::{Api, PostParams};
use serde_json::json;

/// The sub-command as a person runs it.
struct Explain {
    object: &'static str,
    /// The address of the port.
    server: String,
    namespace: String,
}

impl Explain {
    /// What it prints: the explanation of the object, or else the error.
    fn run(&self, flags: &[String]) -> Result<std::result::Result<String, String>> {
        let words = ["explain", self.object, "--namespace", &self.namespace, "--server", &self.server];
        let output = Command::new(Subject::Ours.program()?).args(words).args(flags).output();
        let output = output.context("cannot start explain")?;
        let text = |bytes| String::from_utf8(bytes).context("explain prints UTF-8");
        Ok(if output.status.success() { Ok(text(output.stdout)?) } else { Err(text(output.stderr)?) })
    }

    fn explained(&self, flags: &[String]) -> Result<String> {
        self.run(flags)?.map_err(|error| anyhow::anyhow!("explain with {} flags failed: {error}", flags.len()))
    }

    fn refused(&self, flags: &[String], expected: &str) -> Result<()> {
        let error = self.run(flags)?.err().with_context(|| format!("explain must fail with: {expected}"))?;
        ensure!(error.contains(expected) && error.lines().count() == 1, "not {expected:?}: {error}");
        Ok(())
    }
}

/// A user of `/debug/*` sees the explanation, one without that right what is missing; certificates are verified.
pub(super) async fn explains(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let (namespace, folder) = (case.namespace(), kubectl.folder.join(case.namespace()));
    let [port, unused] = free_ports()?;
    let kubeconfig = case.plane().kubeconfig().display();
    let arguments = [
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", folder.display()),
    ];
    let _manager = case.start(case.subject(), &arguments.each_ref().map(String::as_str))?;
    for account in ["debugger", "other"] {
        kubectl.run(&format!("create serviceaccount {account}")).await?;
    }
    kubectl.run(&format!("create clusterrole {namespace} --verb=get --non-resource-url=/debug/*")).await?;
    let bind = format!("create clusterrolebinding {namespace} --clusterrole={namespace}");
    kubectl.run(&format!("{bind} --serviceaccount={namespace}:debugger")).await?;
    let token = async |account: &str| -> Result<String> {
        Ok(format!("--token={}", kubectl.run(&format!("create token {account}")).await?.trim()))
    };
    let (debugger, other) = (token("debugger").await?, token("other").await?);
    let deployments: Api<Deployment> = case.api();
    let web = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "image" }] },
            },
        },
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(web)?).await.context("cannot create web")?;

    let server = format!("https://127.0.0.1:{port}");
    let explain = Explain { object: "deployment/web", server, namespace: namespace.to_owned() };
    let authority = format!("--certificate-authority={}", folder.join("kube-controller-manager.crt").display());
    let trusting = [debugger.clone(), authority.clone()];
    let text = eventually("the rollout to be explained", async || {
        let text = explain.explained(&trusting)?;
        ensure!(text.contains("    decided  ") && text.contains("    wrote    create replicasets.apps "), "{text}");
        Ok(text)
    })
    .await?;
    let title = format!("deployments.apps {namespace}/web, deployment-controller, loop deployment\n");
    ensure!(text.starts_with(&title) && text.contains("    because  "), "{text}");
    let insecure = "--insecure-skip-tls-verify".to_owned();
    let unverified = explain.explained(&[debugger.clone(), insecure.clone()])?;
    ensure!(unverified.starts_with(&title), "{unverified}");

    // Its owner never existed, and it is held: the garbage collector deletes it, and it is there.
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "11111111-2222-3333-4444-555555555555" });
    let held = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "held", "finalizers": ["example.com/hold"], "ownerReferences": [owner] },
    });
    kubectl.run(&format!("create -f {}", kubectl.manifest(&held)?)).await?;
    let of_held = Explain { object: "configmap/held", server: explain.server.clone(), namespace: namespace.to_owned() };
    let deleted = eventually("the deletion to be explained", async || {
        let text = of_held.explained(&trusting)?;
        ensure!(text.contains("    wrote    delete configmaps "), "{text}");
        Ok(text)
    })
    .await;
    kubectl.run(r#"patch configmap held -p {"metadata":{"finalizers":null}}"#).await?;
    let deleted = deleted?;
    ensure!(
        deleted.contains(", garbage-collector-controller, loop garbage_collector_attempt_to_delete\n"),
        "{deleted}"
    );

    explain.refused(std::slice::from_ref(&debugger), "is not trusted: give --certificate-authority=FILE, or")?;
    explain.refused(&[other, authority.clone()], "forbids get of /debug/queues (403: ")?;
    explain.refused(&["--token=wrong".to_owned(), authority], "does not know the credentials (401): give another")?;
    let nowhere = Explain { server: format!("https://127.0.0.1:{unused}"), ..explain };
    nowhere.refused(&[debugger, insecure], "cannot reach https://127.0.0.1:")
}
