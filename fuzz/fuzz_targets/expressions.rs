#![no_main]

#[path = "../../cel/tests/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &str| targets::expressions(input));
