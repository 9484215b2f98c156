//! [`Budget`]: how much a search may run, from the test or from the environment.

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Environment variable for the largest number of runs of each scenario.
const RUNS: &str = "KCM_SIMULATE_RUNS";
/// Environment variable for the largest number of minutes of each scenario.
const MINUTES: &str = "KCM_SIMULATE_MINUTES";
/// Environment variable for the largest number of seconds of each scenario, instead of minutes.
const SECONDS: &str = "KCM_SIMULATE_SECONDS";
/// Environment variable for the seed of the walks.
const SEED: &str = "KCM_SIMULATE_SEED";
/// Environment variable for the file with the schedule that runs instead of a search.
const REPLAY: &str = "KCM_SIMULATE_REPLAY";
/// Environment variable that asks for a search for each planted bug, if it is set.
const PLANTED: &str = "KCM_SIMULATE_PLANTED";
/// Environment variable for the file to which the result of each search is appended.
const RECORD: &str = "KCM_SIMULATE_RECORD";

/// The end of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The search ends with the first failure.
    AtFirstFailure,
    /// The budget is used up.
    AtBudget,
}

/// The limits of a search.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Largest number of runs.
    pub runs: usize,
    /// Seed of the choices of the search.
    pub seed: u64,
    /// End of the search.
    pub stop: Stop,
    pub(super) deadline: Option<Instant>,
}

impl Budget {
    /// So many runs, with the seed 1, until the first failure.
    #[must_use]
    pub const fn runs(runs: usize) -> Self {
        Self { runs, seed: 1, stop: Stop::AtFirstFailure, deadline: None }
    }

    pub(super) fn is_over(&self, runs: usize) -> bool {
        runs >= self.runs || self.deadline.is_some_and(|deadline| now() >= deadline)
    }
}

/// The budget and schedules that the environment names.
pub(super) struct Asked {
    pub(super) budget: Budget,
    pub(super) replay: Option<PathBuf>,
    pub(super) record: Option<PathBuf>,
    pub(super) plants: bool,
    pub(super) is_long: bool,
    started: Instant,
}

impl Asked {
    /// Reads the environment. Without its variables, the budget is `runs`.
    pub(super) fn from_environment(runs: usize) -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let file = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let mut budget = Budget::runs(runs);
        let seconds = number(SECONDS).or_else(|| number(MINUTES).map(|minutes| minutes.saturating_mul(60)));
        if let Some(seconds) = seconds {
            (budget.runs, budget.deadline) = (usize::MAX, now().checked_add(Duration::from_secs(seconds)));
        }
        if let Some(asked) = number(RUNS) {
            budget.runs = usize::try_from(asked).unwrap_or(usize::MAX);
        }
        budget.seed = number(SEED).unwrap_or(budget.seed);
        let is_long = seconds.is_some() || number(RUNS).is_some();
        Self {
            budget,
            replay: file(REPLAY),
            record: file(RECORD),
            plants: std::env::var_os(PLANTED).is_some(),
            is_long,
            started: now(),
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        now().duration_since(self.started)
    }
}

#[expect(clippy::disallowed_methods, reason = "a search of some minutes ends by the real clock; no run depends on it")]
fn now() -> Instant {
    Instant::now()
}
