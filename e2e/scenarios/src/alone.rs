//! A control plane, or a sandbox, on which the manager under test is the only one.

use anyhow::{Result, ensure};
use kcm_e2e_harness::control_plane::{ControlPlane, Options};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::manager;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::scenario::{Case, LIMITS};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::PATIENCE;
use serde_json::{Value, json};

/// A control plane without helpers, and the manager under test; a sandbox where the suite runs on one.
pub(super) struct Alone {
    // Dropped in this order: the manager uses the API server.
    manager: Process,
    pub(super) plane: ControlPlane,
}

impl Alone {
    /// Starts the manager of a scenario with its controllers.
    pub(super) async fn start(case: &Case) -> Result<Self> {
        Self::start_with(case, case.subject()).await
    }

    /// As [`start`](Self::start), with the manager of either subject.
    pub(super) async fn start_with(case: &Case, subject: Subject) -> Result<Self> {
        // Only a sandbox has no account of a manager.
        let plane = match case.plane().manager_kubeconfig() {
            Some(_) => ControlPlane::start(Options::default()).await?,
            None => ControlPlane::sandbox(1).await?,
        };
        let manager = start_manager(case, subject, &plane)?;
        Ok(Self { manager, plane })
    }

    /// Ends the manager; leader election lets the next one start after that.
    pub(super) async fn end_manager(&mut self) -> Result<()> {
        self.manager.terminate()?;
        self.manager.wait(PATIENCE).await?;
        Ok(())
    }

    /// Starts the manager of either subject, when another has ended.
    pub(super) fn start_manager(&mut self, case: &Case, subject: Subject) -> Result<()> {
        self.manager = start_manager(case, subject, &self.plane)?;
        Ok(())
    }

    /// As [`start`](Self::start), with the rights of a service account of `kube-system` and no others.
    pub(super) async fn start_as(case: &Case, account: &str) -> Result<Self> {
        Self::start_as_with(case, account, &[]).await
    }

    /// As [`start_as`](Self::start_as), with further arguments.
    pub(super) async fn start_as_with(case: &Case, account: &str, args: &[&str]) -> Result<Self> {
        let plane = ControlPlane::start(Options::default()).await?;
        let user = format!("system:serviceaccount:kube-system:{account}");
        let kubeconfig = plane.kubeconfig_for(&user, &["system:serviceaccounts"])?;
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        let controllers = format!("--controllers={}", case.controllers());
        let usual = [kubeconfig.as_str(), controllers.as_str(), "--leader-elect=false", "--secure-port=0"];
        let args = [&usual, args].concat();
        let manager = Process::start("alone", &case.subject().program()?, &args, plane.logs())?;
        Ok(Self { manager, plane })
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

    /// Fails if any request of the manager was forbidden.
    pub(super) fn is_refused_nothing(&self) -> Result<()> {
        let log = self.manager.printed()?;
        ensure!(!log.to_lowercase().contains("forbidden"), "{log}");
        Ok(())
    }
}

fn start_manager(case: &Case, subject: Subject, plane: &ControlPlane) -> Result<Process> {
    let controllers = format!("--controllers={}", case.controllers());
    let args: Vec<&str> = [controllers.as_str()].iter().chain(&LIMITS).copied().collect();
    manager::start(subject, plane, &format!("alone-{subject}"), &args)
}
