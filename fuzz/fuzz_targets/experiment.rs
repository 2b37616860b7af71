//! libFuzzer target: see `trunkline_fuzz::experiment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::experiment(data));
