//! The structure of a WAV file: chunks, and the format chunk.

use super::WavError;

/// One chunk of a RIFF file.
pub(super) struct Chunk<'b> {
    pub(super) id: [u8; 4],
    /// The length in its header.
    pub(super) announced: u64,
    /// What of it is there.
    pub(super) body: &'b [u8],
}

/// The chunks of a WAV file, in its order. The length in the RIFF header is ignored: it says nothing that the chunks
/// do not say, and programs that write to a pipe leave it wrong.
pub(super) fn chunks(bytes: &[u8]) -> Result<impl Iterator<Item = Chunk<'_>>, WavError> {
    let (Some(b"RIFF"), Some(b"WAVE")) = (bytes.get(..4), bytes.get(8..12)) else {
        return Err(WavError::NotWav);
    };
    let mut rest = &bytes[12..];
    Ok(core::iter::from_fn(move || {
        let (header, behind) = rest.split_first_chunk::<8>()?;
        let [a, b, c, d, length @ ..] = *header;
        let announced = u32::from_le_bytes(length);
        let present = (announced as usize).min(behind.len());
        let (body, next) = behind.split_at(present);
        // A chunk of odd length is followed by a pad byte.
        rest = next.get(present % 2..).unwrap_or_default();
        Some(Chunk { id: [a, b, c, d], announced: u64::from(announced), body })
    }))
}

/// What a `fmt ` chunk of integer PCM says, checked to be consistent.
pub(super) struct Format {
    pub(super) sample_rate: u32,
    /// Bytes of one sample of one channel, 1 to 4.
    pub(super) width: u16,
    /// Bytes of one sample of all channels: a positive multiple of `width`.
    pub(super) frame: u16,
}

const PCM: u16 = 1;
/// The format proper stands further behind.
const EXTENSIBLE: u16 = 0xFFFE;
/// Where `WAVEFORMATEXTENSIBLE` has its sub-format, whose first two bytes are a format number again.
const SUB_FORMAT: usize = 24;

impl Format {
    pub(super) fn parse(chunk: &[u8]) -> Result<Format, WavError> {
        let number = |at: usize| {
            let bytes = chunk.get(at..).and_then(|rest| rest.first_chunk::<2>());
            bytes.map(|bytes| u16::from_le_bytes(*bytes)).ok_or(WavError::MissingChunk("fmt "))
        };
        let (tag, channels, frame, bits) = (number(0)?, number(2)?, number(12)?, number(14)?);
        let sample_rate = u32::from(number(4)?) | u32::from(number(6)?) << 16;
        match if tag == EXTENSIBLE { number(SUB_FORMAT)? } else { tag } {
            PCM => {}
            other => return Err(WavError::NotPcm(format_name(other))),
        }
        if channels == 0 {
            return Err(WavError::NoChannels);
        }
        if sample_rate == 0 {
            return Err(WavError::NoSampleRate);
        }
        let width = bits / 8;
        if !matches!(bits, 8 | 16 | 24 | 32) || channels.checked_mul(width) != Some(frame) {
            return Err(WavError::SampleWidth { bits, bytes: frame / channels });
        }
        Ok(Format { sample_rate, width, frame })
    }
}

/// The names of registered formats (RFC 2361 and Microsoft's `mmreg.h`) that one meets.
fn format_name(tag: u16) -> String {
    let name = match tag {
        0x0002 => "Microsoft ADPCM",
        0x0003 => "IEEE float",
        0x0006 => "A-law",
        0x0007 => "mu-law",
        0x0011 => "IMA ADPCM",
        0x0014 | 0x0040 | 0x0045 | 0x0064 => "G.726 ADPCM",
        0x0031 => "GSM 6.10",
        0x0050 => "MPEG audio",
        0x0055 => "MP3",
        0x00FF | 0x1600 | 0x1610 => "AAC",
        0x0161..=0x0163 => "Windows Media Audio",
        0xF1AC => "FLAC",
        _ => "an unknown format",
    };
    format!("{name} (format {tag})")
}
