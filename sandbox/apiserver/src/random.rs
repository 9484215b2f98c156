//! Seeded random numbers: uids, generated names, watch durations.

/// A seeded generator: the same seed yields the same numbers.
#[derive(Debug, Clone)]
pub struct Random(fastrand::Rng);

impl Random {
    /// Creates a generator from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
    }

    /// Returns a random UUID of version 4.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next_u64(), self.next_u64());
        let high = high & !0xf000 | 0x4000;
        let low = low & !(0b11 << 62) | 0b10 << 62;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// Generates a name from `generateName`.
    pub(crate) fn name(&mut self, prefix: &str) -> String {
        kcm_api::name::generate_name(prefix, || u32::try_from(self.next_u64() >> 32).expect("half a word fits"))
    }
}
