//! Known differences between the sandbox and kube-apiserver.

use serde::{Deserialize, Serialize};

use crate::rows;

/// A known difference from kube-apiserver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its subject: a feature, or the row that shows it.
    pub what: String,
    /// Behaviour of the sandbox, and the reason.
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    what: String,
    why: String,
}

/// Returns all known differences: first of whole features, then the differences in rows of the table.
#[must_use]
pub fn differences() -> Vec<Difference> {
    let listed: Vec<Listed> = rows::yaml("differences", include_str!("../scenarios/differences.yaml"));
    let features = listed.into_iter().map(|Listed { what, why }| Difference { what, why });
    let mut differences: Vec<Difference> = features.collect();
    for scenario in rows::all() {
        for differs in scenario.steps.into_iter().filter_map(|step| step.differs) {
            let difference = Difference { what: scenario.name.clone(), why: differs.why };
            // Steps of a row often differ for one reason.
            if differences.last() != Some(&difference) {
                differences.push(difference);
            }
        }
    }
    differences
}
