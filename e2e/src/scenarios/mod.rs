//! All scenarios, by controller.

mod replica_sets;

use crate::suite::Scenario;

/// Every scenario there is.
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    replica_sets::SCENARIOS.iter()
}
