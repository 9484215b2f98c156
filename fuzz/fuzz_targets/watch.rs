//! Includes the files under test, because the crate would bring the whole HTTP client.
#![no_main]
#![allow(dead_code, reason = "the program uses a part of the files")]

extern crate self as kcm_informers;

#[path = "../../informers/src/envelope/mod.rs"]
mod envelope;
#[path = "../../informers/src/frames/mod.rs"]
pub mod frames;
#[path = "../../informers/tests/targets/mod.rs"]
mod targets;

pub use envelope::Event;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::watch(input));
