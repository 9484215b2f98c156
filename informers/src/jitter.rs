//! Randomness from a seed, so that a run can be repeated.

use std::time::Duration;

/// A stream of numbers that spreads clients in time; splitmix64.
#[derive(Debug, Clone)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A duration in [`least`, 2 × `least`), to the millisecond.
    pub(crate) fn stretch(&mut self, least: Duration) -> Duration {
        let span = u64::try_from(least.as_millis()).unwrap_or(u64::MAX).max(1);
        least + Duration::from_millis(self.next() % span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_to_less_than_the_double() {
        let mut jitter = Jitter::new(7);
        let least = Duration::from_millis(800);
        let drawn: Vec<Duration> = (0..1000).map(|_| jitter.stretch(least)).collect();
        assert!(drawn.iter().all(|drawn| (least..2 * least).contains(drawn)));
        assert!(drawn.iter().any(|drawn| *drawn < least + least / 10), "reaches the lower end");
        assert!(drawn.iter().any(|drawn| *drawn > least * 19 / 10), "reaches the upper end");
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut jitter = Jitter::new(seed);
            [jitter.next(), jitter.next(), jitter.next()]
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
