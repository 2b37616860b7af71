//! Where each received packet belongs in a WAV file.

use super::{HEADER_LENGTH, header_of};
use crate::g711::{SAMPLE_RATE, decode_mu_law};

/// The layout of a WAV file of received G.711 speech: mono, 16-bit PCM, 8000 Hz, of a length that is known before the
/// first packet arrives.
///
/// The caller writes the header, extends the file with zeros to its full length, and writes every packet at its offset:
/// order and duplicates then do not matter, and what never arrives stays zero, which is silence.
///
/// ```
/// use trunkline_audio::ReceivedWav;
///
/// let mut file = ReceivedWav::header(160).to_vec();
/// file.resize(ReceivedWav::offset_of(2, 80) as usize, 0);
/// let mut pcm = Vec::new();
/// ReceivedWav::decode_into(&[0x80; 80], &mut pcm);
/// let at = ReceivedWav::offset_of(1, 80) as usize;
/// file[at..at + pcm.len()].copy_from_slice(&pcm);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ReceivedWav;

impl ReceivedWav {
    /// Length of the header in bytes: where the samples begin.
    pub const HEADER_LENGTH: usize = HEADER_LENGTH;

    /// How long one sample lasts, in nanoseconds: 125 us.
    pub const SAMPLE_NANOS: u64 = 1_000_000_000 / SAMPLE_RATE as u64;

    /// The header of a file with so many samples; see [`header_of`](super::header_of).
    pub fn header(samples: u64) -> [u8; Self::HEADER_LENGTH] {
        header_of(1, SAMPLE_RATE, samples)
    }

    /// Where the packet with this sequence number, counted from 0, begins in the file, in bytes.
    pub fn offset_of(sequence: u32, samples_per_packet: u64) -> u64 {
        let samples = u64::from(sequence).saturating_mul(samples_per_packet);
        samples.saturating_mul(2).saturating_add(Self::HEADER_LENGTH as u64)
    }

    /// Appends the samples of a mu-law payload as they stand in the file: two bytes each, little-endian.
    pub fn decode_into(payload: &[u8], pcm: &mut Vec<u8>) {
        pcm.extend(payload.iter().flat_map(|&code| decode_mu_law(code).to_le_bytes()));
    }
}
