//! The tests of the crate from outside, in one program.

mod fuzz;
mod scenarios;
