//! libFuzzer target: see `trunkline_fuzz::urp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::urp(data));
