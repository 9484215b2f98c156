//! Walks: schedules of several perturbations by chance. A schedule that reaches new states is kept, and mutated.

use super::dice::Dice;
use super::{Explored, Later, Searcher};
use crate::scenario::Scenario;
use crate::schedule::{Perturbation, Schedule};

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

/// A schedule of one to six perturbations of the reference run.
fn walk(dice: &mut Dice, scenario: &Scenario, anchors: &[Later]) -> Schedule {
    let length = 1 + dice.below(MAX_LENGTH);
    let mut schedule: Vec<Perturbation> = (0..length).filter_map(|_| one(dice, scenario, anchors)).collect();
    schedule.sort();
    schedule.dedup();
    Schedule(schedule)
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
