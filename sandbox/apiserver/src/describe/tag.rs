//! Hashes as they stand in addresses and headers.

pub(crate) fn hex(hash: u64) -> String {
    format!("{hash:016X}")
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn a_small_hash_has_leading_zeros() {
        assert_eq!(hex(10), "000000000000000A");
    }
}
