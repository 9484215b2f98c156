//! The decisions as `benches/plan.rs` sees them: a bench is another crate, and what it measures is private to this
//! folder.
//!
//! Public and hidden rather than behind a feature, which would be one more build to keep working.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::Selector;
use kcm_api::views::{Pod, ReplicaSet};

use super::claim::plan_claims;
use super::observe::Observed;
use super::plan::{Plan, Step, plan};
use super::rank::Occupancy;
use super::settings::Settings;
use super::status::{Counted, recheck_at, status};

/// A replica set as it was observed, with pods that are all its own.
#[derive(Debug)]
pub struct Decision {
    observed: Observed,
    selector: Selector,
    settings: Settings,
    now: Timestamp,
}

impl Decision {
    /// With all gates on, and no related replica sets but this.
    #[must_use]
    pub fn new(owner: Arc<ReplicaSet>, pods: Vec<Arc<Pod>>, now: Timestamp) -> Self {
        let occupancy = Occupancy::of(pods.iter().map(|pod| &**pod));
        let selector = owner.selector.clone().expect("what is measured must have a valid selector");
        let observed = Observed { owner, pods, occupancy };
        Self { observed, selector, settings: Settings::from_gates(|_| true), now }
    }

    /// Plans; by how many pods the number is off, as far as one reconcile puts it right.
    #[must_use]
    pub fn plan(&self) -> usize {
        self.plan_for(&self.observed.pods)
    }

    /// Everything that a reconcile decides: claims, plan, status and when to look again.
    #[must_use]
    pub fn reconcile(&self) -> (usize, Option<Timestamp>) {
        let (owner, settings, now) = (&self.observed.owner, self.settings, self.now);
        let claims = plan_claims(&self.observed, &self.selector);
        let active = &claims.active.kept;
        let off = self.plan_for(active);
        let status = status(owner, Counted { active, terminating: claims.terminating }, None, settings, now);
        (off, recheck_at(owner, active, &status, now))
    }

    fn plan_for(&self, claimed: &[Arc<Pod>]) -> usize {
        match plan(&self.observed, claimed, self.settings, self.now) {
            Plan::Rest(_) | Plan::Scale(Step::RefuseTemplate(_)) => 0,
            Plan::Scale(Step::CreatePods { count }) => count,
            Plan::Scale(Step::DeletePods { victims, .. }) => victims.len(),
        }
    }
}
