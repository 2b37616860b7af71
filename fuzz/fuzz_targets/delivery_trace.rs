//! libFuzzer target: see `trunkline_fuzz::delivery_trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::delivery_trace(data));
