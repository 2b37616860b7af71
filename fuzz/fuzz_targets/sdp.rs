//! libFuzzer target: see `trunkline_fuzz::sdp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::sdp(data));
