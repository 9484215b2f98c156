//! The tests of the crate from outside, in one program.

mod contract;
mod currency;
mod label_index;
mod mutations;
mod sandbox;
