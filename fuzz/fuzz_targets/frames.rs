//! libFuzzer target: see `trunkline_fuzz::frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::frames(data));
