//! libFuzzer target: see `trunkline_fuzz::wav`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::wav(data));
