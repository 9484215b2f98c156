//! Shortens a schedule that fails, as long as it fails in the same way.
//!
//! First, perturbations are removed, by delta debugging. Then each moves to the latest anchor that still fails, becomes
//! the kind that asks for least, and gets the smallest numbers and times. That repeats until nothing changes.

use std::time::Duration;

use crate::schedule::{Failure, Moment, Order, Perturbation, Schedule, Settings, Until, What};
use crate::violation::Violation;

/// Largest number of runs that a shortening takes.
pub const MAX_RUNS: usize = 2000;

/// Number of later anchors that are tried: the next one often has no effect, while one after it fails again.
const LOOK_AHEAD: u32 = 4;

/// A schedule that was shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shrunk {
    /// The schedule. If [`is_minimal`](Self::is_minimal), it no longer fails without any one of its perturbations.
    pub schedule: Schedule,
    /// The violation of that schedule.
    pub violation: Violation,
    /// Number of runs that it took.
    pub runs: usize,
    /// `true` if nothing more could be taken away before the runs were used up.
    pub is_minimal: bool,
}

/// Shortens a schedule that fails, in at most `max_runs` runs. Returns `None` if it does not fail.
///
/// `run` returns the violation of a schedule, or `None` if it does not fail or does not apply. Only the
/// [same failure](Violation::is_same_failure) counts.
pub fn shrink(schedule: &Schedule, max_runs: usize, run: impl FnMut(&Schedule) -> Option<Violation>) -> Option<Shrunk> {
    let mut trial = Trial { run, runs: 0, max_runs };
    let violation = trial.run(schedule)?;
    let mut best = Best { schedule: schedule.clone(), violation };
    loop {
        let before = best.schedule.clone();
        trial.remove(&mut best);
        trial.vary(&mut best, later);
        trial.vary(&mut best, weaker);
        trial.vary(&mut best, smaller);
        if best.schedule == before || trial.is_over() {
            break;
        }
    }
    let Best { schedule, violation } = best;
    Some(Shrunk { schedule, violation, runs: trial.runs, is_minimal: !trial.is_over() })
}

struct Best {
    schedule: Schedule,
    violation: Violation,
}

struct Trial<F> {
    run: F,
    runs: usize,
    max_runs: usize,
}

impl<F: FnMut(&Schedule) -> Option<Violation>> Trial<F> {
    const fn is_over(&self) -> bool {
        self.runs >= self.max_runs
    }

    fn run(&mut self, schedule: &Schedule) -> Option<Violation> {
        if self.is_over() {
            return None;
        }
        self.runs += 1;
        (self.run)(schedule)
    }

    /// Takes `schedule` if it fails in the same way; returns whether it does.
    fn accept(&mut self, best: &mut Best, schedule: Schedule) -> bool {
        let same = self.run(&schedule).filter(|violation| violation.is_same_failure(&best.violation));
        let Some(violation) = same else { return false };
        *best = Best { schedule, violation };
        true
    }

    /// Delta debugging: tries each part of the list alone, then the list without each part, in ever smaller parts, until no
    /// single perturbation can be removed.
    fn remove(&mut self, best: &mut Best) {
        // The failure of the reference run has nothing to do with the perturbations.
        if !best.schedule.is_empty() && self.accept(best, Schedule::default()) {
            return;
        }
        let mut parts = 2;
        while best.schedule.len() > 1 && !self.is_over() {
            parts = parts.min(best.schedule.len());
            let size = best.schedule.len().div_ceil(parts);
            let chunks: Vec<Vec<Perturbation>> = best.schedule.0.chunks(size).map(<[_]>::to_vec).collect();
            if chunks.iter().any(|chunk| self.accept(best, Schedule(chunk.clone()))) {
                parts = 2;
                continue;
            }
            let without = |at: usize| {
                let others = chunks.iter().enumerate().filter(|(other, _)| *other != at);
                Schedule(others.flat_map(|(_, chunk)| chunk.iter().cloned()).collect())
            };
            if parts > 2 && (0..chunks.len()).any(|at| self.accept(best, without(at))) {
                parts -= 1;
            } else if size == 1 {
                return;
            } else {
                parts *= 2;
            }
        }
    }

    /// Replaces each perturbation by the first of its `variants` that fails too, as long as one does.
    fn vary(&mut self, best: &mut Best, variants: impl Fn(&Perturbation) -> Vec<Perturbation>) {
        for at in 0..best.schedule.len() {
            while !self.is_over() {
                let tried = variants(&best.schedule.0[at]).into_iter().any(|variant| {
                    let mut schedule = best.schedule.clone();
                    schedule.0[at] = variant;
                    self.accept(best, schedule)
                });
                if !tried {
                    break;
                }
            }
        }
    }
}

/// The same perturbation at later anchors, the farthest first.
fn later(one: &Perturbation) -> Vec<Perturbation> {
    let at_distance = |distance: u32| {
        let mut later = one.clone();
        later.at.number = later.at.number.checked_add(distance)?;
        Some(later)
    };
    (1..=LOOK_AHEAD).rev().filter_map(at_distance).collect()
}

