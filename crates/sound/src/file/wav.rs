//! WAV files of any length (Microsoft and IBM, "Multimedia Programming Interface and Data Specifications 1.0", 1991;
//! `WAVEFORMATEXTENSIBLE`; RF64 of EBU Tech 3306 beyond 4 GiB).
//!
//! [`trunkline_audio::wav`] reads whole files of telephone speech and says precisely what is wrong with them; here a file is
//! read and written piece by piece, and one that is cut short is played as far as it goes, which
//! [`Reader::cut_short`](super::Reader::cut_short) tells.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;

use trunkline_audio::format::{Encoding, Endian, Format};

use super::{Decoder, Encoder, Layout, cannot_read, cannot_write};

const PCM: u16 = 1;
const FLOAT: u16 = 3;
/// The format proper stands further behind, in two bytes and the rest of a GUID.
const EXTENSIBLE: u16 = 0xFFFE;
const GUID_REST: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71];
/// A length that stands elsewhere (RF64), or that a program could not go back to write.
const UNKNOWN: u32 = u32::MAX;
/// Frames that are read at once.
const PIECE: usize = 4096;

pub(super) struct Wav {
    file: BufReader<File>,
    layout: Layout,
    samples: Samples,
    /// Bytes that are left.
    left: u64,
    /// Bytes of samples that it announces, and how many of them it has; of a file that has a length.
    data: Option<(u64, u64)>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Samples {
    Known(Encoding),
    I32,
}

impl Wav {
    pub(super) fn open(file: File) -> Result<Wav, String> {
        let mut file = BufReader::new(file);
        let mut start = [0; 12];
        read(&mut file, &mut start)?;
        if &start[8..] != b"WAVE" {
            return Err("is not a WAV file: it begins as one, but without `WAVE`".to_owned());
        }
        let (mut format, mut long) = (None, None);
        loop {
            let mut header = [0; 8];
            read(&mut file, &mut header)?;
            let [id @ .., a, b, c, d] = header;
            let length = u32::from_le_bytes([a, b, c, d]);
            match &id {
                b"data" => {
                    let (layout, samples) =
                        format.ok_or("is not a WAV file: it has data before their format")?;
                    let left = match length {
                        UNKNOWN => long.unwrap_or(u64::MAX),
                        length => length.into(),
                    };
                    let data = data(&mut file, left);
                    return Ok(Wav { file, layout, samples, left, data, bytes: Vec::new() });
                }
                b"fmt " | b"ds64" => {
                    let mut chunk = [0; 40];
                    let known = chunk.len().min(length as usize);
                    read(&mut file, &mut chunk[..known])?;
                    skip(&mut file, u64::from(length) - known as u64 + u64::from(length % 2))?;
                    if &id == b"ds64" {
                        long = chunk[8..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                    } else {
                        format = Some(parse_format(&chunk)?);
                    }
                }
                _ => skip(&mut file, u64::from(length) + u64::from(length % 2))?,
            }
        }
    }
}

impl Wav {
    /// Bytes of one sample of every channel.
    fn frame(&self) -> usize {
        usize::from(self.layout.channels) * width(self.samples)
    }
}

/// What a file has of the data that begin here and are as long as it announces; `None` where either is not known.
fn data(file: &mut BufReader<File>, announced: u64) -> Option<(u64, u64)> {
    let whole = file.get_ref().metadata().ok().filter(|data| data.is_file())?.len();
    let present = whole.saturating_sub(file.stream_position().ok()?);
    (announced < u64::MAX).then_some((announced, present.min(announced)))
}

impl Decoder for Wav {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn frames(&self) -> Option<(u64, u64)> {
        let frame = self.frame() as u64;
        self.data.map(|(announced, present)| (announced / frame, present / frame))
    }

    fn fits(&self, encoding: Encoding) -> bool {
        match self.samples {
            Samples::Known(Encoding::I16) => true,
            Samples::Known(Encoding::I24) => encoding != Encoding::I16,
            Samples::Known(Encoding::F32) => encoding == Encoding::F32,
            Samples::I32 => false,
        }
    }

    fn read(&mut self, samples: &mut Vec<f32>) -> Result<bool, String> {
        let frame = self.frame();
        let wanted = ((PIECE * frame) as u64).min(self.left);
        self.bytes.clear();
        let piece = self.file.by_ref().take(wanted).read_to_end(&mut self.bytes);
        let count = piece.map_err(|error| cannot_read(&error))?;
        // A frame that is cut off is the end.
        self.left = if (count as u64) < wanted { 0 } else { self.left - count as u64 };
        let whole = &self.bytes[..count - count % frame];
        match self.samples {
            Samples::Known(encoding) => Format { encoding, endian: Endian::Little }.decode(whole, samples),
            Samples::I32 => {
                let sample = |bytes: &[u8; 4]| i32::from_le_bytes(*bytes) as f32 / 2_147_483_648.0;
                samples.extend(whole.as_chunks().0.iter().map(sample));
            }
        }
        Ok(!whole.is_empty())
    }
}

fn parse_format(chunk: &[u8; 40]) -> Result<(Layout, Samples), String> {
    let number = |at: usize| u16::from_le_bytes([chunk[at], chunk[at + 1]]);
    let (channels, frame, bits) = (number(2), number(12), number(14));
    let sample_rate = u32::from(number(4)) | u32::from(number(6)) << 16;
    let tag = if number(0) == EXTENSIBLE { number(24) } else { number(0) };
    let samples = match (tag, bits) {
        (PCM, 16) => Samples::Known(Encoding::I16),
        (PCM, 24) => Samples::Known(Encoding::I24),
        (PCM, 32) => Samples::I32,
        (FLOAT, 32) => Samples::Known(Encoding::F32),
        _ => {
            return Err(format!(
                "has samples of {bits} bits in format {tag}; expected integers (format {PCM}) of 16, 24 or 32 bits or \
                 floating point (format {FLOAT}) of 32"
            ));
        }
    };
    if channels == 0 || sample_rate == 0 {
        return Err(format!("has {channels} channels at {sample_rate} Hz"));
    }
    if u32::from(frame) != u32::from(channels) * width(samples) as u32 {
        return Err(format!(
            "is not a WAV file: {channels} channels of {bits} bits do not fit into {frame} bytes"
        ));
    }
    Ok((Layout { channels, sample_rate }, samples))
}

fn width(samples: Samples) -> usize {
    match samples {
        Samples::Known(encoding) => bytes_of(encoding),
        Samples::I32 => 4,
    }
}

fn bytes_of(encoding: Encoding) -> usize {
    Format { encoding, endian: Endian::Little }.sample_bytes()
}

fn read(file: &mut BufReader<File>, bytes: &mut [u8]) -> Result<(), String> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "is not a complete WAV file: it ends before its data".to_owned(),
        _ => cannot_read(&error),
    })
}

