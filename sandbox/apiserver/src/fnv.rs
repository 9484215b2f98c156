//! Hashes that clients compare, and that choose where seeded chance starts.

/// FNV-1a: the same on every machine, and good enough to tell versions of a document apart.
#[derive(Debug, Clone, Copy)]
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self::new()
    }
}

impl Hash {
    /// The hash of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// The hash of nothing, different for each seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(Self::new().0 ^ seed)
    }

    /// The hash of what was hashed so far and of one more part.
    #[must_use]
    pub fn with(self, text: &str) -> Self {
        // The end of a part counts too, so that parts cannot run into each other.
        let bytes = text.bytes().chain([0xff]);
        Self(bytes.fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// The hash as a number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// As hashes stand in addresses and headers.
pub(crate) fn hex(hash: u64) -> String {
    format!("{hash:016X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let hash = |parts: &[&str]| parts.iter().fold(Hash::new(), |hash, part| hash.with(part)).value();
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_eq!(hash(&["ab", "c"]), hash(&["ab", "c"]));
        assert_eq!(hex(10), "000000000000000A");
    }
}
