//! The search: all single perturbations of the reference run.

use std::collections::BTreeMap;
use std::time::Duration;

use kcm_sandbox_apiserver::Resource;

use crate::conductor::{Run, run};
use crate::history::History;
use crate::scenario::Scenario;
use crate::schedule::{Access, Anchor, Moment, Place, Relist, Schedule, Until, What};
use crate::violation::Violation;

/// The result of a search.
#[derive(Debug)]
pub struct Search {
    /// Number of runs, the reference included.
    pub runs: usize,
    /// Number of runs whose perturbation was not reached.
    pub not_applied: usize,
    /// The schedules that break a rule.
    pub findings: Vec<Finding>,
}

/// A schedule that breaks a rule.
#[derive(Debug)]
pub struct Finding {
    /// The schedule of the run.
    pub schedule: Schedule,
    /// The rule that is broken.
    pub violation: Violation,
    /// The steps of the run, one line each.
    pub trace: String,
}

/// Runs a scenario without perturbations, and then once with each single perturbation of that run.
#[must_use]
pub fn singles(scenario: &Scenario) -> Search {
    let reference = run(scenario, &Schedule::default());
    let mut search = Search { runs: 1, not_applied: 0, findings: Vec::new() };
    if let Some(violation) = reference.violation {
        search.findings.push(Finding { schedule: Schedule::default(), violation, trace: reference.trace });
        return search;
    }
    let created = creations(&reference.history);
    for anchor in &reference.anchors {
        for what in deviations(anchor, scenario) {
            let schedule = Schedule::single(anchor.clone(), what);
            let Run { violation, history, trace, not_applied, .. } = run(scenario, &schedule);
            search.runs += 1;
            search.not_applied += usize::from(!not_applied.is_empty());
            let acts = schedule.0.iter().any(|one| matches!(one.what, What::Act(_)));
            let violation = violation.or_else(|| if acts { None } else { more_creations(&created, &history) });
            if let Some(violation) = violation {
                search.findings.push(Finding { schedule, violation, trace });
            }
        }
    }
    search
}

/// The perturbations that are legal at an anchor.
fn deviations(anchor: &Anchor, scenario: &Scenario) -> Vec<What> {
    let acts = scenario.acts.iter().map(|(name, _)| What::Act(name.clone()));
    let kill = |moment| What::Kill { moment, restart: Duration::ZERO };
    match &anchor.place {
        Place::Request { access: Access::Write, .. } => vec![
            kill(Moment::Before),
            kill(Moment::After),
            What::LoseResponse,
            What::HoldRequest(Until::Rest),
            What::HoldResponse(Until::Rest),
            What::Fail { moment: Moment::Before, code: 500 },
            What::Fail { moment: Moment::After, code: 504 },
        ]
        .into_iter()
        .chain(acts)
        .collect(),
        Place::Request { access: Access::Read, .. } => {
            vec![kill(Moment::Before), What::LoseResponse, What::HoldResponse(Until::Rest)]
                .into_iter()
                .chain(acts)
                .collect()
        }
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

fn creations(history: &History) -> BTreeMap<Resource, u32> {
    let mut created = BTreeMap::new();
    for change in history.changes.iter().filter(|change| change.creates()) {
        *created.entry(change.resource.clone()).or_default() += 1;
    }
    created
}

/// O7: creations beyond those of the reference run and one for each kill.
fn more_creations(reference: &BTreeMap<Resource, u32>, history: &History) -> Option<Violation> {
    creations(history).into_iter().find_map(|(resource, count)| {
        let allowed = reference.get(&resource).copied().unwrap_or_default() + history.kills;
        let detail = format!("{count} instead of {allowed}");
        (count > allowed)
            .then(|| Violation::new("O7", format!("too many {} are created", resource.plural)).detail(detail))
    })
}
