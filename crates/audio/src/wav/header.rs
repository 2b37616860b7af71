//! The header of a file that is written.

/// Length of the header of 16-bit PCM in bytes: where the samples begin.
pub const HEADER_LENGTH: usize = 44;

/// The header of a file of 16-bit PCM with so many frames (samples of each channel). A WAV file holds 4 GiB of samples at
/// most, 74 hours of telephone speech; for more, the header announces what it can.
pub fn header_of(channels: u16, sample_rate: u32, frames: u64) -> [u8; HEADER_LENGTH] {
    let frame = channels.saturating_mul(2);
    // The length behind `RIFF` counts 36 bytes of header too.
    let most = (u32::MAX - 36) / u32::from(frame.max(1)) * u32::from(frame);
    let data = u32::try_from(frames.saturating_mul(frame.into())).unwrap_or(most).min(most);
    let mut header = [0; HEADER_LENGTH];
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
    put(&channels.to_le_bytes());
    put(&sample_rate.to_le_bytes());
    put(&sample_rate.saturating_mul(frame.into()).to_le_bytes());
    put(&frame.to_le_bytes());
    put(&16u16.to_le_bytes());
    put(b"data");
    put(&data.to_le_bytes());
    header
}
