//! Includes the file under test, because the crate would bring the whole HTTP client.
#![no_main]
#![allow(dead_code, reason = "the program uses a part of the file")]

#[path = "../../informers/src/envelope/mod.rs"]
mod envelope;
#[path = "../../informers/src/envelope/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::envelopes(input));
