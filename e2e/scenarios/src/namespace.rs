//! Namespaces: their deletion, and what is in its way.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{eventually, eventually_within};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;

use super::alone::Alone;

kcm_e2e_harness::scenarios! {
    Setup::of("namespace").with_own_managers() => {
        "namespace/is_emptied_and_removed": is_emptied_and_removed,
        "namespace/names_what_is_in_the_way": names_what_is_in_the_way,
    }
    Setup::of("namespace").ours().with_own_managers() => {
        "namespace/a_hundred_are_removed_at_once": a_hundred_are_removed_at_once,
        "namespace/needs_no_more_than_its_role": needs_no_more_than_its_role,
    }
}

/// The namespace `shop` on a control plane of its own.
struct Shop(Alone);

impl Shop {
    fn kubectl(&self) -> Kubectl<'_> {
        self.0.kubectl("shop")
    }

    /// Creates the namespace `shop` with a pod, a deployment and a config map.
    async fn fill(&self) -> Result<()> {
        let kubectl = self.kubectl();
        kubectl.run("create namespace shop").await?;
        kubectl.run("create serviceaccount robot").await?;
        kubectl.run("run pod --image=example/main:1").await?;
        kubectl.run("create deployment web --image=example/main:1").await?;
        kubectl.run("create configmap map --from-literal=a=1").await?;
        Ok(())
    }

    /// The reason and message of a condition of the namespace.
    async fn condition(&self, type_: &str) -> Result<String> {
        let namespaces: Api<corev1::Namespace> = Api::all(self.0.plane.client());
        let namespace = namespaces.get("shop").await?;
        let conditions = namespace.status.and_then(|status| status.conditions).unwrap_or_default();
        let found = conditions.into_iter().find(|condition| condition.type_ == type_).context("no condition yet")?;
        Ok(format!("{}: {}", found.reason.unwrap_or_default(), found.message.unwrap_or_default()))
    }

    async fn is_gone(&self) -> Result<()> {
        eventually("the namespace to be gone", async || {
            let namespaces: Api<corev1::Namespace> = Api::all(self.0.plane.client());
            ensure!(namespaces.get_opt("shop").await?.is_none(), "it is there");
            Ok(())
        })
        .await
    }
}

/// A namespace goes with all its content once the last finalizer is removed; the conditions name that.
async fn is_emptied_and_removed(case: Case) -> Result<()> {
    let shop = Shop(Alone::start(&case).await?);
    shop.fill().await?;
    let kubectl = shop.kubectl();
    let hold = r#"patch configmap map -p {"metadata":{"finalizers":["example.com/hold"]}}"#;
    kubectl.run(hold).await?;
    kubectl.run("delete namespace shop --wait=false").await?;
    eventually("the finalizer to be named", async || {
        let (remaining, finalizers) =
            (shop.condition("NamespaceContentRemaining").await?, shop.condition("NamespaceFinalizersRemaining").await?);
        let expected = "SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances";
        ensure!(remaining == expected, "{remaining}");
        let expected = "SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances";
        ensure!(finalizers == expected, "{finalizers}");
        Ok(())
    })
    .await?;
    let discovered = shop.condition("NamespaceDeletionDiscoveryFailure").await?;
    ensure!(discovered == "ResourcesDiscovered: All resources successfully discovered", "{discovered}");
    let left = kubectl.run("get pods,deployments,serviceaccounts -o name").await?;
    ensure!(left.trim().is_empty(), "{left}");
    kubectl.run(r#"patch configmap map -p {"metadata":{"finalizers":null}}"#).await?;
    shop.is_gone().await
}

/// A namespace stays while an API service does not answer, which the condition names; it goes when that is deleted.
async fn names_what_is_in_the_way(case: Case) -> Result<()> {
    let shop = Shop(Alone::start(&case).await?);
    shop.fill().await?;
    let kubectl = shop.kubectl();
    let manifest = shop.0.plane.logs().join("api-service.json");
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": "v1beta1.metrics.example.com" },
        "spec": {
            "group": "metrics.example.com", "version": "v1beta1", "insecureSkipTLSVerify": true,
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": { "namespace": "default", "name": "missing" },
        },
    });
    std::fs::write(&manifest, service.to_string())?;
    kubectl.run(&format!("apply -f {}", manifest.display())).await?;
    kubectl.run("delete namespace shop --wait=false").await?;
    eventually("the API service to be named", async || {
        let failure = shop.condition("NamespaceDeletionDiscoveryFailure").await?;
        let expected = "DiscoveryFailed: Discovery failed for some groups, 1 failing: unable to retrieve the complete \
                        list of server APIs: metrics.example.com/v1beta1: ";
        ensure!(failure.starts_with(expected), "{failure}");
        let names_service = failure.ends_with("(API service v1beta1.metrics.example.com)");
        ensure!(names_service || case.subject() == Subject::Peer, "{failure}");
        Ok(())
    })
    .await?;
    eventually("the content to be deleted", async || {
        let left = kubectl.run("get pods,deployments,configmaps -o name").await?;
        ensure!(left.trim().is_empty(), "{left}");
        Ok(())
    })
    .await?;
    kubectl.run("delete apiservice v1beta1.metrics.example.com").await?;
    shop.is_gone().await
}

/// Many namespaces that are deleted at once are emptied and removed; others stay.
async fn a_hundred_are_removed_at_once(case: Case) -> Result<()> {
    let alone = Alone::start(&case).await?;
    let namespaces: Api<corev1::Namespace> = Api::all(alone.plane.client());
    let names: Vec<String> = (0..100).map(|number| format!("shop-{number}")).collect();
    for name in &names {
        let mut namespace = corev1::Namespace::default();
        namespace.metadata.name = Some(name.clone());
        namespaces.create(&PostParams::default(), &namespace).await?;
        let mut map = corev1::ConfigMap::default();
        map.metadata.name = Some("map".to_owned());
        let maps: Api<corev1::ConfigMap> = Api::namespaced(alone.plane.client(), name);
        maps.create(&PostParams::default(), &map).await?;
    }
    let before: Vec<String> =
        namespaces.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
    for name in &names {
        namespaces.delete(name, &DeleteParams::default()).await?;
    }
    eventually_within("all to be gone", Duration::from_mins(3), async || {
        let left: Vec<String> =
            namespaces.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
        ensure!(left.iter().all(|name| !names.contains(name)), "{} are there", left.len());
        ensure!(left.len() + names.len() == before.len(), "there were {before:?}, and are {left:?}");
        Ok(())
    })
    .await
}

/// The manager, as the service account of the controller, is refused nothing.
async fn needs_no_more_than_its_role(case: Case) -> Result<()> {
    let shop = Shop(Alone::start_as(&case, "namespace-controller").await?);
    shop.fill().await?;
    shop.kubectl().run("delete namespace shop --wait=false").await?;
    shop.is_gone().await?;
    shop.0.is_refused_nothing()
}
