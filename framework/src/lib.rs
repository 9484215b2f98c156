//! Being built.

pub mod client;
pub mod clock;
