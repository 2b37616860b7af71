//! Where each received packet belongs in a WAV file.

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
    pub const HEADER_LENGTH: usize = 44;

    /// How long one sample lasts, in nanoseconds: 125 us.
    pub const SAMPLE_NANOS: u64 = 1_000_000_000 / SAMPLE_RATE as u64;

    /// The header of a file with so many samples. A WAV file holds 2^31 - 19 of them at most, about 74 hours; for more,
    /// the header announces those.
    pub fn header(samples: u64) -> [u8; Self::HEADER_LENGTH] {
        const BYTES_PER_SAMPLE: u16 = 2;
        const MOST: u32 = (u32::MAX - 36) & !1; // the length behind `RIFF` counts 36 bytes of header too
        let data = u32::try_from(samples.saturating_mul(BYTES_PER_SAMPLE.into())).unwrap_or(MOST).min(MOST);
        let mut header = [0; Self::HEADER_LENGTH];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(b"RIFF");
        put(&(data + 36).to_le_bytes());
        put(b"WAVEfmt ");
        put(&16u32.to_le_bytes());
        put(&1u16.to_le_bytes()); // PCM
        put(&1u16.to_le_bytes()); // channels
        put(&SAMPLE_RATE.to_le_bytes());
        put(&(SAMPLE_RATE * u32::from(BYTES_PER_SAMPLE)).to_le_bytes());
        put(&BYTES_PER_SAMPLE.to_le_bytes());
        put(&(8 * BYTES_PER_SAMPLE).to_le_bytes());
        put(b"data");
        put(&data.to_le_bytes());
        header
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
