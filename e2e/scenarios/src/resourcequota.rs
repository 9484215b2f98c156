//! Resource quotas of kinds that a definition adds. A script compares the rest.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{eventually, eventually_within};
use kube::api::Api;
use serde_json::json;

use super::alone::Alone;

kcm_e2e_harness::scenarios! {
    Setup::of("resourcequota").with_own_managers() => {
        "resourcequota/counts_custom_objects": counts_custom_objects,
    }
}

/// Longer than discovery takes to find a definition.
const DISCOVERED: Duration = Duration::from_mins(2);

/// The namespace `shop` on a control plane of its own.
struct Shop(Alone);

impl Shop {
    async fn create(alone: Alone) -> Result<Self> {
        let shop = Self(alone);
        shop.kubectl().run("create namespace shop").await?;
        shop.kubectl().run("create serviceaccount default").await?;
        Ok(shop)
    }

    fn kubectl(&self) -> Kubectl<'_> {
        self.0.kubectl("shop")
    }

    /// `status.used` of the quota, as `NAME=QUANTITY`.
    async fn uses(&self, within: Duration, expected: &[&str]) -> Result<()> {
        eventually_within(&format!("{expected:?} to be used"), within, async || {
            let quotas: Api<corev1::ResourceQuota> = Api::namespaced(self.0.plane.client(), "shop");
            let status = quotas.get("limits").await?.status.unwrap_or_default();
            let used: Vec<String> =
                status.used.unwrap_or_default().into_iter().map(|(name, used)| format!("{name}={}", used.0)).collect();
            ensure!(used == expected, "{used:?} are used");
            Ok(())
        })
        .await
    }
}

const SOON: Duration = Duration::from_secs(30);

/// Custom objects and config maps are counted by kind and group.
async fn counts_custom_objects(case: Case) -> Result<()> {
    let shop = Shop::create(Alone::start(&case).await?).await?;
    let kubectl = shop.kubectl();
    shop.0.define_widgets().await?;
    let widget = |name: &str| json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name, "namespace": "shop" } });
    shop.0.apply("shop", &widget("first")).await?;
    kubectl.run("create quota limits --hard=count/widgets.example.com=2,count/configmaps=3").await?;
    if case.subject() == Subject::Peer {
        // A definition enqueues no quota there: another limit does, when discovery has found the kind.
        let patch =
            |number: u32| format!(r#"patch quota limits -p {{"spec":{{"hard":{{"count/configmaps":"{number}"}}}}}}"#);
        let mut limits = [4, 3].into_iter().cycle();
        eventually_within("the kind to be known", DISCOVERED, async || {
            kubectl.run(&patch(limits.next().unwrap_or(3))).await?;
            shop.uses(Duration::from_secs(5), &["count/configmaps=0", "count/widgets.example.com=1"]).await
        })
        .await?;
    }
    shop.uses(DISCOVERED, &["count/configmaps=0", "count/widgets.example.com=1"]).await?;
    eventually("the second widget to be admitted", async || shop.0.apply("shop", &widget("second")).await).await?;
    let refused = kubectl.refused(&format!("apply -f {}", kubectl.manifest(&widget("third"))?)).await?;
    ensure!(refused.contains("exceeded quota: limits, requested: count/widgets.example.com=1"), "{refused}");
    kubectl.run("delete widget first").await?;
    shop.uses(SOON, &["count/configmaps=0", "count/widgets.example.com=1"]).await?;
    kubectl.run("create configmap map").await?;
    kubectl.run("delete configmap map").await?;
    shop.uses(SOON, &["count/configmaps=0", "count/widgets.example.com=1"]).await
}
