//! A control plane on which the manager under test is the only one.

use anyhow::{Result, ensure};

use crate::control_plane::{ControlPlane, Options};
use crate::kubectl::Kubectl;
use crate::manager;
use crate::process::Process;
use crate::scenario::{Case, LIMITS};

/// A control plane without helpers, and the manager under test.
pub(super) struct Alone {
    // Dropped in this order: the manager uses the API server.
    manager: Process,
    pub(super) plane: ControlPlane,
}

impl Alone {
    /// Starts the manager of a scenario with its controllers.
    pub(super) async fn start(case: &Case) -> Result<Self> {
        let plane = ControlPlane::start(Options::default()).await?;
        let controllers = format!("--controllers={}", case.controllers());
        let args: Vec<&str> = [controllers.as_str()].iter().chain(&LIMITS).copied().collect();
        let manager = manager::start(case.subject(), &plane, "alone", &args)?;
        Ok(Self { manager, plane })
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

    /// Fails if any request of the manager was forbidden.
    pub(super) fn is_refused_nothing(&self) -> Result<()> {
        let log = self.manager.printed()?;
        ensure!(!log.to_lowercase().contains("forbidden"), "{log}");
        Ok(())
    }
}
