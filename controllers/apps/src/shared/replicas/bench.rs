//! The plans, published to `benches/plan.rs` by the feature `bench`.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::Selector;
use kcm_framework::api::views::{Pod, ReplicaSet};

use super::claim::plan_claims;
use super::gates::Gates;
use super::observe::Observed;
use super::plan::{Plan, Step, plan};
use super::rank::Occupancy;
use super::status::{CountedPods, recheck_at, status};

/// The input of a plan: the snapshot of a replica set that controls all its pods.
#[derive(Debug)]
pub struct PlanInput {
    observed: Observed<ReplicaSet>,
    selector: Selector,
    gates: Gates,
    now: Timestamp,
}

impl PlanInput {
    /// The input with all feature gates on, and without other replica sets of the same controller.
    #[must_use]
    pub fn new(owner: Arc<ReplicaSet>, pods: Vec<Arc<Pod>>, now: Timestamp) -> Self {
        let occupancy = Occupancy::of(pods.iter().map(|pod| &**pod));
        let selector = owner.selector.clone().expect("the replica set must have a valid selector");
        let observed = Observed { owner, pods, occupancy };
        Self { observed, selector, gates: Gates::read::<ReplicaSet>(|_| true), now }
    }

    /// Plans the number of pods. Returns how many pods the plan creates or deletes.
    #[must_use]
    pub fn plan(&self) -> usize {
        self.plan_for(&self.observed.pods)
    }

    /// Plans a whole reconcile: claims, number of pods, status and recheck.
    #[must_use]
    pub fn reconcile(&self) -> (usize, Option<Timestamp>) {
        let (owner, gates, now) = (&*self.observed.owner, self.gates, self.now);
        let claims = plan_claims(&self.observed, &self.selector);
        let active = &claims.active.kept;
        let changed = self.plan_for(active);
        let counted = CountedPods { active, terminating: claims.terminating };
        std::hint::black_box(status(owner, counted, None, gates, now));
        (changed, recheck_at(owner, active, now))
    }

    fn plan_for(&self, claimed: &[Arc<Pod>]) -> usize {
        match plan(&self.observed, claimed, self.gates, self.now) {
            Plan::Idle(_) | Plan::Scale(Step::RejectTemplate(_)) => 0,
            Plan::Scale(Step::CreatePods { count }) => count,
            Plan::Scale(Step::DeletePods { victims, .. }) => victims.len(),
        }
    }
}
