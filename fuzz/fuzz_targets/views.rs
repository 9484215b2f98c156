#![no_main]

#[path = "../../api/tests/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::views(input));
