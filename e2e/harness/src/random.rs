//! Random numbers that can be repeated.

use anyhow::{Context, Result};

/// A random sequence and the seed that gives it again.
#[derive(Debug, Clone)]
pub struct Random {
    seed: u64,
    generator: fastrand::Rng,
}

impl Random {
    /// Seeded by `E2E_SEED`, or by the process id, which differs from run to run.
    ///
    /// # Errors
    ///
    /// If `E2E_SEED` is not a number.
    pub fn from_environment() -> Result<Self> {
        let seed = match std::env::var("E2E_SEED") {
            Ok(text) => text.parse().with_context(|| format!("E2E_SEED is `{text}`, which is not a number"))?,
            Err(_) => u64::from(std::process::id()),
        };
        Ok(Self::seeded(seed))
    }

    /// The sequence of this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { seed, generator: fastrand::Rng::with_seed(seed) }
    }

    /// The seed, to repeat the sequence.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The next number, at least `low` and less than `high`.
    ///
    /// # Panics
    ///
    /// If there is no such number.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.generator.u64(low..high)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_same_seed_gives_the_same_sequence_within_its_bounds() {
        let (mut one, mut other) = (Random::seeded(7), Random::seeded(7));
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let number = one.between(10, 20);
            assert_eq!(number, other.between(10, 20));
            assert!((10..20).contains(&number));
            seen.insert(number);
        }
        assert_eq!(seen.len(), 10);
    }
}
