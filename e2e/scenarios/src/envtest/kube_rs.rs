use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};

/// Collects garbage and deletes namespaces until the process is dropped.
pub(super) fn start_controller_manager(program: &Path, kubeconfig: &Path) -> std::io::Result<Child> {
    Command::new(program)
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg("--controllers=garbage-collector-controller,namespace-controller")
        .args(["--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}
