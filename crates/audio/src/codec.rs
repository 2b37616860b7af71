//! Samples of some channels of a block as bytes, and back, whatever the codec.
//!
//! PCM and G.711 are interleaved. Opus codes channels in pairs, the last alone if they are odd, and with forward error
//! correction each alone: a frame stands behind its length in two bytes.

use trunkline_core::{Duration, Time};

use crate::format::{Encoding, Endian, Format};
use crate::g711;
use crate::opus::{self, OpusError};
use crate::pipeline::{Codec, Stream, UnpackCounters};
use crate::playout::Origin;
use crate::seen::{Seen, Sight};

impl Codec {
    /// What stands for it in our packets.
    pub(crate) fn id(self) -> u8 {
        match self {
            Codec::Pcm(Encoding::I16) => 0,
            Codec::Pcm(Encoding::I24) => 1,
            Codec::Pcm(Encoding::F32) => 2,
            Codec::Pcmu => 3,
            Codec::Pcma => 4,
            Codec::Opus { .. } => 5,
        }
    }

    /// Bytes of so many samples of PCM or G.711; none of Opus.
    pub fn bytes(self, channels: usize, frames: usize) -> usize {
        match self {
            Codec::Pcm(encoding) => channels * frames * big_endian(encoding).sample_bytes(),
            Codec::Pcmu | Codec::Pcma => channels * frames,
            Codec::Opus { .. } => 0,
        }
    }

    /// Appends samples to `bytes`, each for itself; with Opus, nothing.
    pub(crate) fn encode(self, samples: &[f32], bytes: &mut Vec<u8>) {
        let i16s = samples.iter().map(|&sample| to_i16(sample));
        match self {
            Codec::Pcm(encoding) => big_endian(encoding).encode(samples, bytes),
            Codec::Pcmu => bytes.extend(i16s.map(g711::encode_mu_law)),
            Codec::Pcma => bytes.extend(i16s.map(g711::encode_a_law)),
            Codec::Opus { .. } => {}
        }
    }

    /// Appends the samples of `bytes` to `samples`; with Opus, nothing.
    pub(crate) fn decode(self, bytes: &[u8], samples: &mut Vec<f32>) {
        let from_i16 = |sample: i16| f32::from(sample) / FULL_SCALE;
        match self {
            Codec::Pcm(encoding) => big_endian(encoding).decode(bytes, samples),
            Codec::Pcmu => samples.extend(bytes.iter().map(|&code| from_i16(g711::decode_mu_law(code)))),
            Codec::Pcma => samples.extend(bytes.iter().map(|&code| from_i16(g711::decode_a_law(code)))),
            Codec::Opus { .. } => {}
        }
    }
}

/// Bytes of so many channels of a block; of Opus, the most.
pub(crate) fn data_bytes(stream: &Stream, channels: usize) -> usize {
    match stream.codec {
        Codec::Opus { bitrate, fec } => pairs(channels, fec)
            .map(|pair| LENGTH_FIELD + opus_settings(stream, bitrate, fec, pair).bytes())
            .sum(),
        codec => codec.bytes(channels, stream.block_frames as usize),
    }
}

/// What Opus is asked for, for one or two channels of a stream.
pub(crate) fn opus_settings(stream: &Stream, bitrate: u32, fec: bool, channels: usize) -> opus::Settings {
    let (sample_rate, frames) = (stream.sample_rate, stream.block_frames as usize);
    opus::Settings { sample_rate, channels, frames, bitrate, fec }
}

/// Encodes one part after the other of some channels.
pub(crate) enum Encoder {
    /// Each sample for itself.
    Samples(Codec),
    /// With the number of channels of each.
    Opus(Vec<(opus::Encoder, usize)>, Vec<f32>),
}

