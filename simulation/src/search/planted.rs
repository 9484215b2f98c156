//! [`check_planted`]: the test of the search itself. It must find bugs that are planted.

use super::budget::Asked;
use super::check::print;
use super::{Budget, Reference, Stop, search, violation_of};
use crate::conductor::{Run, run};
use crate::plant::Plant;
use crate::scenario::Scenario;
use crate::schedule::Schedule;
use crate::shrink::{MAX_RUNS, shrink};

/// Runs after which a search for a planted bug ends, unless the environment has another budget. The table holds for this
/// number: with fewer runs than single perturbations, a search selects some of them.
const RUNS: usize = 400;

/// A planted bug that the search finds in a scenario.
#[derive(Debug, Clone, Copy)]
pub struct Planted {
    /// The bug that is planted.
    pub plant: Plant,
    /// The rule that breaks.
    pub rule: &'static str,
    /// Number of the first run that fails.
    pub run: usize,
    /// The shortened schedule that shows it.
    pub schedule: &'static str,
}

/// Checks a table of planted bugs: the schedule of each row breaks the rule of the row with the bug, and none without it.
///
/// If the environment has `KCM_SIMULATE_PLANTED`, searches for every bug, prints the table, and compares it with this one.
///
/// # Panics
/// If a row does not hold.
pub fn check_planted(scenario: fn() -> Scenario, table: &[Planted]) {
    let asked = Asked::from_environment(RUNS);
    if asked.plants {
        check_searches(scenario, table, asked.budget);
    } else if asked.replay.is_none() && !asked.is_long {
        for row in table {
            check_row(scenario, row);
        }
    }
}

fn check_row(scenario: fn() -> Scenario, row: &Planted) {
    let schedule: Schedule = row.schedule.parse().unwrap_or_else(|error| panic!("{error}"));
    for (plant, rule) in [(Some(row.plant), Some(row.rule)), (None, None)] {
        let (reference, scenario) = (Reference::of(&run(&scenario(), &Schedule::default())), scenario());
        let scenario = plant.into_iter().fold(scenario, Scenario::planted);
        let Run { violation, history, trace, not_applied, .. } = run(&scenario, &schedule);
        let violation = violation.or_else(|| reference.compare(&schedule, &history));
        let broken = violation.as_ref().map(|violation| violation.rule.as_str());
        assert_eq!(broken, rule, "{plant:?}: {violation:?} of {schedule}{trace}");
        assert_eq!(not_applied, [0; 0], "{plant:?}: {schedule}");
    }
}

fn check_searches(scenario: fn() -> Scenario, table: &[Planted], budget: Budget) {
    let mut differences = Vec::new();
    for plant in Plant::ALL {
        let scenario = scenario().planted(plant);
        let found = search(&scenario, Budget { stop: Stop::AtFirstFailure, ..budget });
        let expected = table.iter().find(|row| row.plant == plant);
        let Some(finding) = found.findings.first() else {
            print(&format!("{} · {plant:?} · not found in {} runs", scenario.name(), found.runs));
            differences.extend(expected.map(|_| format!("{plant:?} is not found")));
            continue;
        };
        let reference = Reference::of(&run(&scenario, &Schedule::default()));
        let shrunk = shrink(&finding.schedule, MAX_RUNS, |schedule| violation_of(&scenario, &reference, schedule));
        let schedule = shrunk.map_or_else(|| finding.schedule.clone(), |shrunk| shrunk.schedule);
        print(&format!(
            "{} · {plant:?} · {} · run {} · length {} · {}",
            scenario.name(),
            finding.violation,
            finding.run,
            schedule.len(),
            schedule.to_string().trim_end().replace('\n', " | "),
        ));
        let is_expected = expected.is_some_and(|row| row.rule == finding.violation.rule && row.run == finding.run);
        if !is_expected {
            differences.push(format!("{plant:?} breaks {} in run {}", finding.violation.rule, finding.run));
        }
    }
    assert!(differences.is_empty(), "the table is not up to date: {}", differences.join(", "));
}
