//! Which controller manager a scenario runs: ours, or upstream's as the peer.

use std::fmt;
use std::path::PathBuf;

use anyhow::Result;

use crate::binaries;

/// Which controller manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The one of this workspace.
    Ours,
    /// Upstream's, against which ours is compared.
    Peer,
}

impl Subject {
    /// Both, ours first.
    pub const ALL: [Self; 2] = [Self::Ours, Self::Peer];

    /// The path of its program.
    ///
    /// # Errors
    ///
    /// If it was not built; the message names the command that builds it.
    pub fn program(self) -> Result<PathBuf> {
        const NAME: &str = "kube-controller-manager";
        match self {
            Self::Ours => binaries::ours(NAME, "kcm-controller-manager"),
            Self::Peer => binaries::control_plane(NAME),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "ours",
            Self::Peer => "peer",
        })
    }
}
