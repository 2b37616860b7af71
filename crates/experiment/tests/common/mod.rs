//! The example files, and files that tests name.

#![allow(dead_code, reason = "each test file uses its part")]

use trunkline_experiment::{Files, FilesError};

/// The files in `examples/` that every reader of experiment files must understand.
pub(crate) const EXAMPLES: [&str; 14] = [
    "voice-beside-bulk.toml",
    "bursty-loss.toml",
    "two-bottlenecks.toml",
    "calls-on-a-t1.toml",
    "voice-path.toml",
    "wifi-cell.toml",
    "phones.toml",
    "switched-lan.toml",
    "multicast.toml",
    "bundle.toml",
    "dsl-video-call.toml",
    "voice-distribution-1992.toml",
    "voice-distribution-today.toml",
    "cellular-trace.toml",
];

/// The text of a file in `examples/`.
pub(crate) fn example(name: &str) -> String {
    let bytes = read(name).expect("the examples are part of the repository");
    String::from_utf8(bytes).expect("the examples are text")
}

fn read(name: &str) -> Option<Vec<u8>> {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    #[allow(clippy::disallowed_methods, reason = "a test may read the examples")]
    std::fs::read(path).ok()
}

/// Files in `examples/`.
pub(crate) struct Beside;

impl Files for Beside {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        read(path).ok_or_else(|| FilesError::new("does not exist"))
    }
}

/// A WAV file of one channel of silence.
pub(crate) fn wav(format: u16, rate: u32, bits: u16, samples: u32) -> Vec<u8> {
    let block = u32::from(bits / 8);
    let data = samples * block;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(b"RIFF");
    bytes.extend_from_slice(&(36 + data).to_le_bytes());
    bytes.extend_from_slice(b"WAVEfmt ");
    bytes.extend_from_slice(&16u32.to_le_bytes());
    bytes.extend_from_slice(&format.to_le_bytes());
    bytes.extend_from_slice(&1u16.to_le_bytes());
    bytes.extend_from_slice(&rate.to_le_bytes());
    bytes.extend_from_slice(&(rate * block).to_le_bytes());
    bytes.extend_from_slice(&(block as u16).to_le_bytes());
    bytes.extend_from_slice(&bits.to_le_bytes());
    bytes.extend_from_slice(b"data");
    bytes.extend_from_slice(&data.to_le_bytes());
    bytes.resize(bytes.len() + data as usize, 0);
    bytes
}
