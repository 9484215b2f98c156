//! Randomness and hashes that follow from the seed. Pure.

pub mod hash;
pub mod random;
