//! Includes the files under test, because the crate would bring the whole HTTP server.
#![no_main]
#![allow(dead_code, reason = "the program uses a part of the files")]

extern crate self as kcm_framework;

#[path = "../../serving/src/names.rs"]
mod names;
#[path = "../../serving/src/percent.rs"]
mod percent;
#[path = "../../serving/src/tests/targets.rs"]
mod targets;
#[path = "../../client/src/x509.rs"]
pub mod x509;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::certificates(input));
