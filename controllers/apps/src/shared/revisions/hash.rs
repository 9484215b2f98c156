//! The hash of the data of a revision, and the name that ends in it.

use super::data::RevisionData;

/// The longest beginning of a name, in bytes: hyphen and hash make it at most 253, the longest name of an object.
const LONGEST_PREFIX: usize = 223;

/// The hash of the data, and of the collision count where there is one: at most ten characters, which spell no word.
///
/// # Upstream
/// `history.HashControllerRevision`: the 32-bit FNV-1 hash in decimal digits, each digit replaced by a character.
pub(crate) fn revision_hash(data: &RevisionData, collision_count: Option<i32>) -> String {
    let count = collision_count.map(|count| count.to_string()).unwrap_or_default();
    let bytes = data.as_str().bytes().chain(count.bytes());
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    safe_encode(hash)
}

/// A hash in at most ten characters, which spell no word.
///
/// # Upstream
/// `SafeEncodeString`, of the decimal digits.
pub(crate) fn safe_encode(hash: u32) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    hash.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

/// The name of a revision of an owner.
pub(crate) fn revision_name(owner: &str, hash: &str) -> String {
    // Names are ASCII.
    let prefix = owner.get(..LONGEST_PREFIX).unwrap_or(owner);
    format!("{prefix}-{hash}")
}
