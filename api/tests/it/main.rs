//! The tests of the crate from outside, in one program.

mod autoscaled_pod;
mod deployment;
mod document;
mod mutations;
mod needs;
mod quantity;
mod selector;
mod template;
mod views;
