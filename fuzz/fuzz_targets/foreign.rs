//! libFuzzer target: see `trunkline_fuzz::foreign`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::foreign(data));
