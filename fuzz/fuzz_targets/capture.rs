//! libFuzzer target: see `trunkline_fuzz::capture`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::capture(data));