fn skip(file: &mut BufReader<File>, bytes: u64) -> Result<(), String> {
    // A chunk's length fits into 33 bits.
    file.seek_relative(bytes as i64).map_err(|error| cannot_read(&error))
}

pub(super) struct WavWriter {
    file: File,
    layout: Layout,
    encoding: Encoding,
    /// Bytes of samples that are in the file, and how many of them its header announces.
    data: u64,
    announced: u64,
    bytes: Vec<u8>,
}

impl WavWriter {
    pub(super) fn create(file: File, layout: Layout, encoding: Encoding) -> Result<WavWriter, String> {
        let frame = usize::from(layout.channels) * bytes_of(encoding);
        if frame > u16::MAX.into() {
            return Err(format!(
                "cannot have {} channels: their samples must fit into 65535 bytes",
                layout.channels
            ));
        }
        let mut writer = WavWriter { file, layout, encoding, data: 0, announced: 0, bytes: Vec::new() };
        let header = writer.header();
        writer.file.write_all(&header).map_err(|error| cannot_write(&error))?;
        Ok(writer)
    }

    fn announce(&mut self) -> Result<(), String> {
        self.announced = self.data;
        self.file.write_all_at(&self.header(), 0).map_err(|error| cannot_write(&error))
    }

    /// As many bytes whatever the length: where a long file has its lengths, a short one has nothing.
    fn header(&self) -> Vec<u8> {
        let width = bytes_of(self.encoding) as u16;
        let Layout { channels, sample_rate } = self.layout;
        let tag = if self.encoding == Encoding::F32 { FLOAT } else { PCM };
        // Old programs know the plain format only, which covers no more than this.
        let is_plain = self.encoding == Encoding::I16 && channels <= 2;
        let format_length: u32 = if is_plain { 16 } else { 40 };
        let riff = 4 + (8 + 28) + 8 + u64::from(format_length) + 8 + self.data + self.data % 2;
        let is_short = u32::try_from(riff).is_ok_and(|length| length != UNKNOWN);
        let short = |length: u64| if is_short { length as u32 } else { UNKNOWN };

        let mut header = Vec::with_capacity(104);
        header.extend(if is_short { b"RIFF" } else { b"RF64" });
        header.extend(short(riff).to_le_bytes());
        header.extend(b"WAVE");
        header.extend(if is_short { b"JUNK" } else { b"ds64" });
        header.extend(28u32.to_le_bytes());
        for length in [riff, self.data, self.data / u64::from(channels * width)] {
            header.extend(if is_short { 0 } else { length }.to_le_bytes());
        }
        header.extend([0; 4]);
        header.extend(b"fmt ");
        header.extend(format_length.to_le_bytes());
        header.extend(if is_plain { tag } else { EXTENSIBLE }.to_le_bytes());
        header.extend(channels.to_le_bytes());
        header.extend(sample_rate.to_le_bytes());
        header.extend(sample_rate.saturating_mul(u32::from(channels * width)).to_le_bytes());
        header.extend((channels * width).to_le_bytes());
        header.extend((8 * width).to_le_bytes());
        if !is_plain {
            header.extend(22u16.to_le_bytes());
            header.extend((8 * width).to_le_bytes());
            // No speaker in particular.
            header.extend(0u32.to_le_bytes());
            header.extend(tag.to_le_bytes());
            header.extend(GUID_REST);
        }
        header.extend(b"data");
        header.extend(short(self.data).to_le_bytes());
        header
    }
}

impl Encoder for WavWriter {
    fn write(&mut self, samples: &[f32]) -> Result<(), String> {
        self.bytes.clear();
        Format { encoding: self.encoding, endian: Endian::Little }.encode(samples, &mut self.bytes);
        self.file.write_all(&self.bytes).map_err(|error| cannot_write(&error))?;
        self.data += self.bytes.len() as u64;
        let frame = u64::from(self.layout.channels) * bytes_of(self.encoding) as u64;
        let quarter_of_a_second = u64::from(self.layout.sample_rate / 4) * frame;
        if self.data - self.announced >= quarter_of_a_second { self.announce() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), String> {
        if self.data % 2 == 1 {
            self.file.write_all(&[0]).map_err(|error| cannot_write(&error))?;
        }
        self.announce()
    }
}
