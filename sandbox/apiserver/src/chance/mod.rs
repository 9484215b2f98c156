//! Randomness and hashes that follow from the seed. Pure.

pub(crate) mod hash;
pub(crate) mod random;
