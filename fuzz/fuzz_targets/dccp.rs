//! libFuzzer target: see `trunkline_fuzz::dccp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::dccp(data));
