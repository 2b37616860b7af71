//! libFuzzer target: see `trunkline_fuzz::xtp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::xtp(data));