impl Encoder {
    /// For so many channels of a stream.
    pub(crate) fn new(stream: &Stream, channels: usize) -> Result<Encoder, OpusError> {
        let Codec::Opus { bitrate, fec } = stream.codec else { return Ok(Encoder::Samples(stream.codec)) };
        let encoder = |pair| Ok((opus::Encoder::new(opus_settings(stream, bitrate, fec, pair))?, pair));
        let encoders = pairs(channels, fec).map(encoder).collect::<Result<_, OpusError>>()?;
        Ok(Encoder::Opus(encoders, Vec::with_capacity(2 * stream.block_frames as usize)))
    }

    /// Appends interleaved samples to `bytes`.
    pub(crate) fn encode(&mut self, samples: &[f32], bytes: &mut Vec<u8>) {
        match self {
            Encoder::Samples(codec) => codec.encode(samples, bytes),
            Encoder::Opus(encoders, of_pair) => {
                let channels: usize = encoders.iter().map(|(_, pair)| pair).sum();
                let mut first = 0;
                for (encoder, pair) in encoders {
                    of_pair.clear();
                    let frames = samples.chunks_exact(channels);
                    of_pair.extend(frames.flat_map(|frame| &frame[first..first + *pair]));
                    let start = bytes.len();
                    bytes.extend([0; LENGTH_FIELD]);
                    encoder.encode(of_pair, bytes);
                    // A frame has 1275 bytes at most.
                    let length = (bytes.len() - start - LENGTH_FIELD) as u16;
                    bytes[start..start + LENGTH_FIELD].copy_from_slice(&length.to_be_bytes());
                    first += *pair;
                }
            }
        }
    }
}

/// Decodes one part after the other of some channels.
pub(crate) enum Decoder {
    /// Each sample for itself.
    Samples(Codec),
    Opus(Box<OpusDecoders>),
}

impl Decoder {
    /// For so many channels of a stream.
    pub(crate) fn new(stream: &Stream, channels: usize) -> Result<Decoder, OpusError> {
        let Codec::Opus { bitrate, fec } = stream.codec else { return Ok(Decoder::Samples(stream.codec)) };
        let frames = stream.block_frames as usize;
        let decoder = |pair| Ok((opus::Decoder::new(opus_settings(stream, bitrate, fec, pair))?, pair));
        let held =
            (stream.sample_rate / stream.block_frames).clamp(FEWEST_HELD, MOST_HELD).next_power_of_two();
        let most = data_bytes(stream, channels);
        Ok(Decoder::Opus(Box::new(OpusDecoders {
            decoders: pairs(channels, fec).map(decoder).collect::<Result<_, OpusError>>()?,
            block: stream.block_duration(),
            next: None,
            newest: 0,
            held: (0..held).map(|_| (None, Vec::with_capacity(most))).collect(),
            waiting: 0,
            seen: Seen::default(),
            made_up: 0,
            longest_gap: (stream.sample_rate / LONGEST_GAP_PER_SECOND / stream.block_frames).max(1),
            samples: vec![0.0; channels * frames],
            of_pair: vec![0.0; 2 * frames],
            counters: UnpackCounters::default(),
        })))
    }

    /// Takes a frame and its `data`, and hands the samples that are available now to `deliver`. `samples` is room to work
    /// in. Frames of Opus are decoded in order: what follows a missing one waits for it.
    pub(crate) fn take(
        &mut self,
        frame: Frame,
        data: &[u8],
        samples: &mut Vec<f32>,
        mut deliver: impl FnMut(Frame, &[f32]),
    ) {
        match self {
            Decoder::Opus(decoders) => decoders.take(frame, data, &mut deliver),
            Decoder::Samples(codec) => {
                samples.clear();
                codec.decode(data, samples);
                deliver(frame, samples);
            }
        }
    }

    /// The missing frame for which others wait.
    pub(crate) fn missing(&self) -> Option<u32> {
        match self {
            Decoder::Opus(decoders) => decoders.next.filter(|_| decoders.waiting > 0),
            Decoder::Samples(_) => None,
        }
    }

    /// Waits no longer for frames before this one: hands over what the codec makes in their place, and what follows.
    pub(crate) fn release(&mut self, before: u32, mut deliver: impl FnMut(Frame, &[f32])) {
        if let Decoder::Opus(decoders) = self {
            decoders.release(before, &mut deliver);
        }
    }

