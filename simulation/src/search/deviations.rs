//! The perturbations that are legal at an anchor.

use std::time::Duration;

use crate::scenario::Scenario;
use crate::schedule::{Access, Anchor, Moment, Place, Relist, Until, What};

/// Returns the perturbations that a real cluster can show at an anchor.
///
/// A write `is_guarded` if it carries the resource version of its object.
pub(crate) fn deviations(anchor: &Anchor, is_guarded: bool, scenario: &Scenario) -> Vec<What> {
    let conflict = is_guarded.then_some(What::Fail { moment: Moment::Before, code: 409 });
    let acts = || scenario.acts.iter().map(|(name, _)| What::Act(name.clone()));
    let kill = |moment, seconds| What::Kill { moment, restart: Duration::from_secs(seconds) };
    match &anchor.place {
        Place::Request { access: Access::Write, .. } => vec![
            kill(Moment::Before, 0),
            kill(Moment::After, 0),
            kill(Moment::After, 60),
            What::LoseResponse,
            What::HoldRequest(Until::Rest),
            What::HoldRequest(Until::Events(1)),
            What::HoldResponse(Until::Rest),
            What::HoldResponse(Until::Events(2)),
            What::Fail { moment: Moment::Before, code: 500 },
            What::Fail { moment: Moment::Before, code: 429 },
            What::Fail { moment: Moment::After, code: 504 },
        ]
        .into_iter()
        .chain(conflict)
        .chain(acts())
        .collect(),
        Place::Request { access: Access::Read, .. } => vec![
            kill(Moment::Before, 0),
            What::LoseResponse,
            What::HoldResponse(Until::Rest),
            What::Fail { moment: Moment::Before, code: 503 },
        ]
        .into_iter()
        .chain(acts())
        .collect(),
        // The first request of the reconcile has the same perturbations.
        Place::Taken { .. } => Vec::new(),
        Place::Delivery { .. } => vec![
            What::Hold(Until::Writes(1)),
            What::Hold(Until::Writes(2)),
            What::Hold(Until::Events(3)),
            What::Hold(Until::Rest),
            What::Hold(Until::After(Duration::from_secs(5))),
            What::Relist(Relist::Clean),
            What::Relist(Relist::Bookmark),
            What::Relist(Relist::Broken),
            What::Relist(Relist::Compacted),
            What::Relist(Relist::Expired),
        ],
    }
}
