//! Service CIDRs: what is in use stays.

use anyhow::{Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;
use serde_json::json;

kcm_e2e_harness::scenarios! {
    Setup::of("service-cidr-controller") => {
        "service-cidr/keeps_what_is_in_use": keeps_what_is_in_use,
    }
}

/// A range is made ready. With the address of a service in it it outlasts its deletion, and goes when a larger one has the
/// address.
async fn keeps_what_is_in_use(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    // The scenario runs for both managers on one control plane, one after the other.
    let octet = if case.subject() == Subject::Ours { 71 } else { 72 };
    let name = |size: &str| format!("{}-{size}", case.namespace());
    let (small, large) = (name("small"), name("large"));
    let create = async |name: &str, range: String| {
        let cidr = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": { "name": name },
            "spec": { "cidrs": [range] },
        });
        let manifest = kubectl.manifest(&cidr)?;
        kubectl.run(&format!("create -f {manifest}")).await
    };
    let is = async |name: &str, expected: &str| {
        eventually(&format!("{name} to be {expected}"), async || {
            let path = "{.metadata.finalizers[0]}|{.status.conditions[0].status}|{.status.conditions[0].reason}";
            let found = kubectl.run(&format!("get servicecidr {name} -o jsonpath={path}")).await?;
            ensure!(found.trim() == format!("networking.k8s.io/service-cidr-finalizer|{expected}"), "it is {found}");
            Ok(())
        })
        .await
    };
    create(&small, format!("10.{octet}.0.0/24")).await?;
    is(&small, "True|").await?;
    let address = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": { "name": format!("10.{octet}.0.7"), "labels": {
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io", "ipaddress.kubernetes.io/ip-family": "IPv4",
        } },
        "spec": { "parentRef": { "resource": "services", "namespace": case.namespace(), "name": "web" } },
    });
    let manifest = kubectl.manifest(&address)?;
    kubectl.run(&format!("create -f {manifest}")).await?;
    kubectl.run(&format!("delete servicecidr {small} --wait=false")).await?;
    is(&small, "False|Terminating").await?;
    create(&large, format!("10.{octet}.0.0/16")).await?;
    eventually("the small one to be gone", async || {
        let found = kubectl.run(&format!("get servicecidr {small} --ignore-not-found -o name")).await?;
        ensure!(found.trim().is_empty(), "it is there");
        Ok(())
    })
    .await?;
    is(&large, "True|").await?;
    kubectl.run(&format!("delete ipaddress 10.{octet}.0.7 --ignore-not-found")).await?;
    kubectl.run(&format!("delete servicecidr {large} --wait=false")).await.map(drop)
}