/// The kinds that ask for less at the same anchor, least first: a process that dies asks for more than a connection that
/// breaks, which asks for more than an error of the server.
fn weaker(one: &Perturbation) -> Vec<Perturbation> {
    let kinds = match &one.what {
        What::Kill { moment: Moment::After, .. } => {
            vec![What::Fail { moment: Moment::After, code: 500 }, What::LoseResponse]
        }
        What::Kill { moment: Moment::Before, .. } => vec![What::Fail { moment: Moment::Before, code: 500 }],
        What::LoseResponse => vec![What::Fail { moment: Moment::After, code: 500 }],
        What::Pod(Failure::IsEvicted) => vec![What::Pod(Failure::Fails)],
        What::HoldRequest(_)
        | What::HoldResponse(_)
        | What::Hold(_)
        | What::Relist(_)
        | What::Fail { .. }
        | What::KillInFlight(_)
        | What::Pause(_)
        | What::Outage(_)
        | What::Clock(_)
        | What::Mutate
        | What::Pod(Failure::Fails | Failure::IsUnready)
        | What::Order(_)
        | What::Act(_) => Vec::new(),
    };
    kinds.into_iter().map(|what| Perturbation { at: one.at.clone(), what }).collect()
}

/// The same kind with smaller numbers and times, smallest first.
fn smaller(one: &Perturbation) -> Vec<Perturbation> {
    let kinds: Vec<What> = match &one.what {
        What::Kill { moment, restart, settings } => {
            let same = match settings {
                Settings::Same => None,
                Settings::Other => Some(What::Kill { moment: *moment, restart: *restart, settings: Settings::Same }),
            };
            let sooner = |restart| What::Kill { moment: *moment, restart, settings: *settings };
            same.into_iter().chain(smaller_times(*restart).into_iter().map(sooner)).collect()
        }
        What::KillInFlight(until) => smaller_ends(*until).into_iter().map(What::KillInFlight).collect(),
        What::Pause(time) => positive_times(*time).map(What::Pause).collect(),
        What::Outage(time) => positive_times(*time).map(What::Outage).collect(),
        What::Order(order) => {
            smaller_counts(order.steps).into_iter().map(|steps| What::Order(Order { steps, ..*order })).collect()
        }
        What::HoldRequest(until) => smaller_ends(*until).into_iter().map(What::HoldRequest).collect(),
        What::HoldResponse(until) => smaller_ends(*until).into_iter().map(What::HoldResponse).collect(),
        What::Hold(until) => smaller_ends(*until).into_iter().map(What::Hold).collect(),
        What::LoseResponse
        | What::Relist(_)
        | What::Fail { .. }
        | What::Clock(_)
        | What::Mutate
        | What::Pod(_)
        | What::Act(_) => Vec::new(),
    };
    kinds.into_iter().map(|what| Perturbation { at: one.at.clone(), what }).collect()
}

fn smaller_ends(until: Until) -> Vec<Until> {
    match until {
        Until::Writes(count) => smaller_counts(count).into_iter().map(Until::Writes).collect(),
        Until::Events(count) => smaller_counts(count).into_iter().map(Until::Events).collect(),
        Until::After(time) => positive_times(time).map(Until::After).collect(),
        Until::Rest => Vec::new(),
    }
}

fn smaller_counts(count: u32) -> Vec<u32> {
    let mut counts = vec![1, count / 2, count.saturating_sub(1)];
    counts.retain(|smaller| (1..count).contains(smaller));
    counts.dedup();
    counts
}

fn positive_times(time: Duration) -> impl Iterator<Item = Duration> {
    smaller_times(time).into_iter().filter(|time| !time.is_zero())
}

fn smaller_times(time: Duration) -> Vec<Duration> {
    let millis = time.as_millis().try_into().unwrap_or(u64::MAX);
    let mut times = vec![0, millis / 2];
    times.retain(|smaller| *smaller < millis);
    times.dedup();
    times.into_iter().map(Duration::from_millis).collect()
}

