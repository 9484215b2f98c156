//! Random moments that can be had again.

use anyhow::{Context, Result};

/// `SplitMix64`: small, and the same everywhere for the same seed.
#[derive(Debug, Clone)]
pub struct Random {
    seed: u64,
    state: u64,
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
        Self { seed, state: seed }
    }

    /// The seed, to have the sequence again.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The next number, at least `low` and less than `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + (z ^ (z >> 31)) % high.saturating_sub(low).max(1)
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
