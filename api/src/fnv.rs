//! A stable hash, for names that are derived from content and for seeded random numbers.

/// The 64-bit FNV-1a hash. Unlike the hashers of the standard library, it is stable across versions and platforms.
///
/// The names of replica sets contain it, so its values must never change.
#[derive(Debug, Clone, Copy)]
pub struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self::new()
    }
}

impl Fnv1a {
    /// The hash of the empty input.
    #[must_use]
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// An initial state that depends on `seed`.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(Self::new().0 ^ seed)
    }

    /// Adds bytes to the hash.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// Adds a string and a terminator to the hash, so that `"ab", "c"` and `"a", "bc"` have different hashes.
    #[must_use]
    pub fn part(self, part: &str) -> Self {
        self.bytes(part.as_bytes()).bytes(&[0xff])
    }

    /// The hash as a number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_fnv_1a() {
        // http://www.isthe.com/chongo/tech/comp/fnv
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(Fnv1a::new().bytes(text.as_bytes()).value(), hash, "{text}");
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let hash = |parts: &[&str]| parts.iter().fold(Fnv1a::new(), |hash, part| hash.part(part)).value();
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_eq!(hash(&["ab", "c"]), hash(&["ab", "c"]));
    }
}
