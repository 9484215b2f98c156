//! The steps of cluster sizes, and the seconds that each step stands for.

/// A step: a range of cluster sizes that overlaps the ranges of its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step(usize);

struct Bounds {
    least: usize,
    most: usize,
    seconds: i64,
}

/// Upstream's steps. The next range begins before the last one ends, so that every size has a step.
const STEPS: [Bounds; 5] = [
    Bounds { least: 0, most: 100, seconds: 0 },
    Bounds { least: 90, most: 500, seconds: 15 },
    Bounds { least: 450, most: 1000, seconds: 30 },
    Bounds { least: 900, most: 2000, seconds: 60 },
    Bounds { least: 1800, most: usize::MAX, seconds: 300 },
];

impl Step {
    pub(super) const FIRST: Self = Self(0);

    /// Returns the step of a cluster that is seen for the first time. `present` has the seconds that its Nodes have.
    ///
    /// If the size fits several steps, most Nodes decide. If no step has most, it is the lowest.
    pub(super) fn at_start(nodes: usize, present: impl IntoIterator<Item = i64>) -> Self {
        let mut carried = [0_usize; STEPS.len()];
        for seconds in present {
            for (count, step) in carried.iter_mut().zip(&STEPS) {
                *count += usize::from(step.seconds == seconds);
            }
        }
        let fitting = (0..STEPS.len()).filter(|step| (STEPS[*step].least..=STEPS[*step].most).contains(&nodes));
        // The last of equal maxima wins, hence the reverse order.
        Self(fitting.rev().max_by_key(|step| carried[*step]).unwrap_or_default())
    }

    /// Returns the step after the size of the cluster has changed.
    pub(super) const fn after(self, nodes: usize) -> Self {
        let mut step = self.0;
        while nodes > STEPS[step].most {
            step += 1;
        }
        while nodes < STEPS[step].least {
            step -= 1;
        }
        Self(step)
    }

    /// Returns the value of the annotation.
    pub(super) const fn seconds(self) -> i64 {
        STEPS[self.0].seconds
    }
}

/// Parses the annotation, in the forms that upstream accepts: a sign and leading zeros are allowed.
pub(super) fn seconds_of(annotation: Option<&str>) -> Option<i64> {
    annotation?.parse().ok()
}
