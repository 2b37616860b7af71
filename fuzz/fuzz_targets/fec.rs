//! libFuzzer target: see `trunkline_fuzz::fec`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::fec(data));