    /// Frames that came twice, too late or after a later one, as far as the decoder has to know.
    pub(crate) fn counters(&self) -> UnpackCounters {
        match self {
            Decoder::Opus(decoders) => decoders.counters,
            Decoder::Samples(_) => UnpackCounters::default(),
        }
    }
}

/// Some channels of a block, encoded or decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The block's number.
    pub(crate) sequence: u32,
    /// When it was captured, by the sender's clock.
    pub(crate) captured: Time,
    /// When it arrived, or what it was recovered from.
    pub(crate) arrived: Time,
    pub(crate) origin: Origin,
}

/// Decoders of pairs of channels, which have to see every block once and in order.
pub(crate) struct OpusDecoders {
    decoders: Vec<(opus::Decoder, usize)>,
    /// Duration of a block.
    block: Duration,
    /// The block that comes next.
    next: Option<u32>,
    /// The highest that has come.
    newest: u32,
    /// Frames that wait for one before them, at the place that their number gives them.
    held: Vec<(Option<Frame>, Vec<u8>)>,
    /// Their number.
    waiting: u32,
    /// Blocks that came, or were recovered from the one behind.
    seen: Seen,
    /// Blocks in a row that were not there, up to `next`.
    made_up: u32,
    /// Blocks that are made up: what is missing for longer is the playout buffer's.
    longest_gap: u32,
    samples: Vec<f32>,
    of_pair: Vec<f32>,
    counters: UnpackCounters,
}

/// A second of blocks waits at most, within these bounds.
const FEWEST_HELD: u32 = 16;
const MOST_HELD: u32 = 512;

/// Concealment has faded after 60 ms ([`crate::conceal`]).
const LONGEST_GAP_PER_SECOND: u32 = 1000 / 60;

/// Blocks further behind than this are of a sender that starts again, as in [`crate::playout`].
const MISORDER: i32 = 100;

impl OpusDecoders {
    fn take(&mut self, frame: Frame, data: &[u8], deliver: &mut dyn FnMut(Frame, &[f32])) {
        let Frame { sequence, .. } = frame;
        let ahead = |next: u32| sequence.wrapping_sub(next) as i32;
        let next = match self.next {
            Some(next) if (-MISORDER..self.held.len() as i32).contains(&ahead(next)) => next,
            _ => self.begin(sequence),
        };
        if self.seen.note(sequence) == Sight::Again {
            self.counters.duplicate += 1;
            return;
        }
        if (sequence.wrapping_sub(self.newest) as i32) < 0 {
            self.counters.reordered += u64::from(frame.origin == Origin::Sent);
        } else {
            self.newest = sequence;
        }
        if ahead(next) < 0 {
            self.counters.late += 1;
            return;
        }
        let place = self.place(sequence);
        let (held, bytes) = &mut self.held[place];
        *held = Some(frame);
        bytes.clear();
        bytes.extend_from_slice(data);
        self.waiting += 1;
        self.advance(deliver);
    }

    /// A stream begins at this block: nothing before it is waited for.
    fn begin(&mut self, sequence: u32) -> u32 {
        self.held.iter_mut().for_each(|(held, _)| *held = None);
        (self.waiting, self.made_up, self.newest, self.seen) = (0, 0, sequence, Seen::default());
        *self.next.insert(sequence)
    }

    /// Decodes what is there, up to the next that is missing.
    fn advance(&mut self, deliver: &mut dyn FnMut(Frame, &[f32])) {
        while let Some(next) = self.next {
            let place = self.place(next);
            let Some(frame) = self.held[place].0.take() else { break };
            self.waiting -= 1;
            self.make(place, frame, Wanted::Frames, deliver);
            self.made_up = 0;
        }
    }

