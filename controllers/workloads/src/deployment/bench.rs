//! The plan as `benches/plan.rs` sees it: a bench is another crate, and what it measures is private to this folder.
//!
//! Public and hidden rather than behind a feature, which would be one more build to keep working.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::Uid;
use kcm_api::views::{Deployment, PodPhase, ReplicaSet};

use super::observe::Observed;
use super::plan::plan;
use super::settings::Settings;

/// A deployment as it was observed, with replica sets that are all its own.
#[derive(Debug)]
pub struct Decision {
    observed: Observed,
    settings: Settings,
    now: Timestamp,
}

impl Decision {
    /// With all gates on; `pods` are those of the replica sets, which only a recreation looks at.
    #[must_use]
    pub fn new(
        deployment: Arc<Deployment>,
        replica_sets: Vec<Arc<ReplicaSet>>,
        pods: Vec<(Uid, PodPhase)>,
        now: Timestamp,
    ) -> Self {
        let observed = Observed { deployment, replica_sets, pods };
        Self { observed, settings: Settings::from_gates(|_| true), now }
    }

    /// Plans, status included; how many steps that gives.
    #[must_use]
    pub fn plan(&self) -> usize {
        let claimed = self.observed.replica_sets.clone();
        let planned = plan(&self.observed, claimed, self.settings, self.now);
        planned.expect("what is measured must be a deployment that the API admits").steps.len()
    }
}