#[cfg(test)]
#[expect(clippy::wildcard_enum_match_arm, reason = "the tests look at few of the deviations")]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::schedule::{Access, Anchor, Place};

    fn write(number: u32, what: What) -> Perturbation {
        let place = Place::Request { of: "set".to_owned(), key: "a/b".to_owned(), access: Access::Write };
        Perturbation { at: Anchor { process: 1, place, number }, what }
    }

    fn act(name: u32) -> Perturbation {
        write(1, What::Act(name.to_string()))
    }

    fn failure() -> Option<Violation> {
        Some(Violation::new("D2.1", "too many"))
    }

    /// Runs with a limit that no test reaches, and returns the text of the shortened schedule.
    fn shortened(schedule: Vec<Perturbation>, fails: impl Fn(&Schedule) -> Option<Violation>) -> String {
        let shrunk = shrink(&Schedule(schedule), MAX_RUNS, fails).expect("it fails");
        assert!(shrunk.is_minimal, "after {} runs", shrunk.runs);
        shrunk.schedule.to_string()
    }

    #[test]
    fn a_schedule_that_does_not_fail_is_not_shortened() {
        assert_eq!(shrink(&Schedule(vec![act(1)]), MAX_RUNS, |_| None), None);
    }

    #[test]
    fn a_failure_of_the_reference_run_needs_no_perturbation() {
        assert_eq!(shortened(vec![act(1), act(2)], |_| failure()), "");
    }

    #[test]
    fn another_failure_does_not_count() {
        let fails = |schedule: &Schedule| {
            let is_first = schedule.len() == 3 && schedule.0.iter().all(|one| one.at.number == 1);
            if is_first { failure() } else { Some(Violation::new("O5", "a panic")) }
        };
        assert_eq!(shortened(vec![act(1), act(2), act(3)], fails).lines().count(), 3);
    }

    #[test]
    fn a_perturbation_moves_to_the_latest_anchor_that_fails() {
        let at = |schedule: &Schedule| schedule.0.first().map_or(0, |one| one.at.number);
        // The writes 2 and 4 make no difference.
        let fails = |schedule: &Schedule| [1, 3, 5].contains(&at(schedule)).then(failure).flatten();
        assert_eq!(shortened(vec![write(1, What::LoseResponse)], fails).lines().next(), {
            Some("set a/b write 5: fail after 500")
        });
    }

    #[test]
    fn a_kill_becomes_the_least_kind_that_fails() {
        let kill = || {
            let settings = Settings::Other;
            write(2, What::Kill { moment: Moment::After, restart: Duration::from_secs(8), settings })
        };
        let any = |schedule: &Schedule| (schedule.0.first()?.at.number == 2).then(failure).flatten();
        assert_eq!(shortened(vec![kill()], any), "set a/b write 2: fail after 500\n");
        let unknown = |schedule: &Schedule| match schedule.0.first()?.what {
            What::Kill { .. } | What::LoseResponse => any(schedule),
            _ => None,
        };
        assert_eq!(shortened(vec![kill()], unknown), "set a/b write 2: lose response\n");
        let dead = |schedule: &Schedule| match schedule.0.first()?.what {
            What::Kill { .. } => any(schedule),
            _ => None,
        };
        assert_eq!(shortened(vec![kill()], dead), "set a/b write 2: kill after\n");
    }

    #[test]
    fn numbers_and_times_fall_to_the_smallest_that_fail() {
        let held = |until: Until| vec![write(1, What::HoldResponse(until))];
        let fails_from = |least: u32| {
            move |schedule: &Schedule| match schedule.0.first()?.what {
                What::HoldResponse(Until::Writes(count)) if schedule.0[0].at.number == 1 && count >= least => failure(),
                What::HoldResponse(Until::After(time)) if schedule.0[0].at.number == 1 => {
                    (time >= Duration::from_secs(u64::from(least))).then(failure).flatten()
                }
                _ => None,
            }
        };
        let writes = shortened(held(Until::Writes(9)), fails_from(3));
        assert_eq!(writes, "set a/b write 1: hold response until 3 writes\n");
        let time = shortened(held(Until::After(Duration::from_secs(32))), fails_from(3));
        assert_eq!(time, "set a/b write 1: hold response until 4000ms\n");
    }

    #[test]
    fn the_runs_are_bounded() {
        let many: Vec<_> = (0..64).map(act).collect();
        let needed = |schedule: &Schedule| (schedule.len() > 40).then(failure).flatten();
        let shrunk = shrink(&Schedule(many), 30, needed).expect("it fails");
        assert!(!shrunk.is_minimal && shrunk.runs == 30 && needed(&shrunk.schedule).is_some());
    }

    proptest! {
        /// A failure that needs some perturbations together is shortened to these, in their order.
        #[test]
        fn what_is_left_is_what_is_needed(count in 1u32..24, needed in proptest::collection::btree_set(0u32..24, 1..5)) {
            let needed: BTreeSet<u32> = needed.into_iter().map(|one| one % count).collect();
            let names = |schedule: &Schedule| -> Vec<u32> {
                schedule.0.iter().map(|one| match &one.what {
                    What::Act(name) => name.parse().unwrap(),
                    other => panic!("{other}"),
                }).collect()
            };
            let fails = |schedule: &Schedule| {
                let names: BTreeSet<u32> = names(schedule).into_iter().collect();
                // The anchors are checked elsewhere.
                (needed.is_subset(&names) && schedule.0.iter().all(|one| one.at.number == 1)).then(failure).flatten()
            };
            let shrunk = shrink(&Schedule((0..count).map(act).collect()), MAX_RUNS, fails).unwrap();
            prop_assert!(shrunk.is_minimal);
            prop_assert_eq!(names(&shrunk.schedule), needed.into_iter().collect::<Vec<_>>());
        }
    }
}
