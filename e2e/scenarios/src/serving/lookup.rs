//! The cluster's settings of authentication, changed while the manager runs.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kcm_e2e_harness::control_plane::free_ports;
use kcm_e2e_harness::pki::Pki;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::eventually;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::credentials::{Credential, Port};

const NAME: &str = "extension-apiserver-authentication";

/// Clients of an authority are known as soon as the config map has it, without a restart.
///
/// The API server writes its own authorities into the config map once a minute, and keeps those that it finds.
pub(super) async fn follows_the_config_map(case: Case) -> Result<()> {
    let folder = tempfile::tempdir().context("no room for certificates")?;
    let newcomers = Pki::new(folder.path())?;
    let master = newcomers.client("newcomer", &["system:masters"])?;
    let master = Credential::of_certificate(master.certificate, master.key);
    let [port] = free_ports()?;
    let kubeconfig = case.plane().kubeconfig().display();
    let arguments = [
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
    ];
    let _manager = case.start(case.subject(), &arguments.each_ref().map(String::as_str))?;
    let port = Port(port);
    eventually("the port to be served", async || {
        let (code, body) = port.get("/healthz", &Credential::default()).await?;
        ensure!(code == 200, "{code}: {body}");
        Ok(())
    })
    .await?;
    let (code, _) = port.get("/metrics", &master).await?;
    ensure!(code == 401 || code == 403, "an unknown authority proves nobody: {code}");

    let maps: Api<ConfigMap> = Api::namespaced(case.client(), "kube-system");
    let known = maps.get(NAME).await.context("the cluster has no settings of authentication")?;
    let known = known.data.and_then(|data| data.get("client-ca-file").cloned()).context("it has authorities")?;
    let added = std::fs::read_to_string(newcomers.authority()).context("the authority is in a file")?;
    let change = async |authorities: &str| -> Result<()> {
        let patch = Patch::Merge(json!({ "data": { "client-ca-file": authorities } }));
        maps.patch(NAME, &PatchParams::default(), &patch).await.context("cannot change the authorities")?;
        Ok(())
    };
    change(&format!("{known}{added}")).await?;
    let followed = eventually("the new authority to count", async || {
        let (code, body) = port.get("/metrics", &master).await?;
        ensure!(code == 200, "{code}: {body}");
        Ok(())
    })
    .await;
    // Other scenarios use the cluster.
    change(&known).await?;
    followed
}
