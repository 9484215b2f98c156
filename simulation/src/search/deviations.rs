//! The perturbations that are legal at an anchor.

use std::time::Duration;

use crate::requests::Nature;
use crate::scenario::Scenario;
use crate::schedule::{Access, Anchor, By, Failure, Moment, Order, Place, Relist, Settings, Until, What};

/// Number of seeds of each random order that are tried without other perturbations.
const ORDERS: u32 = 8;
/// Number of steps of a random order.
const ORDERED_STEPS: u32 = 400;

/// The random order of a seed.
pub(crate) const fn order(by: By, seed: u32) -> What {
    What::Order(Order { by, seed, steps: ORDERED_STEPS })
}

/// Returns the perturbations that a real cluster can show at an anchor.
///
/// [`rare_deviations`] has the perturbations of machines and of the rest of the cluster.
pub(crate) fn deviations(anchor: &Anchor, nature: Nature, scenario: &Scenario) -> Vec<What> {
    let conflict = (nature == Nature::GuardedWrite).then_some(What::Fail { moment: Moment::Before, code: 409 });
    let acts = || scenario.acts.iter().map(|(name, _)| What::Act(name.clone()));
    let kill = |moment, seconds| What::Kill { moment, restart: Duration::from_secs(seconds), settings: Settings::Same };
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
        Place::Taken { .. } | Place::Start | Place::Kubelet => Vec::new(),
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

/// Returns the perturbations of machines, webhooks and kubelets, and random orders, that a real cluster can show at an anchor.
pub(crate) fn rare_deviations(anchor: &Anchor, nature: Nature, scenario: &Scenario) -> Vec<What> {
    let other = Settings::Other;
    let reconfigured = || What::Kill { moment: Moment::After, restart: Duration::ZERO, settings: other };
    let refused = |code| What::Fail { moment: Moment::Before, code };
    match &anchor.place {
        Place::Request { access: Access::Write, .. } => {
            let of_nature = match nature {
                Nature::Creation => vec![refused(400), refused(403), What::Mutate],
                // What this process has created can be no surprise to the next one. A write can.
                Nature::GuardedWrite => {
                    vec![refused(403), What::KillInFlight(Until::Writes(1)), What::KillInFlight(Until::Rest)]
                }
                Nature::PodStep | Nature::Other => vec![refused(403)],
            };
            of_nature.into_iter().chain(scenario.other_manager.is_some().then(reconfigured)).collect()
        }
        Place::Request { access: Access::Read, .. } | Place::Delivery { .. } => Vec::new(),
        Place::Taken { .. } => vec![
            What::Pause(Duration::from_mins(1)),
            What::Outage(Duration::from_secs(30)),
            What::Clock(-120),
            What::Clock(120),
        ],
        Place::Start => (1..=ORDERS).flat_map(|seed| [order(By::Step, seed), order(By::Actor, seed)]).collect(),
        Place::Kubelet => {
            let holds = [Until::Writes(1), Until::Rest, Until::After(Duration::from_mins(1))].map(What::Hold);
            let failures = match nature {
                Nature::PodStep if scenario.pods_fail => {
                    vec![What::Pod(Failure::IsUnready), What::Pod(Failure::Fails), What::Pod(Failure::IsEvicted)]
                }
                Nature::PodStep => vec![What::Pod(Failure::IsUnready)],
                Nature::Creation | Nature::GuardedWrite | Nature::Other => Vec::new(),
            };
            holds.into_iter().chain(failures).collect()
        }
    }
}
