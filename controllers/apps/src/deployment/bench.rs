//! The plan, published to `benches/plan.rs` by the feature `bench`.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::Uid;
use kcm_framework::api::views::{Deployment, PodPhase, ReplicaSet};

use super::gates::Gates;
use super::observe::Observed;
use super::plan::plan;

/// The input of a plan: the snapshot of a deployment that controls all its replica sets.
#[derive(Debug)]
pub struct PlanInput {
    observed: Observed,
    gates: Gates,
    now: Timestamp,
}

impl PlanInput {
    /// The input with all feature gates on. `pods` are those of the replica sets, which only a recreation reads.
    #[must_use]
    pub fn new(
        deployment: Arc<Deployment>,
        replica_sets: Vec<Arc<ReplicaSet>>,
        pods: Vec<(Uid, PodPhase)>,
        now: Timestamp,
    ) -> Self {
        let observed = Observed { deployment, replica_sets, pods };
        Self { observed, gates: Gates::read(|_| true), now }
    }

    /// Plans a reconcile, status included. Returns the number of steps.
    #[must_use]
    pub fn plan(&self) -> usize {
        let claimed = self.observed.replica_sets.clone();
        let planned = plan(&self.observed, claimed, self.gates, self.now);
        planned.expect("the deployment must pass validation").steps.len()
    }
}
