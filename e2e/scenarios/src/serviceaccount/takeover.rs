//! One manager replaces another, with work left between the two.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::rbac::v1 as rbacv1;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{PATIENCE, eventually};
use kube::api::Api;
use serde_json::json;

use super::Cluster;

/// What changed while no manager ran is the work of the next, and what the first has made stays as it is.
pub(super) async fn goes_on_amid_work(case: Case) -> Result<()> {
    let cluster = Cluster::start(&case).await?;
    let other = if case.subject() == Subject::Ours { Subject::Peer } else { Subject::Ours };
    let mut manager = cluster.run(other, &[])?;
    let kubectl = cluster.kubectl("shop");
    kubectl.run("create namespace shop").await?;
    cluster.is_furnished("shop").await?;
    for account in ["robot", "leaver", "stayer"] {
        kubectl.run(&format!("create serviceaccount {account}")).await?;
        cluster.create_secret("shop", &format!("of-{account}"), account).await?;
        cluster.token("shop", &format!("of-{account}")).await?;
    }
    kubectl.run(r#"patch serviceaccount robot -p {"secrets":[{"name":"of-robot"}]}"#).await?;
    cluster.has_aggregated_roles().await?;
    manager.terminate()?;
    manager.wait(PATIENCE).await?;

    let secrets = cluster.api::<corev1::Secret>("shop");
    let stayed = secrets.get("of-stayer").await?.metadata.resource_version;
    let default = cluster.api::<corev1::ServiceAccount>("shop").get("default").await?.metadata.uid;
    kubectl.run("delete serviceaccount leaver default").await?;
    kubectl.run("delete configmap kube-root-ca.crt").await?;
    kubectl.run("create serviceaccount newcomer").await?;
    cluster.create_secret("shop", "of-newcomer", "newcomer").await?;
    kubectl.run(r#"patch secret of-robot -p {"data":{"token":null}}"#).await?;
    kubectl.run("create namespace later").await?;
    let websites = json!({ "apiGroups": ["example.com"], "resources": ["websites"], "verbs": ["get"] });
    let labels = json!({ "rbac.authorization.k8s.io/aggregate-to-view": "true" });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "websites", "labels": labels }, "rules": [websites],
    });
    kubectl.run(&format!("apply -f {}", kubectl.manifest(&role)?)).await?;

    let _manager = cluster.run(case.subject(), &[])?;
    for namespace in ["shop", "later"] {
        let uid = cluster.is_furnished(namespace).await.with_context(|| format!("{namespace} after the change"))?;
        ensure!(Some(uid) != default, "the account was deleted");
    }
    cluster.is_gone("shop", "of-leaver").await?;
    for secret in ["of-newcomer", "of-robot"] {
        cluster.token("shop", secret).await?;
    }
    let roles: Api<rbacv1::ClusterRole> = Api::all(cluster.plane.client());
    eventually("the new rule", async || {
        let admin = json!(roles.get("admin").await?.rules);
        ensure!(admin.as_array().is_some_and(|rules| rules.contains(&websites)), "{admin}");
        Ok(())
    })
    .await?;
    let now = secrets.get("of-stayer").await?.metadata.resource_version;
    ensure!(now == stayed, "the token of the account that stayed was written");
    Ok(())
}
