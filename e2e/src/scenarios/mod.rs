//! All scenarios, by controller.

mod deployments;
mod host;
mod replica_sets;

use crate::suite::Scenario;

/// Every scenario there is.
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    host::SCENARIOS.iter().chain(&replica_sets::SCENARIOS).chain(&deployments::SCENARIOS)
}
