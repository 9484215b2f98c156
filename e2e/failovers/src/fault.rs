//! How a leader stops acting.

use std::fmt;
use std::time::Duration;

/// How a leader stops acting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It is asked to stop.
    Terminated,
    /// It is killed.
    Killed,
    /// Its process is stopped for longer than the lease, and goes on then.
    Frozen,
    /// Its network is lost for longer than the lease, and comes back then.
    CutOff,
    /// The API server is stopped for longer than the lease, and goes on then: neither manager reaches it.
    ServerFrozen,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 5] = [Self::Terminated, Self::Killed, Self::Frozen, Self::CutOff, Self::ServerFrozen];

    /// How long the successor may take until it has acted, for ours: from the fault on, and from its end on where the API
    /// server is stopped.
    pub(super) fn limit(self, lease: Duration) -> Duration {
        match self {
            Self::Terminated => Duration::from_secs(1),
            Self::Killed | Self::Frozen | Self::CutOff | Self::ServerFrozen => lease + Duration::from_secs(1),
        }
    }

    /// The name of the fault on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terminated => "term",
            Self::Killed => "kill",
            Self::Frozen => "stop",
            Self::CutOff => "network",
            Self::ServerFrozen => "server",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminated => "SIGTERM",
            Self::Killed => "SIGKILL",
            Self::Frozen => "SIGSTOP",
            Self::CutOff => "network lost",
            Self::ServerFrozen => "API server stopped",
        })
    }
}
