//! Pairs: a single perturbation, and another one at an anchor after it.

use super::{Explored, Searcher};
use crate::schedule::{Anchor, Perturbation, Place, Schedule};

impl Searcher<'_> {
    /// Extends single perturbations by a second one, the nearest first, in half of the budget that is left.
    ///
    /// The second anchor comes from the run of the first perturbation, so that it exists there. An anchor that the first one
    /// cannot influence is left out.
    pub(super) fn pairs(&mut self, singles: &[Explored]) {
        let left = self.budget.runs.saturating_sub(self.result.runs);
        let limit = self.result.runs.saturating_add(left.div_ceil(2));
        let mut pairs: Vec<(u32, usize, usize)> = Vec::new();
        for (first, explored) in singles.iter().enumerate() {
            let Some(perturbation) = explored.schedule.0.first() else { continue };
            let meeting = explored.later.iter().enumerate().filter(|(_, later)| meets(&perturbation.at, &later.anchor));
            pairs.extend(meeting.map(|(second, later)| (later.distance, first, second)));
        }
        pairs.sort_unstable();
        for (_, first, second) in pairs {
            let Some(explored) = singles.get(first) else { continue };
            let Some(later) = explored.later.get(second) else { continue };
            for what in later.deviations(self.scenario) {
                if self.is_over() || self.result.runs >= limit {
                    return;
                }
                let second = Perturbation { at: later.anchor.clone(), what };
                if explored.schedule.0.contains(&second) {
                    continue;
                }
                let mut both = explored.schedule.0.clone();
                both.push(second);
                self.attempt(Schedule(both));
            }
        }
    }
}

/// Returns `true` unless the anchors are requests of different keys and loops, which cannot see each other within one step.
///
/// All loops share the caches, so a delivery meets everything, and so does a new process.
fn meets(first: &Anchor, second: &Anchor) -> bool {
    if first.process != second.process {
        return true;
    }
    match (&first.place, &second.place) {
        (Place::Request { key, of, .. }, Place::Request { key: other, of: other_loop, .. }) => {
            key == other || of != other_loop
        }
        (Place::Request { .. } | Place::Taken { .. } | Place::Delivery { .. } | Place::Start | Place::Kubelet, _) => {
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Access;

    fn request(process: u32, of: &str, key: &str) -> Anchor {
        let place = Place::Request { of: of.to_owned(), key: key.to_owned(), access: Access::Write };
        Anchor { process, place, number: 1 }
    }

    #[test]
    fn requests_of_one_loop_for_different_keys_do_not_meet() {
        let first = request(1, "replicaset", "shop/a");
        assert!(!meets(&first, &request(1, "replicaset", "shop/b")));
        assert!(meets(&first, &request(1, "replicaset", "shop/a")));
        assert!(meets(&first, &request(1, "deployment", "shop/b")));
        assert!(meets(&first, &request(2, "replicaset", "shop/b")), "a new process has read everything");
        let delivery = Anchor { process: 1, place: Place::Delivery { cache: "pods".to_owned() }, number: 1 };
        assert!(meets(&first, &delivery));
    }
}
