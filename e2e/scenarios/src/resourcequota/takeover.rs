//! One manager replaces another: quotas at rest are not written, and what came between is counted.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::throughout;
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use super::super::alone::Alone;
use super::{SOON, Shop};

/// For how long quotas at rest must not be written.
const REST: Duration = Duration::from_secs(5);

/// Ours goes on where upstream's manager has ended.
pub(super) async fn takes_over(case: Case) -> Result<()> {
    is_handed_over(&case, Subject::Peer, case.subject()).await
}

/// Upstream's manager goes on where ours has ended.
pub(super) async fn gives_back(case: Case) -> Result<()> {
    is_handed_over(&case, case.subject(), Subject::Peer).await
}

async fn is_handed_over(case: &Case, from: Subject, to: Subject) -> Result<()> {
    let mut shop = Shop::create(Alone::start_with(case, from).await?).await?;
    let kubectl = shop.kubectl();
    kubectl.run(&Shop::pod("one")).await?;
    kubectl.run("create configmap a").await?;
    kubectl.run("create configmap b").await?;
    for quota in
        ["limits --hard=configmaps=5,pods=4", "resting --hard=pods=4,requests.cpu=2", "other --hard=services=2"]
    {
        kubectl.run(&format!("create quota {quota}")).await?;
    }
    for quota in ["limits", "resting", "other"] {
        shop.has_status(quota).await.with_context(|| format!("{from} is to begin"))?;
    }
    shop.uses(SOON, &["configmaps=2", "pods=1"]).await?;
    shop.0.end_manager().await?;
    let kubectl = shop.kubectl();
    // A deletion, a limit and a quota: nothing but the next manager counts them.
    kubectl.run("delete configmap a").await?;
    kubectl.run(r#"patch quota limits -p {"spec":{"hard":{"secrets":"7"}}}"#).await?;
    kubectl.run("create quota late --hard=configmaps=9").await?;
    let before = versions(&shop).await?;

    shop.0.start_manager(case, to)?;
    shop.uses(SOON, &["configmaps=1", "pods=1", "secrets=0"]).await.with_context(|| format!("{to} is to go on"))?;
    shop.has_status("late").await?;
    throughout("nothing at rest is written", REST, async || {
        let after = versions(&shop).await?;
        for quota in ["resting", "other"] {
            ensure!(before.get(quota) == after.get(quota), "{to} wrote {quota}");
        }
        Ok(())
    })
    .await
}

/// The resource versions of the quotas.
async fn versions(shop: &Shop) -> Result<BTreeMap<String, Option<String>>> {
    let quotas: Api<corev1::ResourceQuota> = Api::namespaced(shop.0.plane.client(), "shop");
    let quotas = quotas.list(&ListParams::default()).await?;
    Ok(quotas.iter().map(|quota| (quota.name_any(), quota.resource_version())).collect())
}
