//! A horizontal pod autoscaler by what metrics-server measures of simulated pods.

use anyhow::{Result, ensure};
use kcm_e2e_harness::aggregated_api::registrations;
use kcm_e2e_harness::binaries;
use kcm_e2e_harness::control_plane::{ControlPlane, Options, free_ports};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::manager;
use kcm_e2e_harness::nodes;
use kcm_e2e_harness::pki::Pki;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::scenario::{Case, LIMITS, Setup};
use kcm_e2e_harness::wait::eventually;
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("horizontalpodautoscaling,deployment,replicaset").ours().with_own_managers() => {
        "horizontal-pod-autoscaler/scales_by_metrics_server": scales_by_metrics_server,
    }
}

const NODES: usize = 2;
const SERVED: [(&str, &str); 1] = [("metrics.k8s.io", "v1beta1")];

/// kube-apiserver has no certificate of a front proxy here, so that metrics-server does not know its users.
fn rights() -> [Value; 2] {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "reads-metrics" },
        "rules": [
            { "apiGroups": ["metrics.k8s.io"], "resources": ["*"], "verbs": ["get", "list"] },
            { "nonResourceURLs": ["/apis/*"], "verbs": ["get"] },
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": "everyone-reads-metrics" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-metrics" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:unauthenticated" }],
    });
    [role, binding]
}

/// Two pods of which each uses what it requests.
fn deployment() -> Value {
    let labels = json!({ "app": "web" });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels, "annotations": { "kwok.x-k8s.io/usage-cpu": "100m" } },
                "spec": {
                    "containers": [
                        { "name": "main", "image": "example/main:1", "resources": { "requests": { "cpu": "100m" } } },
                    ],
                    "tolerations": [{ "operator": "Exists" }],
                },
            },
        },
    })
}

/// Starts kwok, which says what its pods use as kubelets do.
fn start_kwok(plane: &ControlPlane) -> Result<Process> {
    let identity = Pki::new(&plane.logs().join("kubelets"))?.server("server")?;
    let [port] = free_ports()?;
    let args = [
        format!("--kubeconfig={}", plane.kubeconfig().display()),
        format!("--config={}", binaries::kwok_stages()?.display()),
        format!("--config={}", binaries::kwok_usage()?.display()),
        format!("--manage-nodes-with-annotation-selector={}", nodes::MANAGED),
        "--node-lease-duration-seconds=40".to_owned(),
        format!("--server-address=127.0.0.1:{port}"),
        format!("--tls-cert-file={}", identity.certificate.display()),
        format!("--tls-private-key-file={}", identity.key.display()),
        // What it writes to the status of nodes.
        "--node-ip=127.0.0.1".to_owned(),
        format!("--node-port={port}"),
    ];
    Process::start("kwok", &binaries::control_plane("kwok")?, &args, plane.logs())
}

/// Starts metrics-server, which reads the usage of pods from kwok as it does from kubelets, and registers it.
async fn start(plane: &ControlPlane, kubectl: &Kubectl<'_>) -> Result<Process> {
    for number in 1..=NODES {
        let node = format!("metered-{number}");
        let path = format!("metrics.k8s.io/resource-metrics-path=/metrics/nodes/{node}/metrics/resource");
        kubectl.run(&format!("annotate node {node} {path}")).await?;
    }
    let [port] = free_ports()?;
    let kubeconfig = plane.kubeconfig().display();
    let args = [
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", plane.logs().join("metrics-server").display()),
        "--kubelet-insecure-tls".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--kubelet-use-node-status-port".to_owned(),
        // The least that it takes.
        "--metric-resolution=10s".to_owned(),
        // Less than that, as it wants.
        "--kubelet-request-timeout=5s".to_owned(),
    ];
    let process = Process::start("metrics-server", &binaries::control_plane("metrics-server")?, &args, plane.logs())?;
    for object in rights().into_iter().chain(registrations(port, &SERVED)) {
        kubectl.run(&format!("apply -f {}", kubectl.manifest(&object)?)).await?;
    }
    Ok(process)
}

async fn scales_by_metrics_server(case: Case) -> Result<()> {
    let plane = ControlPlane::start(Options { scheduler: true, ..Options::default() }).await?;
    let _kwok = start_kwok(&plane)?;
    let kubectl = Kubectl { kubeconfig: plane.kubeconfig(), namespace: "default", folder: plane.logs() };
    nodes::create(&plane.client(), "metered", NODES).await?;
    let _metrics_server = start(&plane, &kubectl).await?;
    let controllers = format!("--controllers={}", case.controllers());
    let soon =
        ["--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-cpu-initialization-period=0s"];
    let args: Vec<&str> = [controllers.as_str()].into_iter().chain(LIMITS).chain(soon).collect();
    let name = format!("metered-{}", case.subject());
    let _manager = manager::start(case.subject(), &plane, &name, &args)?;
    kubectl.run(&format!("apply -f {}", kubectl.manifest(&deployment())?)).await?;
    kubectl.run("rollout status deployment/web --timeout=60s").await?;

    eventually("the usage of both pods", async || {
        let used = kubectl.run("top pods --no-headers").await?;
        // Measured between two looks, so that it is not exact.
        let is_shown = |line: &&str| ["99m", "100m", "101m"].iter().any(|cpu| line.split(' ').any(|word| word == *cpu));
        ensure!(used.lines().filter(is_shown).count() == 2, "{used}");
        Ok(())
    })
    .await?;
    kubectl.run("autoscale deployment web --cpu=50% --min=1 --max=4").await?;
    eventually("the autoscaler to scale up", async || {
        let replicas = kubectl.run("get deployment web -o jsonpath={.spec.replicas}").await?;
        ensure!(replicas == "4", "{replicas}");
        Ok(())
    })
    .await?;
    eventually("the status to say that it stops at its bound", async || {
        let limited =
            kubectl.run(r#"get hpa web -o jsonpath={.status.conditions[?(@.type=="ScalingLimited")].reason}"#).await?;
        ensure!(limited == "TooManyReplicas", "{limited:?}");
        Ok(())
    })
    .await
}
