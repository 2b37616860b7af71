//! FLAC files (RFC 9639), decoded by claxon and encoded by flacenc frame by frame.

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::os::unix::fs::FileExt as _;

use claxon::FlacReader;
use flacenc::bitsink::ByteSink;
use flacenc::component::{BitRepr, StreamInfo};
use flacenc::error::{Verified, Verify as _};
use flacenc::source::{Context, Fill as _, FrameBuf};
use trunkline_audio::format::{Encoding, Endian, Format};

use super::{Decoder, Encoder, Layout, cannot_read, cannot_write};

/// Frames per block, as the reference encoder has them.
const BLOCK: usize = 4096;
/// "fLaC", and the header of a STREAMINFO of 34 bytes that is the last metadata (sections 8 and 8.1).
const START: [u8; 8] = [b'f', b'L', b'a', b'C', 0x80, 0, 0, 34];
const MOST_CHANNELS: u16 = 8;

pub(super) struct Flac {
    reader: FlacReader<BufReader<File>>,
    layout: Layout,
    full_scale: f32,
    block: Vec<i32>,
}

impl Flac {
    pub(super) fn open(file: File) -> Result<Flac, String> {
        let reader = FlacReader::new(BufReader::new(file)).map_err(|error| explain(&error))?;
        let info = reader.streaminfo();
        if info.sample_rate == 0 {
            return Err("is a FLAC file without a sample rate".to_owned());
        }
        // A FLAC file has 8 channels at most, and samples of 4 to 32 bits.
        let layout = Layout { channels: info.channels as u16, sample_rate: info.sample_rate };
        let full_scale = (1u64 << (info.bits_per_sample - 1)) as f32;
        Ok(Flac { reader, layout, full_scale, block: Vec::new() })
    }
}

impl Decoder for Flac {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn fits(&self, encoding: Encoding) -> bool {
        match self.reader.streaminfo().bits_per_sample {
            ..=16 => true,
            17..=24 => encoding != Encoding::I16,
            25.. => false,
        }
    }

    fn read(&mut self, samples: &mut Vec<f32>) -> Result<bool, String> {
        let buffer = std::mem::take(&mut self.block);
        let block = self.reader.blocks().read_next_or_eof(buffer).map_err(|error| explain(&error))?;
        let Some(block) = block else { return Ok(false) };
        if block.channels() != u32::from(self.layout.channels) {
            return Err("is a damaged FLAC file: the number of its channels changes".to_owned());
        }
        for frame in 0..block.duration() {
            let sample = |channel| block.sample(channel, frame) as f32 / self.full_scale;
            samples.extend((0..block.channels()).map(sample));
        }
        self.block = block.into_buffer();
        Ok(true)
    }
}

fn explain(error: &claxon::Error) -> String {
    match error {
        claxon::Error::IoError(error) => cannot_read(error),
        claxon::Error::FormatError(why) => format!("is a damaged FLAC file: {why}"),
        claxon::Error::Unsupported(why) => {
            format!("is a FLAC file with an unsupported feature: {why}")
        }
    }
}

pub(super) struct FlacWriter {
    file: File,
    format: Format,
    layout: Layout,
    config: Verified<flacenc::config::Encoder>,
    info: StreamInfo,
    /// The present block, and the check sum (MD5) of all of them.
    block: (FrameBuf, Context),
    /// Samples of the present block, as bytes.
    bytes: Vec<u8>,
    frames: usize,
}

impl FlacWriter {
    pub(super) fn create(
        create: impl FnOnce() -> Result<File, String>,
        layout: Layout,
        encoding: Encoding,
    ) -> Result<FlacWriter, String> {
        let bits = match encoding {
            Encoding::I16 => 16,
            Encoding::I24 => 24,
            Encoding::F32 => {
                return Err("cannot have floating-point samples, which FLAC lacks; expected `.wav` for them"
                    .to_owned());
            }
        };
        if layout.channels > MOST_CHANNELS {
            let channels = layout.channels;
            return Err(format!(
                "cannot have {channels} channels: FLAC has {MOST_CHANNELS} at most; expected `.wav`"
            ));
        }
        let refused =
            || format!("cannot have a sample rate of {} Hz in FLAC; expected `.wav`", layout.sample_rate);
        let channels = usize::from(layout.channels);
        let info = StreamInfo::new(layout.sample_rate as usize, channels, bits).map_err(|_| refused())?;
        let buffer = FrameBuf::with_size(channels, BLOCK).map_err(|_| refused())?;
        let config = flacenc::config::Encoder::default().into_verified().map_err(|_| refused())?;
        let mut writer = FlacWriter {
            file: create()?,
            format: Format { encoding, endian: Endian::Little },
            layout,
            config,
            info,
            block: (buffer, Context::new(bits, channels)),
            bytes: Vec::new(),
            frames: 0,
        };
        let header = writer.header()?;
        writer.file.write_all(&header).map_err(|error| cannot_write(&error))?;
        Ok(writer)
    }

    fn header(&mut self) -> Result<Vec<u8>, String> {
        // All blocks but the last, which does not count.
        self.info.set_block_sizes(BLOCK, BLOCK).map_err(|_| INTERNAL)?;
        let mut sink = ByteSink::new();
        self.info.write(&mut sink).map_err(|_| INTERNAL)?;
        Ok([&START, sink.as_slice()].concat())
    }

    /// One frame of the file out of the first bytes.
    fn write_block(&mut self, length: usize) -> Result<(), String> {
        let (bytes, width) = (&self.bytes[..length], self.format.sample_bytes());
        self.block.fill_le_bytes(bytes, width).map_err(|_| INTERNAL)?;
        let frame = flacenc::encode_fixed_size_frame(&self.config, &self.block.0, self.frames, &self.info)
            .map_err(|error| format!("cannot be encoded as FLAC: {error}"))?;
        let mut sink = ByteSink::new();
        frame.write(&mut sink).map_err(|_| INTERNAL)?;
        self.file.write_all(sink.as_slice()).map_err(|error| cannot_write(&error))?;
        self.info.update_frame_info(&frame);
        self.frames += 1;
        self.bytes.drain(..length);
        self.announce()
    }

    fn announce(&mut self) -> Result<(), String> {
        let header = self.header()?;
        self.file.write_all_at(&header, 0).map_err(|error| cannot_write(&error))
    }
}

/// What flacenc says to what it has itself checked.
const INTERNAL: &str = "cannot be encoded as FLAC";

impl Encoder for FlacWriter {
    fn write(&mut self, samples: &[f32]) -> Result<(), String> {
        self.format.encode(samples, &mut self.bytes);
        let block = BLOCK * usize::from(self.layout.channels) * self.format.sample_bytes();
        while self.bytes.len() >= block {
            self.write_block(block)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        if !self.bytes.is_empty() {
            self.write_block(self.bytes.len())?;
        }
        self.info.set_md5_digest(&self.block.1.md5_digest());
        self.announce()
    }
}
