//! The search: all single perturbations of the reference run, pairs of them, and walks with feedback.
//!
//! ```text
//! reference run ──anchors──▶ singles ──anchors of each──▶ pairs, nearest first ──▶ walks
//!                                                            schedules with new states ──▶ mutated
//! ```

mod budget;
mod check;
mod deviations;
mod dice;
mod kept;
mod oracle;
mod pairs;
mod planted;
mod walks;

use std::collections::{BTreeMap, BTreeSet};

use crate::conductor::{Observe, Passed, Run, perform};
use crate::requests::Nature;
use crate::scenario::Scenario;
use crate::schedule::{Anchor, Schedule, What};
use crate::state::{Digest, digest};
use crate::violation::Violation;

pub use budget::{Budget, Stop};
pub use check::check;
pub use kept::replay_folder;
pub use planted::{Planted, check_planted};

use deviations::{deviations, rare_deviations};
use oracle::Reference;

/// Every run with this number is done twice. Both must have the same trace.
const TWICE: usize = 100;

/// The result of a search.
#[derive(Debug, Default)]
pub struct Search {
    /// Number of runs, the reference run included.
    pub runs: usize,
    /// Number of runs in which a perturbation had no effect.
    pub not_applied: usize,
    /// The schedules that break a rule, one for each failure.
    pub findings: Vec<Finding>,
    /// Number of distinct states.
    pub states: usize,
    /// Number of states that only one run has reached.
    pub rare: usize,
    /// Number of times that a run has reached a state.
    pub visits: usize,
    /// Number of distinct states at the end of a run.
    pub ends: usize,
    /// Number of runs and of states at some times of the search.
    pub curve: Vec<(usize, usize)>,
    /// `true` if the last runs found almost no new state.
    pub is_exhausted: bool,
}

/// A schedule that breaks a rule.
#[derive(Debug)]
pub struct Finding {
    /// Number of the run, counted from 1.
    pub run: usize,
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
    let mut searcher = Searcher::new(scenario, Budget { stop: Stop::AtBudget, ..Budget::runs(usize::MAX) });
    if let Some(reference) = searcher.reference() {
        searcher.singles(&reference);
    }
    searcher.finish()
}

/// Searches a scenario: its singles, then pairs of perturbations in half of the budget that is left, then walks.
///
/// With a budget below the number of singles, an even selection of these runs.
#[must_use]
pub fn search(scenario: &Scenario, budget: Budget) -> Search {
    search_with(scenario, budget, |_| {})
}

fn search_with(scenario: &Scenario, budget: Budget, progress: impl FnMut(&Search)) -> Search {
    let mut searcher = Searcher::new(scenario, budget);
    searcher.progress = Some(Box::new(progress));
    if let Some(reference) = searcher.reference() {
        let singles = searcher.singles(&reference);
        searcher.pairs(&singles);
        searcher.walks(&reference);
    }
    searcher.finish()
}

/// Returns the violation of a schedule, as a search finds it. A schedule whose perturbations do not all apply has none.
pub(crate) fn violation_of(scenario: &Scenario, reference: &Reference, schedule: &Schedule) -> Option<Violation> {
    let run = perform(scenario, schedule, Observe::Nothing);
    if !run.not_applied.is_empty() {
        return None;
    }
    run.violation.or_else(|| reference.compare(schedule, &run.history))
}

/// A schedule that was run, with the anchors at which it can be extended.
struct Explored {
    schedule: Schedule,
    /// The anchors after the last perturbation, the nearest first.
    later: Vec<Later>,
}

/// An anchor at which a schedule can be extended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Later {
    /// Number of steps since the last perturbation.
    distance: u32,
    anchor: Anchor,
    nature: Nature,
}

impl Later {
    /// All perturbations that are legal here.
    fn deviations(&self, scenario: &Scenario) -> Vec<What> {
        let mut all = deviations(&self.anchor, self.nature, scenario);
        all.extend(rare_deviations(&self.anchor, self.nature, scenario));
        all
    }
}

/// Called with the state of a search after each of its runs.
type Progress<'a> = Box<dyn FnMut(&Search) + 'a>;

struct Searcher<'a> {
    scenario: &'a Scenario,
    budget: Budget,
    result: Search,
    reference: Option<Reference>,
    states: BTreeMap<Digest, u32>,
    ends: BTreeSet<Digest>,
    has_stopped: bool,
    /// Number of the last run with a single perturbation.
    singles: usize,
    progress: Option<Progress<'a>>,
}

impl Search {
    /// Estimates the share of the states of a further run that no run has reached, in percent (Good and Turing).
    #[must_use]
    pub fn missing(&self) -> f64 {
        let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        100.0 * count(self.rare) / count(self.visits.max(1))
    }
}

impl<'a> Searcher<'a> {
    fn new(scenario: &'a Scenario, budget: Budget) -> Self {
        Self {
            scenario,
            budget,
            result: Search::default(),
            reference: None,
            states: BTreeMap::new(),
            ends: BTreeSet::new(),
            has_stopped: false,
            singles: 0,
            progress: None,
        }
    }

