//! The steps of a plan as they are carried out: without borrows of the snapshot, and with upstream's messages.

use std::fmt;

use super::names::Plugin;
use super::plan::{Failure, Forced, Step};

/// A step that is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Keep,
    StartUnmountWait,
    Attach,
    Report,
    /// The message says why the attempt failed.
    FailAttach(String),
    ReportConflict,
    Withdraw,
    Detach(Option<Forced>),
    /// The message says why the attempt failed.
    FailDetach(String),
}

impl Action {
    pub(super) fn of(step: &Step<'_>, volume: &str) -> Self {
        match step {
            Step::Keep => Self::Keep,
            Step::StartUnmountWait => Self::StartUnmountWait,
            Step::Attach => Self::Attach,
            Step::Report => Self::Report,
            Step::FailAttach(failure) => Self::FailAttach(reason(*failure, volume, Operation::Attach)),
            Step::ReportConflict => Self::ReportConflict,
            Step::Withdraw => Self::Withdraw,
            Step::Detach(forced) => Self::Detach(*forced),
            Step::FailDetach(failure) => Self::FailDetach(reason(*failure, volume, Operation::Detach)),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    Attach,
    Detach,
}

fn reason(failure: Failure<'_>, volume: &str, operation: Operation) -> String {
    let (driver, handle) = match Plugin::of(volume) {
        Plugin::Csi { driver, handle } => (driver, handle),
        Plugin::ReportOnly | Plugin::Unknown => ("", volume),
    };
    match (failure, operation) {
        (Failure::Driver(message), _) => message.to_owned(),
        (Failure::BeingDeleted, _) => "volume attachment is being deleted".to_owned(),
        (Failure::TimedOut, Operation::Attach) => {
            format!("timed out waiting for external-attacher of {driver} CSI driver to attach volume {handle}")
        }
        // Upstream does not know the driver when it detaches.
        (Failure::TimedOut, Operation::Detach) => {
            format!("timed out waiting for external-attacher of unknown CSI driver to detach volume {handle}")
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("keeps the volume, which a pod needs again"),
            Self::StartUnmountWait => f.write_str("no pod needs the volume any more"),
            Self::Attach => f.write_str("attaches the volume"),
            Self::Report => f.write_str("adds the volume to the status of the node"),
            Self::FailAttach(error) => write!(f, "the volume is not attached yet: {error}"),
            Self::ReportConflict => f.write_str("waits until the volume is detached from another node"),
            Self::Withdraw => f.write_str("removes the volume from the status of the node"),
            Self::Detach(None) => f.write_str("detaches the volume"),
            Self::Detach(Some(Forced::Timeout)) => {
                f.write_str("detaches the volume by force, because the node is not ready and has not unmounted it")
            }
            Self::Detach(Some(Forced::OutOfService)) => {
                f.write_str("detaches the volume by force, because the node is out of service")
            }
            Self::FailDetach(error) => write!(f, "the volume is not detached yet: {error}"),
        }
    }
}