    fn release(&mut self, before: u32, deliver: &mut dyn FnMut(Frame, &[f32])) {
        while let Some(next) = self.next.filter(|&next| (before.wrapping_sub(next) as i32) > 0) {
            let is_there = |&gap: &u32| self.held[self.place(next.wrapping_add(gap))].0.is_some();
            let Some(gap) = (1..self.held.len() as u32).filter(|_| self.waiting > 0).find(is_there) else {
                return;
            };
            let place = self.place(next.wrapping_add(gap));
            let Some(behind) = self.held[place].0 else { return };
            let captured = Time::ZERO + behind.captured.since(Time::ZERO + self.block * u64::from(gap));
            let frame = Frame { sequence: next, captured, ..behind };
            if self.made_up + gap > self.longest_gap {
                self.next = Some(next.wrapping_add(1));
            } else if gap == 1 {
                self.make(place, frame, Wanted::CopyOfLast, deliver);
            } else {
                self.make(place, frame, Wanted::Nothing, deliver);
            }
            self.made_up += 1;
            self.advance(deliver);
        }
    }

    /// Makes the next block of the data at this place, and delivers it.
    fn make(&mut self, place: usize, frame: Frame, wanted: Wanted, deliver: &mut dyn FnMut(Frame, &[f32])) {
        let data = core::mem::take(&mut self.held[place].1);
        let made = self.fill(&data, wanted);
        self.held[place].1 = data;
        let origin = if made == Origin::Sent { frame.origin } else { made };
        if wanted == Wanted::CopyOfLast && origin == Origin::Recovered {
            self.seen.note(frame.sequence);
        }
        self.next = Some(frame.sequence.wrapping_add(1));
        deliver(Frame { origin, ..frame }, &self.samples);
    }

    fn place(&self, sequence: u32) -> usize {
        sequence as usize % self.held.len()
    }

    /// Makes the next block with all pairs. What concerns one pair alone concerns the block.
    fn fill(&mut self, mut data: &[u8], wanted: Wanted) -> Origin {
        let channels: usize = self.decoders.iter().map(|(_, pair)| pair).sum();
        let frames = self.samples.len() / channels;
        let (mut first, mut origin) =
            (0, if wanted == Wanted::Frames { Origin::Sent } else { Origin::Recovered });
        for (decoder, pair) in &mut self.decoders {
            let (frame, rest) = split_frame(data);
            data = rest;
            let of_pair = &mut self.of_pair[..frames * *pair];
            let is_true = match wanted {
                Wanted::Frames => decoder.decode(frame, of_pair),
                Wanted::CopyOfLast => decoder.recover(frame, of_pair),
                Wanted::Nothing => {
                    decoder.conceal(of_pair);
                    false
                }
            };
            if !is_true {
                origin = Origin::Concealed;
            }
            for (all, part) in self.samples.chunks_exact_mut(channels).zip(of_pair.chunks_exact(*pair)) {
                all[first..first + *pair].copy_from_slice(part);
            }
            first += *pair;
        }
        origin
    }
}

/// What is taken from a packet's data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Its frames.
    Frames,
    /// The copies of those before.
    CopyOfLast,
    /// Nothing: a block is made up.
    Nothing,
}

/// Bytes before each frame of Opus.
pub(crate) const LENGTH_FIELD: usize = 2;

/// The first frame of `data`, as far as there is one, and what follows.
fn split_frame(data: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = data.split_first_chunk() else { return (&[], &[]) };
    rest.split_at(rest.len().min(usize::from(u16::from_be_bytes(*length))))
}

/// The channels of each frame of Opus. Two channels of speech are two talkers.
fn pairs(channels: usize, fec: bool) -> impl Iterator<Item = usize> {
    let most = if fec { 1 } else { 2 };
    (0..channels).step_by(most).map(move |first| (channels - first).min(most))
}

fn big_endian(encoding: Encoding) -> Format {
    Format { encoding, endian: Endian::Big }
}

const FULL_SCALE: f32 = 32_768.0;

/// A float-to-integer `as` saturates and maps NaN to zero.
fn to_i16(sample: f32) -> i16 {
    (sample * FULL_SCALE).round_ties_even() as i16
}