    fn is_over(&self) -> bool {
        self.has_stopped || self.budget.is_over(self.result.runs)
    }

    /// Runs without perturbations. Returns `None` if that fails: nothing is to be searched then.
    fn reference(&mut self) -> Option<Explored> {
        let explored = self.attempt(Schedule::default());
        if self.result.findings.is_empty() { explored.map(|(explored, _)| explored) } else { None }
    }

    /// Runs each single perturbation of the reference run, or an even selection.
    fn singles(&mut self, reference: &Explored) -> Vec<Explored> {
        let scenario = self.scenario;
        let mut all = Vec::new();
        // The frequent ones first.
        for legal in [deviations, rare_deviations] {
            for Later { anchor, nature, .. } in &reference.later {
                let of = |what| Schedule::single(anchor.clone(), what);
                all.extend(legal(anchor, *nature, scenario).into_iter().map(of));
            }
        }
        let left = self.budget.runs.saturating_sub(self.result.runs).clamp(1, all.len().max(1));
        let chosen = (0..left).filter_map(|number| all.get(number * all.len() / left).cloned());
        self.singles = self.result.runs + left.min(all.len());
        let mut explored = Vec::new();
        for schedule in chosen.collect::<Vec<_>>() {
            if self.is_over() {
                break;
            }
            explored.extend(self.attempt(schedule).map(|(explored, _)| explored));
        }
        explored
    }

    /// Runs a schedule. Returns `None` if it fails, else the number of new states too.
    fn attempt(&mut self, schedule: Schedule) -> Option<(Explored, usize)> {
        let run = perform(self.scenario, &schedule, Observe::States);
        self.result.runs += 1;
        self.result.not_applied += usize::from(!run.not_applied.is_empty());
        // Its anchor is one of the reference run, which is the same until there.
        let is_idle = self.result.runs <= self.singles && !run.not_applied.is_empty();
        let idle = is_idle.then(|| Violation::new("S2", "a single perturbation has no effect"));
        let fresh = self.learn(&run);
        let Run { violation, history, trace, anchors, perturbed, .. } = run;
        let reference = self.reference.as_ref();
        let violation = violation.or_else(|| reference.and_then(|it| it.compare(&schedule, &history)));
        let violation = violation.or_else(|| self.differs(&schedule, &trace)).or(idle);
        if let Some(progress) = &mut self.progress {
            progress(&self.result);
        }
        if let Some(violation) = violation {
            self.has_stopped |= self.budget.stop == Stop::AtFirstFailure;
            if !self.result.findings.iter().any(|known| known.violation.is_same_failure(&violation)) {
                self.result.findings.push(Finding { run: self.result.runs, schedule, violation, trace });
            }
            return None;
        }
        let mut later: Vec<Later> = anchors
            .into_iter()
            .filter_map(|(anchor, Passed { step, nature })| {
                Some(Later { distance: step.checked_sub(perturbed)?, anchor, nature })
            })
            .collect();
        later.sort();
        Some((Explored { schedule, later }, fresh))
    }

    /// Counts the states of a run. Returns the number of new ones.
    fn learn(&mut self, run: &Run) -> usize {
        if self.reference.is_none() {
            self.reference = Some(Reference::of(run));
        }
        let known = self.states.len();
        for state in &run.states {
            let visits = self.states.entry(*state).or_default();
            *visits += 1;
            match *visits {
                1 => self.result.rare += 1,
                2 => self.result.rare -= 1,
                _ => {}
            }
        }
        self.ends.insert(digest(&run.history.end(), &crate::state::Surroundings::default()));
        self.result.states = self.states.len();
        self.result.visits += run.states.len();
        self.result.ends = self.ends.len();
        if self.result.runs.is_power_of_two() || self.result.runs.is_multiple_of(1000) {
            self.result.curve.push((self.result.runs, self.states.len()));
        }
        self.states.len() - known
    }

    /// Runs every hundredth schedule again: the same schedule must give the same run.
    fn differs(&self, schedule: &Schedule, trace: &str) -> Option<Violation> {
        if !self.result.runs.is_multiple_of(TWICE) {
            return None;
        }
        let again = perform(self.scenario, schedule, Observe::Nothing);
        let line = trace.lines().zip(again.trace.lines()).find(|(first, second)| first != second);
        (trace != again.trace).then(|| {
            let detail = format!("{:?}", line.unwrap_or(("one run ends", "earlier")));
            Violation::new("S1", "two runs of a schedule differ").detail(detail)
        })
    }

    fn finish(mut self) -> Search {
        let runs = self.result.runs;
        self.result.curve.push((runs, self.states.len()));
        let early = self.result.curve.iter().take_while(|(at, _)| *at <= runs - runs / 5).last();
        let new = early.map_or(usize::MAX, |(_, states)| self.states.len() - states);
        self.result.is_exhausted = !self.has_stopped && new * 1000 < self.states.len();
        self.result
    }
}
