//! Programs as people start them, and API servers on this machine for them to talk to.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this")]

pub mod program;
pub mod server;
