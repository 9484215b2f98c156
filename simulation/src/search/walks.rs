//! Walks: schedules of several perturbations by chance. A schedule that reaches new states is kept, and mutated.

use super::deviations::order;
use super::dice::Dice;
use super::{Explored, Later, Searcher};
use crate::scenario::Scenario;
use crate::schedule::{Anchor, By, Perturbation, Place, Schedule, What};

/// Largest number of perturbations of a walk.
const MAX_LENGTH: usize = 6;
/// Largest number of schedules that are kept. The oldest leave first.
const MAX_KEPT: usize = 500;

impl Searcher<'_> {
    /// Runs schedules by chance until the budget is used up: half of them are new, half are mutations of schedules that
    /// reached new states.
    pub(super) fn walks(&mut self, reference: &Explored) {
        let mut dice = Dice::new(self.budget.seed);
        let mut kept: Vec<Explored> = Vec::new();
        while !self.is_over() {
            let is_new = dice.below(2) == 0;
            let schedule = match dice.one_of(&kept).filter(|_| !is_new) {
                Some(explored) => mutated(&mut dice, self.scenario, explored, &reference.later),
                None => walk(&mut dice, self.scenario, &reference.later),
            };
            if let Some((explored, fresh)) = self.attempt(schedule)
                && fresh > 0
            {
                if kept.len() == MAX_KEPT {
                    kept.remove(0);
                }
                kept.push(explored);
            }
        }
    }
}

/// A schedule of one to six perturbations of the reference run. Half of the kinds are left out, others each time, and half
/// of the schedules have a random order of steps.
fn walk(dice: &mut Dice, scenario: &Scenario, anchors: &[Later]) -> Schedule {
    let length = 1 + dice.below(MAX_LENGTH);
    let kinds = dice.next();
    let is_drawn = |one: &Perturbation| kinds >> kind(&one.what) & 1 == 1;
    let drawn = (0..length).filter_map(|_| one(dice, scenario, anchors)).filter(is_drawn);
    let mut schedule: Vec<Perturbation> = drawn.collect();
    let by = match dice.below(8) {
        0..3 => Some(By::Step),
        3 => Some(By::Actor),
        _ => None,
    };
    if let Some(by) = by {
        let at = Anchor { process: 1, place: Place::Start, number: 1 };
        let seed = u32::try_from(dice.below(1 << 20)).unwrap_or_default();
        schedule.push(Perturbation { at, what: order(by, seed) });
    }
    schedule.sort();
    schedule.dedup();
    Schedule(schedule)
}

/// The number of a kind of perturbations.
const fn kind(what: &What) -> u32 {
    match what {
        What::Kill { .. } => 0,
        What::KillInFlight(_) => 1,
        What::Pause(_) => 2,
        What::Outage(_) => 3,
        What::Clock(_) => 4,
        What::LoseResponse => 5,
        What::HoldRequest(_) => 6,
        What::HoldResponse(_) => 7,
        What::Hold(_) => 8,
        What::Relist(_) => 9,
        What::Fail { .. } => 10,
        What::Mutate => 11,
        What::Pod(_) => 12,
        What::Order(_) => 13,
        What::Act(_) => 14,
    }
}

/// A perturbation at one of the anchors.
fn one(dice: &mut Dice, scenario: &Scenario, anchors: &[Later]) -> Option<Perturbation> {
    let later = dice.one_of(anchors)?;
    let what = dice.one_of(&later.deviations(scenario))?.clone();
    Some(Perturbation { at: later.anchor.clone(), what })
}

/// A schedule with one perturbation added, removed, or moved to another anchor.
fn mutated(dice: &mut Dice, scenario: &Scenario, of: &Explored, reference: &[Later]) -> Schedule {
    let mut schedule = of.schedule.0.clone();
    match dice.below(4) {
        0 if schedule.len() > 1 => {
            schedule.remove(dice.below(schedule.len()));
        }
        1 if !schedule.is_empty() => {
            let (at, is_later) = (dice.below(schedule.len()), dice.below(2) == 0);
            let number = &mut schedule[at].at.number;
            *number = if is_later { number.saturating_add(1) } else { number.saturating_sub(1).max(1) };
        }
        2 => schedule.extend(one(dice, scenario, reference)),
        _ => schedule.extend(one(dice, scenario, &of.later)),
    }
    schedule.truncate(MAX_LENGTH);
    Schedule(schedule)
}
