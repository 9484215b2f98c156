//! A controller manager as a process: ours, or upstream's as the peer.

use std::ops::{Deref, DerefMut};

use anyhow::Result;

use crate::control_plane::ControlPlane;
use crate::process::Process;
use crate::subject::Subject;

/// A running controller manager with every right. It derefs to its [`Process`].
#[derive(Debug)]
pub struct Manager {
    subject: Subject,
    process: Process,
}

impl Manager {
    /// Starts ours.
    ///
    /// # Errors
    ///
    /// If it was not built (the message names the command) or cannot be started.
    pub fn ours<S: AsRef<str>>(plane: &ControlPlane, args: &[S]) -> Result<Self> {
        Self::start(Subject::Ours, plane, "ours", args)
    }

    /// Starts upstream's, without leader election and without an identity per controller.
    ///
    /// # Errors
    ///
    /// If it was not built (the message names the command) or cannot be started.
    pub fn peer<S: AsRef<str>>(plane: &ControlPlane, args: &[S]) -> Result<Self> {
        Self::start(Subject::Peer, plane, "peer", args)
    }

    /// Starts either, with `name` as the name of its log.
    ///
    /// # Errors
    ///
    /// If it was not built (the message names the command) or cannot be started.
    pub fn start<S: AsRef<str>>(subject: Subject, plane: &ControlPlane, name: &str, args: &[S]) -> Result<Self> {
        let mut all = vec![format!("--kubeconfig={}", plane.kubeconfig().display())];
        if subject == Subject::Peer {
            let alone = ["--leader-elect=false", "--use-service-account-credentials=false", "--secure-port=0"];
            all.extend(alone.map(str::to_owned));
        }
        all.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
        Ok(Self { subject, process: Process::start(name, &subject.program()?, &all, plane.logs())? })
    }

    /// Whose it is.
    pub fn subject(&self) -> Subject {
        self.subject
    }
}

impl Deref for Manager {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Manager {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}
