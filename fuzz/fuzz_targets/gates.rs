#![no_main]

#[path = "../../config/tests/support/mod.rs"]
mod support;
#[path = "../../config/tests/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &str| targets::gates(input));
