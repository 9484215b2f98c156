//! The tests of the crate from outside, in one program.

#[path = "../support/mod.rs"]
mod support;
#[path = "../targets/mod.rs"]
mod targets;

mod bad_input;
mod file;
mod flags;
mod merge;
mod parity;
