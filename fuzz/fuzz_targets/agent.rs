//! libFuzzer target: see `trunkline_fuzz::agent`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::agent(data));
