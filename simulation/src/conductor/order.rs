//! A random order of steps: partial order sampling, and probabilistic concurrency testing.

use std::collections::BTreeMap;

use kcm_framework::api::Fnv1a;

use super::Conductor;
use crate::holds::is_free;
use crate::schedule::{By, Order};

/// Number of steps at which the priority of the first actor falls.
const CHANGES: u64 = 3;
/// Number of steps after which the priorities of all steps are drawn anew.
const KEPT: u32 = 8;
/// Number of steps among which these steps are.
const SPREAD: u64 = 200;

/// The steps that remain of a random order, and the number of steps that each actor has done.
#[derive(Debug, Default)]
pub(super) struct Shuffle {
    order: Option<Order>,
    done: u32,
    steps: BTreeMap<String, u64>,
    /// The actors whose priority has fallen, by the number of the step.
    fallen: BTreeMap<String, u32>,
}

/// A step that can be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Response(usize),
    Held(usize),
    Request(usize),
    Deliver(usize),
    Kubelet,
    User,
}

impl Shuffle {
    pub(super) fn begin(&mut self, order: Order) {
        *self = Self { order: Some(order), ..Self::default() };
    }

    /// Returns the index of the actor whose step is next.
    fn choose(&mut self, actors: &[String]) -> Option<usize> {
        let order = self.order.filter(|order| self.done < order.steps)?;
        self.done += 1;
        let seeded = || Fnv1a::seeded(u64::from(order.seed));
        let of_step = |actor: &String, step: u64| mixed(seeded().part(actor).bytes(&step.to_le_bytes()).value());
        let first = |priority: &dyn Fn(&String) -> (bool, u64)| {
            (0..actors.len()).max_by_key(|index| actors.get(*index).map(|actor| (priority(actor), usize::MAX - index)))
        };
        match order.by {
            By::Step => {
                let (steps, draw) = (&self.steps, u64::from(self.done / KEPT) << 32);
                let number = |actor: &String| steps.get(actor).copied().unwrap_or_default();
                let index = first(&|actor| (true, of_step(actor, draw + number(actor))))?;
                *self.steps.entry(actors.get(index)?.clone()).or_default() += 1;
                Some(index)
            }
            By::Actor => {
                let fallen = &self.fallen;
                let priority = |actor: &String| match fallen.get(actor) {
                    Some(step) => (false, u64::from(u32::MAX - step)),
                    None => (true, of_step(actor, 0)),
                };
                let index = first(&priority)?;
                let is_change = |change: u64| mixed(seeded().bytes(&change.to_le_bytes()).value()) % SPREAD;
                if (0..CHANGES).any(|change| is_change(change) == u64::from(self.done)) {
                    self.fallen.insert(actors.get(index)?.clone(), self.done);
                }
                Some(index)
            }
        }
    }

    const fn is_active(&self) -> bool {
        match self.order {
            Some(order) => self.done < order.steps,
            None => false,
        }
    }
}

/// Mixes a hash, so that similar texts have different priorities.
const fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 27
}

impl Conductor<'_> {
    /// Does a step by chance. Returns `None` if the default order is in force or no step is possible.
    pub(super) fn shuffled(&mut self) -> Option<bool> {
        if !self.shuffle.is_active() {
            return None;
        }
        let (mut choices, mut actors) = (Vec::new(), Vec::new());
        let mut add = |choice, actor: String| {
            choices.push(choice);
            actors.push(actor);
        };
        let now = self.progress;
        for (index, answer) in self.answers.iter().enumerate().filter(|(_, it)| is_free(it.hold.as_ref(), now, None)) {
            add(Choice::Response(index), answer.actor.clone());
        }
        for (index, pending) in self.held.iter().enumerate().filter(|(_, it)| is_free(it.hold.as_ref(), now, None)) {
            add(Choice::Held(index), pending.waiting.actor());
        }
        for (index, actor) in self.gate.actors().into_iter().enumerate() {
            add(Choice::Request(index), actor);
        }
        for (index, cache) in self.caches.iter().enumerate() {
            let waiting = cache.waiting.len();
            if waiting > 0 && is_free(cache.hold.as_ref(), now, Some(waiting)) {
                add(Choice::Deliver(index), format!("cache {}", cache.name));
            }
        }
        if !self.is_out() && is_free(self.kubelet.hold.as_ref(), now, None) && self.kubelet_step().is_some() {
            add(Choice::Kubelet, "kubelet".to_owned());
        }
        if self.user_can_act() {
            add(Choice::User, "user".to_owned());
        }
        let choice = *choices.get(self.shuffle.choose(&actors)?)?;
        Some(match choice {
            Choice::Response(index) => self.deliver_response_at(index),
            Choice::Held(index) => {
                let pending = self.held.remove(index);
                self.handle(pending);
                true
            }
            Choice::Request(index) => {
                let Some(waiting) = self.gate.take_at(index) else { return Some(false) };
                let pending = self.arrive(waiting);
                self.handle(pending);
                true
            }
            Choice::Deliver(index) => self.deliver_to(index),
            Choice::Kubelet => self.kubelet_acts(),
            Choice::User => self.user_acts(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(by: By, seed: u32) -> Vec<usize> {
        let mut shuffle = Shuffle::default();
        shuffle.begin(Order { by, seed, steps: 100 });
        let actors = ["a", "b", "c"].map(str::to_owned);
        std::iter::from_fn(|| shuffle.choose(&actors)).collect()
    }

    #[test]
    fn a_seed_decides_the_order_and_its_steps_are_bounded() {
        for by in [By::Step, By::Actor] {
            assert_eq!((chosen(by, 1).len(), chosen(by, 1)), (100, chosen(by, 1)));
            assert!((2..20).any(|seed| chosen(by, seed) != chosen(by, 1)));
        }
    }

    #[test]
    fn by_step_every_actor_gets_its_turn_and_by_actor_one_runs_until_its_priority_falls() {
        let by_step = chosen(By::Step, 3);
        assert!((0..3).all(|actor| by_step.iter().filter(|one| **one == actor).count() > 10));
        let by_actor = chosen(By::Actor, 3);
        let changes = by_actor.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes <= 3, "{by_actor:?}");
    }
}
