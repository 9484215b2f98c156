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
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 4] = [Self::Terminated, Self::Killed, Self::Frozen, Self::CutOff];

    /// How long the successor may take until it has acted, for ours; without a limit of its own, as after a kill.
    pub(super) fn limit(self, lease: Duration) -> Duration {
        match self {
            Self::Terminated => Duration::from_secs(1),
            Self::Killed | Self::Frozen | Self::CutOff => lease + Duration::from_secs(1),
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
        })
    }
}
