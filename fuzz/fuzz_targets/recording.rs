//! libFuzzer target: see `trunkline_fuzz::recording`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::recording(data));
