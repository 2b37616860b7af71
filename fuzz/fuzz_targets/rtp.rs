//! libFuzzer target: see `trunkline_fuzz::rtp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::rtp(data));
