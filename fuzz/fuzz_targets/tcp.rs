//! libFuzzer target: see `trunkline_fuzz::tcp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::tcp(data));
