//! Programs as users start them, and API servers on this machine for them.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this")]

pub mod program;
pub mod server;
