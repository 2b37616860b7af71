//! libFuzzer target: see `trunkline_fuzz::sctp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::sctp(data));
