//! A controller manager as a process: ours, or upstream's as the peer.

use anyhow::Result;

use crate::control_plane::ControlPlane;
use crate::process::Process;
use crate::subject::Subject;

/// Starts a controller manager with every right, `name` being that of its log.
///
/// Both run without leader election, upstream's also without an identity per controller.
///
/// # Errors
///
/// If it was not built (the message names the command) or cannot be started.
pub fn start<S: AsRef<str>>(subject: Subject, plane: &ControlPlane, name: &str, args: &[S]) -> Result<Process> {
    let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig().display());
    // Managers run beside each other, and share no port.
    let mut all = vec![kubeconfig, "--leader-elect=false".to_owned(), "--secure-port=0".to_owned()];
    if subject == Subject::Peer {
        all.push("--use-service-account-credentials=false".to_owned());
    }
    all.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
    Process::start(name, &subject.program()?, &all, plane.logs())
}

/// The flags by which our manager acts with the roles that Kubernetes binds to it and to its service accounts, and with
/// no others. They come after those of [`start`]: the last of two equal flags counts.
///
/// There are none for a sandbox, whose only user may do everything.
pub fn with_upstreams_roles(plane: &ControlPlane) -> Vec<String> {
    let Some(kubeconfig) = plane.manager_kubeconfig() else { return Vec::new() };
    vec![format!("--kubeconfig={}", kubeconfig.display()), "--use-service-account-credentials=true".to_owned()]
}
