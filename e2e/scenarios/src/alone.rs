//! A control plane, or a sandbox, on which the manager under test is the only one.

use anyhow::Result;
use kcm_e2e_harness::control_plane::{ControlPlane, Options};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::manager;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::scenario::{Case, LIMITS};
use serde_json::{Value, json};

/// A control plane without helpers, and the manager under test; a sandbox where the suite runs on one.
pub(super) struct Alone {
    // Dropped in this order: the manager uses the API server.
    _manager: Process,
    pub(super) plane: ControlPlane,
}

impl Alone {
    /// Starts the manager of a scenario with its controllers.
    pub(super) async fn start(case: &Case) -> Result<Self> {
        // Only a sandbox has no account of a manager.
        let plane = match case.plane().manager_kubeconfig() {
            Some(_) => ControlPlane::start(Options::default()).await?,
            None => ControlPlane::sandbox(1).await?,
        };
        let manager = start_manager(case, &plane)?;
        Ok(Self { _manager: manager, plane })
    }

    /// kubectl in a namespace.
    pub(super) fn kubectl<'a>(&'a self, namespace: &'a str) -> Kubectl<'a> {
        Kubectl { kubeconfig: self.plane.kubeconfig(), namespace, folder: self.plane.logs() }
    }

    /// Applies an object in a namespace.
    pub(super) async fn apply(&self, namespace: &str, object: &Value) -> Result<()> {
        let kubectl = self.kubectl(namespace);
        kubectl.run(&format!("apply -f {}", kubectl.manifest(object)?)).await.map(drop)
    }

    /// Defines the kind `Widget` of `example.com/v1`, whose objects are in namespaces and may have any fields.
    pub(super) async fn define_widgets(&self) -> Result<()> {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "widgets.example.com" },
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
            },
        });
        self.apply("default", &definition).await?;
        let wait = "wait --for=condition=Established crd/widgets.example.com --timeout=30s";
        self.kubectl("default").run(wait).await.map(drop)
    }
}

fn start_manager(case: &Case, plane: &ControlPlane) -> Result<Process> {
    let controllers = format!("--controllers={}", case.controllers());
    let args: Vec<&str> = [controllers.as_str()].iter().chain(&LIMITS).copied().collect();
    manager::start(case.subject(), plane, &format!("alone-{}", case.subject()), &args)
}
