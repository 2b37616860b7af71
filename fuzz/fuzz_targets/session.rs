//! libFuzzer target: see `trunkline_fuzz::session`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::session(data));
