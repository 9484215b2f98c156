//! The operator of `examples/website`, installed by its manifests: it acts as its own service account, whose role it keeps
//! to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::binaries::{self, root};
use kcm_e2e_harness::control_plane::connect;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{eventually, eventually_within};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::host::{changed_kubeconfig, start, stop};

kcm_e2e_harness::scenarios! {
    Setup::of("deployment,replicaset").ours().with_own_managers() => {
        "website/keeps_to_its_role": keeps_to_its_role,
    }
}

const NAME: &str = "shop";
const HOST: &str = "shop.example.com";
const MANAGER: &str = "website-controller";

/// Longer than discovery takes to find a definition.
const DISCOVERED: Duration = Duration::from_secs(90);

/// The operator starts before its definition is installed, serves a website, cleans up after it, and goes on when its
/// definition is deleted and installed again. No request of it is refused.
async fn keeps_to_its_role(case: Case) -> Result<()> {
    let kubectl = Kubectl { namespace: "websites", ..Kubectl::of(&case) };
    let mut manager = case.start(Subject::Ours, &[])?;
    for manifest in ["deployment.yaml", "rbac.yaml"] {
        apply(&kubectl, manifest).await?;
    }
    let refused_before = refused_requests(&case.client()).await?;
    let kubeconfig = kubeconfig_of_the_service_account(&case, &kubectl).await?;
    let hosts = tempfile::tempdir().context("cannot make a directory of host names")?;
    let directory = format!("--website-hosts-dir={}", hosts.path().display());
    let operator = start(&case, &binaries::example_host("kcm-example-website")?, &kubeconfig, &[&directory])?;
    logged(&operator, "the CustomResourceDefinition of Websites is not installed").await?;

    let websites = Websites::of(&case, hosts.path());
    apply(&kubectl, "crd.yaml").await?;
    websites.create().await?;
    websites.is_served().await?;
    websites.has_events().await?;
    websites.owned_objects_stay_as_applied().await?;
    websites.api.delete(NAME, &DeleteParams::default()).await.context("cannot delete the website")?;
    websites.is_gone().await?;

    websites.create().await?;
    websites.is_served().await?;
    // Waits until the websites are gone too, which takes their finalizers to be removed.
    kubectl.run(&format!("delete -f {} --timeout=60s", manifest("crd.yaml").display())).await?;
    websites.is_gone().await?;
    logged(&operator, "A resource that the controller reads is no longer served; stopping the controller").await?;
    apply(&kubectl, "crd.yaml").await?;
    websites.create().await?;
    websites.is_served().await?;
    websites.api.delete(NAME, &DeleteParams::default()).await.context("cannot delete the website")?;
    websites.is_gone().await?;

    stop(operator).await?;
    manager.must_run()?;
    let refused = refused_requests(&case.client()).await? - refused_before;
    ensure!(refused == 0, "{refused} requests were refused");
    has_no_other_permission(&case, &kubeconfig).await?;
    for manifest_name in ["crd.yaml", "rbac.yaml", "deployment.yaml"] {
        kubectl.run(&format!("delete -f {} --wait=false", manifest(manifest_name).display())).await?;
    }
    Ok(())
}

fn manifest(name: &str) -> PathBuf {
    root().join("examples/website/manifests").join(name)
}

async fn apply(kubectl: &Kubectl<'_>, name: &str) -> Result<()> {
    kubectl.run(&format!("apply -f {}", manifest(name).display())).await.map(drop)
}

/// A kubeconfig with a token of the service account that the Deployment of the operator names.
async fn kubeconfig_of_the_service_account(case: &Case, kubectl: &Kubectl<'_>) -> Result<PathBuf> {
    let token = kubectl.run("create token website-operator").await?;
    changed_kubeconfig(case, "website-operator", |config| {
        config["users"][0]["user"] = json!({ "token": token.trim() });
    })
}

async fn logged(process: &Process, message: &str) -> Result<()> {
    eventually_within(&format!("the operator to log {message:?}"), DISCOVERED, async || {
        let log = process.printed()?;
        ensure!(log.contains(message), "the log is:\n{log}");
        Ok(())
    })
    .await
}

/// How many requests the authorizer of the API server has not allowed. Nothing else on this control plane lacks a
/// permission.
async fn refused_requests(client: &Client) -> Result<u64> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    let metrics = client.request_text(request).await.context("cannot read the API server's metrics")?;
    let attempts = metrics.lines().filter_map(|line| line.strip_prefix("authorization_attempts_total{"));
    let refused = attempts.filter(|sample| !sample.contains(r#"result="allowed""#));
    let counts = refused.map(|sample| sample.rsplit(' ').next().unwrap_or_default().parse::<u64>());
    counts.sum::<Result<u64, _>>().context("a count of the API server is no number")
}

/// Checks that the service account has no permission beyond its role, and that a refusal is counted.
async fn has_no_other_permission(case: &Case, kubeconfig: &Path) -> Result<()> {
    let before = refused_requests(&case.client()).await?;
    let secrets: Api<corev1::Secret> = Api::all(connect(kubeconfig).await?);
    let listed = secrets.list(&ListParams::default()).await;
    ensure!(
        matches!(&listed, Err(kube::Error::Api(status)) if status.code == 403),
        "the service account must not list secrets"
    );
    let refused = refused_requests(&case.client()).await? - before;
    ensure!(refused == 1, "one request was refused, and {refused} are counted");
    Ok(())
}

/// The website of the scenario, and what the operator makes of it.
struct Websites<'a> {
    api: Api<DynamicObject>,
    deployments: Api<appsv1::Deployment>,
    services: Api<corev1::Service>,
    events: Api<corev1::Event>,
    namespace: &'a str,
    host: PathBuf,
}

