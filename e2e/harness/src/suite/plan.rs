//! What a run is asked to do, and how it went.

/// What the scenarios run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Upstream's API server with etcd, its scheduler, and kwok's nodes.
    ControlPlane,
    /// The same with the API server of the minor version before: a control plane in the middle of an upgrade.
    OlderControlPlane,
    /// The sandbox of our binary.
    Sandbox,
}

/// Which of the selected scenarios the peer runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerRuns {
    /// Those whose sources or pinned versions are not the ones that it has passed.
    Changed,
    /// All, and the record is written anew for those that it passes.
    All,
}

/// How scenarios are run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// What they run on.
    pub on: On,
    /// How many control planes there are at most.
    pub jobs: usize,
    /// Which ones the peer runs.
    pub peer: PeerRuns,
}

/// How a run went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Scenarios that held.
    pub passed: usize,
    /// Scenarios that did not, and managers that failed beside them.
    pub failed: usize,
    /// What the peer has passed.
    pub(super) peer_passed: Vec<&'static str>,
}

impl Outcome {
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.peer_passed.extend(other.peer_passed);
    }
}
