//! The hash by which upstream orders ports and subsets: the hash of the text that Go's spew prints of an object.

/// The 128-bit FNV-1a hash of a text. Its hexadecimal digits have the order of the number.
///
/// # Upstream
/// `DeepHashObject` with `fnv.New128a`.
pub(crate) fn fnv1a_128(text: &str) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}
