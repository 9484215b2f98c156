//! Services and their endpoint slices, as a person with kubectl has them.

mod endpoints;
mod mirrored;
mod published;
mod rolling;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("endpointslice,endpointslicemirroring") => {
        "endpointslice/leads_to_the_pods_of_a_service": leads_to_the_pods,
        "endpointslice-mirroring/mirrors_endpoints": mirrors_endpoints,
    }
    Setup::of("endpointslice").ours().with_own_managers() => {
        "endpointslice/is_handed_over_while_a_service_rolls": rolling::slices_are_handed_over,
    }
    Setup::of("endpointslicemirroring").ours().with_own_managers() => {
        "endpointslice-mirroring/is_handed_over_amid_changes": mirrored::is_handed_over_amid_changes,
    }
    Setup::of(ENDPOINTS) => {
        "endpoints/have_the_pods_of_a_service": endpoints::have_the_pods_of_a_service,
    }
    Setup::of("endpoint").ours().with_own_managers() => {
        "endpoints/are_handed_over_while_a_service_rolls": rolling::endpoints_are_handed_over,
    }
}

/// With the controller that mirrors endpoints, which leaves those of pods alone.
const ENDPOINTS: &str = "endpoint,endpointslicemirroring";

/// A service that selects `app=NAME`, whose spec `change` changes.
fn service(name: &str, change: &Value) -> Value {
    let mut spec =
        json!({ "selector": { "app": name }, "ports": [{ "name": "http", "port": 80, "targetPort": "http" }] });
    for (field, value) in change.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": spec })
}

/// A pod of the service `app` on a node of no kubelet.
fn pod(name: &str, app: &str, port: i32) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": app } },
        "spec": {
            "nodeName": "endpoints-node",
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{
                "name": "main", "image": "example/main:1", "ports": [{ "name": "http", "containerPort": port }],
            }],
        },
    })
}

fn node() -> Value {
    let labels = json!({ "topology.kubernetes.io/zone": "a" });
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "endpoints-node", "labels": labels } })
}

async fn apply(kubectl: &Kubectl<'_>, object: &Value) -> Result<()> {
    let manifest = kubectl.manifest(object)?;
    kubectl.run(&format!("apply -f {manifest}")).await.map(drop)
}

/// A status with this address.
fn status(ip: &str, ready: bool) -> String {
    let ready = if ready { "True" } else { "False" };
    let condition = json!({ "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let status = json!({ "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }], "conditions": [condition] });
    json!({ "status": status }).to_string()
}

async fn set_status(kubectl: &Kubectl<'_>, pod: &str, ip: &str, ready: bool) -> Result<()> {
    kubectl.run(&format!("patch pod {pod} --subresource=status -p {}", status(ip, ready))).await.map(drop)
}

async fn create_pod(kubectl: &Kubectl<'_>, name: &str, app: &str, ip: &str) -> Result<()> {
    apply(kubectl, &pod(name, app, 8080)).await?;
    set_status(kubectl, name, ip, true).await
}

async fn slices(kubectl: &Kubectl<'_>, service: &str) -> Result<Vec<Value>> {
    let listed = kubectl.run(&format!("get endpointslices -l kubernetes.io/service-name={service} -o json")).await?;
    let listed: Value = serde_json::from_str(&listed).context("kubectl prints JSON")?;
    Ok(listed["items"].as_array().cloned().unwrap_or_default())
}

/// Waits until these addresses, and no others, are ready endpoints of a service; returns the names of its slices.
async fn has(kubectl: &Kubectl<'_>, service: &str, addresses: &[&str]) -> Result<Vec<String>> {
    eventually(&format!("{addresses:?} to be ready endpoints of {service}"), async || {
        let slices = slices(kubectl, service).await?;
        let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
        let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true);
        let mut found: Vec<String> = ready.filter_map(|one| Some(one["addresses"][0].as_str()?.to_owned())).collect();
        found.sort_unstable();
        ensure!(found == addresses && !slices.is_empty(), "{found:?} in {} slices", slices.len());
        Ok(slices.iter().filter_map(|slice| Some(slice["metadata"]["name"].as_str()?.to_owned())).collect())
    })
    .await
}

/// Pods come, become unready, and leave; all the time they are in one slice.
async fn leads_to_the_pods(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    apply(&kubectl, &node()).await?;
    apply(&kubectl, &service("web", &json!({}))).await?;
    let first = has(&kubectl, "web", &[]).await?;
    create_pod(&kubectl, "a", "web", "10.9.0.1").await?;
    create_pod(&kubectl, "b", "web", "10.9.0.2").await?;
    has(&kubectl, "web", &["10.9.0.1", "10.9.0.2"]).await?;
    set_status(&kubectl, "a", "10.9.0.1", false).await?;
    has(&kubectl, "web", &["10.9.0.2"]).await?;
    set_status(&kubectl, "a", "10.9.0.1", true).await?;
    has(&kubectl, "web", &["10.9.0.1", "10.9.0.2"]).await?;
    kubectl.run("delete pod b --grace-period=0 --force").await?;
    let last = has(&kubectl, "web", &["10.9.0.1"]).await?;
    ensure!(first.len() == 1 && first == last, "{first:?}, then {last:?}");
    kubectl.run("delete pod a --grace-period=0 --force").await.map(drop)
}

/// Endpoints of a service without a selector are mirrored until a label says otherwise.
async fn mirrors_endpoints(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    apply(&kubectl, &service("plain", &json!({ "selector": null }))).await?;
    apply(&kubectl, &endpoints(&["10.9.0.1", "10.9.0.2"])).await?;
    has(&kubectl, "plain", &["10.9.0.1", "10.9.0.2"]).await?;
    apply(&kubectl, &endpoints(&["10.9.0.3"])).await?;
    has(&kubectl, "plain", &["10.9.0.3"]).await?;
    kubectl.run("label endpoints plain endpointslice.kubernetes.io/skip-mirror=true").await?;
    eventually("the slices to be deleted", async || {
        let slices = slices(&kubectl, "plain").await?;
        ensure!(slices.is_empty(), "{slices:?}");
        Ok(())
    })
    .await
}

fn endpoints(ips: &[&str]) -> Value {
    let addresses: Vec<Value> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
    let subset = json!({ "addresses": addresses, "ports": [{ "name": "http", "port": 8080 }] });
    json!({ "apiVersion": "v1", "kind": "Endpoints", "metadata": { "name": "plain" }, "subsets": [subset] })
}
