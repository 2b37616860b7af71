//! libFuzzer target: see `trunkline_fuzz::control`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::control(data));
