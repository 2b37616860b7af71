//! libFuzzer target: see `trunkline_fuzz::audio_packets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::audio_packets(data));
