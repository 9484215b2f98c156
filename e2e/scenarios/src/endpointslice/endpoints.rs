//! Endpoints of services with a selector.

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::eventually;
use serde_json::{Value, json};

use super::{apply, create_pod, node, pod, service, set_status, slices};

/// The endpoints of a service; `null` where there are none.
async fn endpoints(kubectl: &Kubectl<'_>, service: &str) -> Result<Value> {
    let found = kubectl.run(&format!("get endpoints {service} --ignore-not-found -o json")).await?;
    // After the object, or without one, is a warning that the API is deprecated.
    let Some(object) = found.rfind("\n}").map(|end| &found[..end + 2]) else { return Ok(Value::Null) };
    serde_json::from_str(object).context("kubectl prints JSON")
}

/// Waits until these are the subsets: of each the ready addresses, those that are not, and the ports, in this order.
async fn has(kubectl: &Kubectl<'_>, service: &str, expected: &Value) -> Result<Value> {
    eventually(&format!("the subsets of {service} to be {expected}"), async || {
        let endpoints = endpoints(kubectl, service).await?;
        ensure!(!endpoints.is_null(), "there are no endpoints");
        let list = |subset: &Value, of: &str, field: &str| -> Vec<Value> {
            subset[of].as_array().into_iter().flatten().map(|item| item[field].clone()).collect()
        };
        let subsets = endpoints["subsets"].as_array().into_iter().flatten();
        let found: Vec<Value> = subsets
            .map(|subset| {
                let (ready, others) = (list(subset, "addresses", "ip"), list(subset, "notReadyAddresses", "ip"));
                json!([ready, others, list(subset, "ports", "name")])
            })
            .collect();
        ensure!(&json!(found) == expected, "{found:?}");
        Ok(endpoints)
    })
    .await
}

/// Selects the pods of `web`, with four ports: upstream orders them by their hashes as `c`, `d`, `a`, `b`.
fn four_ports() -> Value {
    let port = |(name, port): (&str, i32)| json!({ "name": name, "port": port, "targetPort": 80 });
    let ports = [("a", 1), ("b", 2), ("c", 3), ("d", 4)].map(port);
    json!({ "selector": { "app": "web" }, "ports": ports })
}

/// Pods come, become unready, and leave. The endpoints are packed and ordered, are not mirrored, and go with the service.
pub(super) async fn have_the_pods_of_a_service(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    apply(&kubectl, &node()).await?;
    apply(&kubectl, &service("web", &json!({}))).await?;
    has(&kubectl, "web", &json!([])).await?;
    create_pod(&kubectl, "a", "web", "10.9.0.1").await?;
    create_pod(&kubectl, "b", "web", "10.9.0.2").await?;
    has(&kubectl, "web", &json!([[["10.9.0.1", "10.9.0.2"], [], ["http"]]])).await?;
    set_status(&kubectl, "a", "10.9.0.1", false).await?;
    let found = has(&kubectl, "web", &json!([[["10.9.0.2"], ["10.9.0.1"], ["http"]]])).await?;
    let labels = json!({ "endpoints.kubernetes.io/managed-by": "endpoint-controller" });
    ensure!(found["metadata"]["labels"] == labels, "{found}");
    apply(&kubectl, &pod("c", "web", 8081)).await?;
    set_status(&kubectl, "c", "10.9.0.3", true).await?;
    eventually("the other port to have a subset", async || {
        let endpoints = endpoints(&kubectl, "web").await?;
        ensure!(endpoints["subsets"].as_array().is_some_and(|subsets| subsets.len() == 2), "{endpoints}");
        Ok(())
    })
    .await?;
    apply(&kubectl, &service("many", &four_ports())).await?;
    has(&kubectl, "many", &json!([[["10.9.0.2", "10.9.0.3"], ["10.9.0.1"], ["c", "d", "a", "b"]]])).await?;
    let mirrored = slices(&kubectl, "web").await?;
    ensure!(mirrored.is_empty(), "{mirrored:?}");
    kubectl.run("delete svc web many").await?;
    eventually("the endpoints to be deleted", async || {
        ensure!(endpoints(&kubectl, "web").await?.is_null() && endpoints(&kubectl, "many").await?.is_null());
        Ok(())
    })
    .await?;
    kubectl.run("delete pods --all --grace-period=0 --force").await.map(drop)
}
