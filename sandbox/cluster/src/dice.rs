//! Random values derived from a seed and a key, independent of earlier calls. Pure.

use std::time::Duration;

use kcm_api::Fnv1a;
use kcm_sandbox_apiserver::random::Random;

/// Keyed seeded random values: the same key yields the same value, in any order of calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dice {
    seed: u64,
}

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the number for a key.
    pub(crate) fn number(self, words: &[&str]) -> u64 {
        // The hash of the key seeds the generator, which mixes.
        let start = words.iter().fold(Fnv1a::seeded(self.seed), |hash, word| hash.part(word));
        Random::new(start.value()).next_u64()
    }

    /// Returns a duration in an inclusive range, in whole milliseconds.
    pub(crate) fn between(self, min: Duration, max: Duration, words: &[&str]) -> Duration {
        let span = max.saturating_sub(min).as_millis();
        let span = u64::try_from(span).unwrap_or(u64::MAX - 1);
        min + Duration::from_millis(self.number(words) % (span + 1))
    }

    /// Returns a string of hexadecimal digits.
    pub(crate) fn hex(self, digits: usize, words: &[&str]) -> String {
        let mut random = Random::new(self.number(words));
        let words = (0..digits.div_ceil(16)).map(|_| format!("{:016x}", random.next_u64()));
        let mut text: String = words.collect();
        text.truncate(digits);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_depends_only_on_seed_and_key() {
        let (one, two) = (Dice::new(1), Dice::new(2));
        assert_eq!(one.number(&["a", "b"]), one.number(&["a", "b"]));
        assert_ne!(one.number(&["a", "b"]), two.number(&["a", "b"]));
        assert_ne!(one.number(&["a", "b"]), one.number(&["ab"]));
        assert_eq!(one.hex(64, &["x"]).len(), 64);
    }

    #[test]
    fn times_stay_within_their_bounds() {
        let (min, max) = (Duration::from_secs(1), Duration::from_secs(3));
        for word in ["a", "b", "c", "d"] {
            let time = Dice::new(7).between(min, max, &[word]);
            assert!(min <= time && time <= max, "{time:?}");
        }
        assert_eq!(Dice::new(7).between(min, min, &["a"]), min);
    }
}
