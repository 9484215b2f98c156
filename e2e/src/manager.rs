//! A controller manager as a process: ours, or upstream's as the peer.

use anyhow::Result;

use crate::control_plane::ControlPlane;
use crate::process::Process;
use crate::subject::Subject;

/// Starts a controller manager with every right, `name` being that of its log.
///
/// Upstream's runs without leader election and without an identity per controller.
///
/// # Errors
///
/// If it was not built (the message names the command) or cannot be started.
pub fn start<S: AsRef<str>>(subject: Subject, plane: &ControlPlane, name: &str, args: &[S]) -> Result<Process> {
    let mut all = vec![format!("--kubeconfig={}", plane.kubeconfig().display())];
    if subject == Subject::Peer {
        let alone = ["--leader-elect=false", "--use-service-account-credentials=false", "--secure-port=0"];
        all.extend(alone.map(str::to_owned));
    }
    all.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
    Process::start(name, &subject.program()?, &all, plane.logs())
}
