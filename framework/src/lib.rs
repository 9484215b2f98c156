//! Being built.

pub mod client;
pub mod clock;
pub mod discovery;
pub mod events;
