//! libFuzzer target: see `trunkline_fuzz::quic`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::quic(data));
