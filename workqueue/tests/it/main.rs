//! The tests of the crate from outside, in one program.

mod contract;
mod stalls;
mod threads;