impl<'a> Websites<'a> {
    fn of(case: &'a Case, hosts: &Path) -> Self {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Website"));
        Self {
            api: Api::namespaced_with(case.client(), case.namespace(), &kind),
            deployments: case.api(),
            services: case.api(),
            events: case.api(),
            namespace: case.namespace(),
            host: hosts.join(HOST),
        }
    }

    /// Creates the website, as soon as its definition is established.
    async fn create(&self) -> Result<()> {
        let website: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "example.com/v1",
            "kind": "Website",
            "metadata": { "name": NAME },
            "spec": { "image": "example/web:1", "replicas": 2, "host": HOST },
        }))?;
        eventually("the website to be accepted", async || Ok(self.api.create(&PostParams::default(), &website).await?))
            .await
            .map(drop)
    }

    /// Waits until all pods of the website are ready, and checks what the operator has written.
    async fn is_served(&self) -> Result<()> {
        let website = eventually_within("the website to be available", DISCOVERED, async || {
            let website = self.api.get(NAME).await?;
            let condition = &website.data["status"]["conditions"][0];
            ensure!(condition["reason"] == "Available", "the status is {}", website.data["status"]);
            Ok(website)
        })
        .await?;
        let status = &website.data["status"];
        ensure!(status["conditions"][0]["status"] == "True" && status["readyReplicas"] == 2, "the status is {status}");
        ensure!(
            status["observedGeneration"] == json!(website.metadata.generation),
            "the status of generation {:?} is {status}",
            website.metadata.generation
        );
        ensure!(website.finalizers() == ["example.com/host-name"], "the finalizers are {:?}", website.finalizers());
        is_applied(&website, &self.deployments.get(NAME).await.context("there is no Deployment")?)?;
        is_applied(&website, &self.services.get(NAME).await.context("there is no Service")?)?;
        let published = std::fs::read_to_string(&self.host).context("the host name is not published")?;
        ensure!(published == format!("{}/{NAME}", self.namespace), "the host leads to {published}");
        Ok(())
    }

    async fn has_events(&self) -> Result<()> {
        eventually("events about the website", async || {
            let events = self.events.list(&ListParams::default().fields("involvedObject.kind=Website")).await?;
            let of_operator = events
                .iter()
                .filter(|event| event.source.as_ref().and_then(|source| source.component.as_deref()) == Some(MANAGER));
            let mut reasons: Vec<&str> = of_operator.filter_map(|event| event.reason.as_deref()).collect();
            reasons.sort_unstable();
            reasons.dedup();
            ensure!(reasons == ["Available", "Progressing"], "the reasons are {reasons:?}");
            Ok(())
        })
        .await
    }

    /// Changes a field that the operator applies, and waits until it is as applied.
    async fn owned_objects_stay_as_applied(&self) -> Result<()> {
        let containers = json!([{ "name": "web", "image": "example/other:1" }]);
        let other = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
        let patch = Patch::Strategic(other);
        self.deployments.patch(NAME, &PatchParams::default(), &patch).await.context("cannot change the Deployment")?;
        eventually("the image to be as applied", async || {
            let deployment: Value = serde_json::to_value(self.deployments.get(NAME).await?)?;
            let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
            ensure!(image == "example/web:1", "the image is {image}");
            Ok(())
        })
        .await
    }

    /// Waits until the website is gone, with its host name and the objects that it owned.
    async fn is_gone(&self) -> Result<()> {
        eventually("the website to be gone", async || {
            // Without its definition the whole resource is not found.
            let website = self.api.get(NAME).await;
            let is_missing = matches!(&website, Err(kube::Error::Api(status)) if status.code == 404);
            ensure!(is_missing, "it is {website:?}");
            ensure!(!self.host.exists(), "its host name is published");
            let owned = (self.deployments.get_opt(NAME).await?, self.services.get_opt(NAME).await?);
            ensure!(matches!(owned, (None, None)), "its Deployment and Service are there");
            Ok(())
        })
        .await
    }
}

/// Checks that the operator has applied an object, which the website controls.
fn is_applied(website: &DynamicObject, object: &impl ResourceExt) -> Result<()> {
    let is_by_operator = object
        .managed_fields()
        .iter()
        .any(|entry| entry.manager.as_deref() == Some(MANAGER) && entry.operation.as_deref() == Some("Apply"));
    ensure!(is_by_operator, "the managers of its fields are {:?}", object.managed_fields());
    let owner = object.owner_references().iter().find(|owner| owner.controller == Some(true));
    ensure!(owner.map(|owner| &owner.uid) == website.metadata.uid.as_ref(), "its controller is {owner:?}");
    Ok(())
}
