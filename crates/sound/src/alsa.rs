//! ALSA, through cpal: sound cards, and PipeWire and PulseAudio behind ALSA's plugins.
//!
//! A device has a stream for each direction, each with a thread of its own. Where both are wanted, the one that plays drives:
//! what was captured waits in a ring until then.

use std::sync::{Arc, Mutex, PoisonError};

use cpal::traits::{DeviceTrait as _, HostTrait as _, StreamTrait as _};
use cpal::{
    BufferSize, DeviceId, ErrorKind, FromSample, HostId, Sample as _, SampleFormat, SizedSample,
    StreamConfig, SupportedBufferSize, SupportedStreamConfigRange,
};
use rtrb::{Consumer, Producer, RingBuffer};
use trunkline_core::Time;
use trunkline_io::{clock, process};

use crate::clocked::PRIORITY;
use crate::cycle::Cycle;
use crate::error::SoundError;
use crate::hardware::{Hardware, Running};
use crate::place::Place;
use crate::shared::Shared;
use crate::wanted::{Format, Wanted};

/// What is captured and not yet taken waits for so many blocks of the player.
const BLOCKS: usize = 16;

/// The streams that will be opened.
pub(crate) struct Alsa {
    capture: Option<Side>,
    playback: Option<Side>,
    format: Format,
    shared: Arc<Shared>,
}

/// One direction.
struct Side {
    device: cpal::Device,
    name: String,
    config: StreamConfig,
    samples: SampleFormat,
    /// Channels that are used, the first ones: a card may insist on more.
    channels: usize,
}

impl Alsa {
    /// `rate`: of a file beside it, or what is wanted.
    pub(crate) fn open(wanted: &Wanted, rate: Option<u32>, shared: Arc<Shared>) -> Result<Alsa, SoundError> {
        let host = cpal::host_from_id(HostId::Alsa)
            .map_err(|error| SoundError::Alsa(format!("ALSA does not work: {error}")))?;
        let side = |place: &Option<(Place, u16)>, direction, rate| match place {
            Some((Place::Alsa { device }, channels)) => {
                Side::find(&host, device.as_deref(), direction, *channels, rate, wanted.block_frames)
                    .map(Some)
            }
            _ => Ok(None),
        };
        let playback = side(&wanted.playback, Direction::Playback, rate)?;
        let rate = playback.as_ref().map(|side| side.config.sample_rate).or(rate);
        let capture = side(&wanted.capture, Direction::Capture, rate)?;
        if let (Some(capture), Some(playback)) = (&capture, &playback)
            && capture.config.sample_rate != playback.config.sample_rate
        {
            return Err(SoundError::Alsa(format!(
                "the ALSA device `{}` captures at {} Hz and `{}` plays at {} Hz; expected one rate: name another device, such \
                 as `plughw:` in place of `hw:`",
                capture.name, capture.config.sample_rate, playback.name, playback.config.sample_rate
            )));
        }
        let driver = playback.as_ref().or(capture.as_ref()).map(|side| side.config);
        let (sample_rate, block_frames) = match driver {
            Some(StreamConfig { sample_rate, buffer_size: BufferSize::Fixed(frames), .. }) => {
                (sample_rate, frames)
            }
            Some(StreamConfig { sample_rate, .. }) => (sample_rate, DEFAULT_BLOCK),
            None => (DEFAULT_RATE, DEFAULT_BLOCK),
        };
        let format = Format { sample_rate, block_frames, ..wanted.channels() };
        Ok(Alsa { capture, playback, format, shared })
    }
}

const DEFAULT_RATE: u32 = 48_000;
const DEFAULT_BLOCK: u32 = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Capture,
    Playback,
}

impl Side {
    fn find(
        host: &cpal::Host,
        name: Option<&str>,
        direction: Direction,
        channels: u16,
        rate: Option<u32>,
        block: Option<u32>,
    ) -> Result<Side, SoundError> {
        let device = match (name, direction) {
            (Some(name), _) => host.device_by_id(&DeviceId::new(HostId::Alsa, name)),
            (None, Direction::Capture) => host.default_input_device(),
            (None, Direction::Playback) => host.default_output_device(),
        };
        let name = name.unwrap_or("default").to_owned();
        let device = device.ok_or_else(|| {
            SoundError::Alsa(format!(
                "there is no ALSA device `{name}`; `aplay -L` and `arecord -L` list them"
            ))
        })?;
        let refused = |error| cannot_open(&name, &error);
        let supported: Vec<_> = match direction {
            Direction::Capture => device.supported_input_configs().map_err(refused)?.collect(),
            Direction::Playback => device.supported_output_configs().map_err(refused)?.collect(),
        };
        let Some(best) = choose(&supported, channels, rate.unwrap_or(DEFAULT_RATE)) else {
            let most = supported.iter().map(SupportedStreamConfigRange::channels).max().unwrap_or(0);
            return Err(SoundError::Alsa(format!(
                "the ALSA device `{name}` has at most {most} channels; expected {channels}"
            )));
        };
        let sample_rate = rate.unwrap_or(DEFAULT_RATE).clamp(best.min_sample_rate(), best.max_sample_rate());
        let buffer_size = match *best.buffer_size() {
            SupportedBufferSize::Range { min, max } => {
                BufferSize::Fixed(block.unwrap_or(DEFAULT_BLOCK).clamp(min, max))
            }
            SupportedBufferSize::Unknown => BufferSize::Fixed(block.unwrap_or(DEFAULT_BLOCK)),
        };
        let config = StreamConfig { channels: best.channels(), sample_rate, buffer_size };
        Ok(Side { device, name, config, samples: best.sample_format(), channels: channels.into() })
    }

    /// Opens the stream, which calls `take` with what was captured.
    fn capture(&self, lost: Lost, mut take: impl Take) -> Result<cpal::Stream, SoundError> {
        macro_rules! stream {
            ($sample:ty) => {
                self.device.build_input_stream(
                    self.config,
                    move |samples: &[$sample], _: &cpal::InputCallbackInfo| take.take(samples),
                    move |error| lost.note(&error),
                    None,
                )
            };
        }
        self.begin(match self.samples {
            SampleFormat::I16 => stream!(i16),
            SampleFormat::I24 => stream!(cpal::I24),
            SampleFormat::I32 => stream!(i32),
            _ => stream!(f32),
        })
    }

    /// Opens the stream, which calls `give` for what to play.
    fn playback(&self, lost: Lost, mut give: Drive) -> Result<cpal::Stream, SoundError> {
        macro_rules! stream {
            ($sample:ty) => {
                self.device.build_output_stream(
                    self.config,
                    move |samples: &mut [$sample], _: &cpal::OutputCallbackInfo| give.give(samples),
                    move |error| lost.note(&error),
                    None,
                )
            };
        }
        self.begin(match self.samples {
            SampleFormat::I16 => stream!(i16),
            SampleFormat::I24 => stream!(cpal::I24),
            SampleFormat::I32 => stream!(i32),
            _ => stream!(f32),
        })
    }

    fn begin(&self, stream: Result<cpal::Stream, cpal::Error>) -> Result<cpal::Stream, SoundError> {
        let refused = |error| cannot_open(&self.name, &error);
        let stream = stream.map_err(refused)?;
        stream.play().map_err(refused)?;
        Ok(stream)
    }

    /// Channels of the card, and how many of them are used.
    fn channels(&self) -> (usize, usize) {
        (self.config.channels.into(), self.channels)
    }
}

fn cannot_open(name: &str, error: &cpal::Error) -> SoundError {
    SoundError::Alsa(format!("the ALSA device `{name}` cannot be opened: {error}"))
}

impl Hardware for Alsa {
    fn format(&self) -> Format {
        self.format
    }

    fn start(self: Box<Self>, cycle: Cycle) -> Result<Box<dyn Running>, SoundError> {
        let lost = Lost { why: Arc::default(), shared: self.shared };
        let mut streams = Vec::new();
        match (&self.capture, &self.playback) {
            (Some(capture), None) => {
                streams.push(capture.capture(lost.clone(), Drive::new(cycle, capture, None))?);
            }
            (capture, Some(playback)) => {
                let mut waiting = None;
                if let Some(capture) = capture {
                    let (into, out) = queue(capture, self.format, Arc::clone(&lost.shared));
                    streams.push(capture.capture(lost.clone(), into)?);
                    waiting = Some(out);
                }
                streams.push(playback.playback(lost.clone(), Drive::new(cycle, playback, waiting))?);
            }
            (None, None) => {}
        }
        Ok(Box::new(Streams { _streams: streams, lost }))
    }
}

/// Streams that run until they are dropped.
struct Streams {
    _streams: Vec<cpal::Stream>,
    lost: Lost,
}

impl Running for Streams {
    fn check(&mut self) -> Result<(), String> {
        match self.lost.why.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }
}

/// What cpal tells of a stream that runs.
#[derive(Clone)]
struct Lost {
    why: Arc<Mutex<Option<String>>>,
    shared: Arc<Shared>,
}

impl Lost {
    fn note(&self, error: &cpal::Error) {
        match error.kind() {
            ErrorKind::Xrun => self.shared.lose(1),
            ErrorKind::DeviceChanged | ErrorKind::RealtimeDenied => {}
            // Sound has stopped: this thread may wait now.
            _ => {
                let why = format!("the sound card disappeared ({error}); waiting for it to return");
                *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
        }
    }
}

/// Takes what a stream captures.
trait Take: Send + 'static {
    fn take<T: SizedSample>(&mut self, samples: &[T])
    where
        f32: FromSample<T>;
}

/// Drives a cycle from the thread of a stream.
struct Drive {
    cycle: Cycle,
    channels: (usize, usize),
    /// What another stream has captured.
    waiting: Option<Waiting>,
    is_prepared: bool,
}

impl Drive {
    fn new(cycle: Cycle, side: &Side, waiting: Option<Waiting>) -> Drive {
        Drive { cycle, channels: side.channels(), waiting, is_prepared: false }
    }

    fn now(&mut self) -> Time {
        if !self.is_prepared {
            self.is_prepared = true;
            if process::run_in_real_time(PRIORITY).is_err() {
                self.cycle.shared().real_time_refused();
            }
        }
        Time::from_nanos(clock::raw_now())
    }

    fn give<T: SizedSample + FromSample<f32>>(&mut self, samples: &mut [T]) {
        let (now, (all, used)) = (self.now(), self.channels);
        for piece in samples.chunks_mut(all * self.cycle.most_frames()) {
            let frames = piece.len() / all;
            match &mut self.waiting {
                Some(waiting) => waiting.drain(&mut self.cycle),
                None => self.cycle.capture(now, frames, |_| ()),
            }
            self.cycle.play(now, frames, |rendered| {
                for (to, from) in piece.chunks_mut(all).zip(rendered.chunks(used)) {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = T::from_sample(*from));
                }
            });
        }
    }
}

impl Take for Drive {
    fn take<T: SizedSample>(&mut self, samples: &[T])
    where
        f32: FromSample<T>,
    {
        let (now, (all, used)) = (self.now(), self.channels);
        for piece in samples.chunks(all * self.cycle.most_frames()) {
            let frames = piece.len() / all;
            self.cycle.capture(now, frames, |captured| {
                for (to, from) in captured.chunks_mut(used).zip(piece.chunks(all)) {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = f32::from_sample(*from));
                }
            });
            self.cycle.play(now, frames, |_| ());
        }
    }
}

/// The two ends of what is captured by one thread and taken by another: samples, and beside them when they came in pieces of
/// how many frames.
fn queue(side: &Side, format: Format, shared: Arc<Shared>) -> (Queue, Waiting) {
    let frames = BLOCKS * format.block_frames as usize;
    let (samples, taken) = RingBuffer::new(frames * side.channels);
    let (pieces, arrived) = RingBuffer::new(frames);
    let most_frames = format.block_frames as usize;
    let into = Queue { samples, pieces, channels: side.channels(), most_frames, shared, is_prepared: false };
    (into, Waiting { samples: taken, pieces: arrived, channels: side.channels })
}

struct Queue {
    samples: Producer<f32>,
    pieces: Producer<(Time, usize)>,
    channels: (usize, usize),
    most_frames: usize,
    shared: Arc<Shared>,
    is_prepared: bool,
}

impl Take for Queue {
    fn take<T: SizedSample>(&mut self, samples: &[T])
    where
        f32: FromSample<T>,
    {
        if !self.is_prepared {
            self.is_prepared = true;
            if process::run_in_real_time(PRIORITY).is_err() {
                self.shared.real_time_refused();
            }
        }
        let (all, used) = self.channels;
        for piece in samples.chunks(all * self.most_frames) {
            let frames = piece.len() / all;
            let Ok(chunk) = self.samples.write_chunk_uninit(frames * used) else {
                // The player has stalled.
                self.shared.lose(1);
                continue;
            };
            let used_samples = piece.chunks(all).flat_map(|frame| &frame[..used]);
            chunk.fill_from_iter(used_samples.map(|sample| f32::from_sample(*sample)));
            // There is room: a piece has a frame at least.
            let _ = self.pieces.push((Time::from_nanos(clock::raw_now()), frames));
        }
    }
}

struct Waiting {
    samples: Consumer<f32>,
    pieces: Consumer<(Time, usize)>,
    channels: usize,
}

impl Waiting {
    fn drain(&mut self, cycle: &mut Cycle) {
        while let Ok((at, frames)) = self.pieces.pop() {
            let Ok(chunk) = self.samples.read_chunk(frames * self.channels) else { return };
            cycle.capture(at, frames, |captured| {
                let (first, second) = chunk.as_slices();
                captured[..first.len()].copy_from_slice(first);
                captured[first.len()..].copy_from_slice(second);
            });
            chunk.commit_all();
        }
    }
}

/// The configuration with the fewest channels that are enough, at the nearest rate, with the best of the sample formats.
fn choose(
    supported: &[SupportedStreamConfigRange],
    channels: u16,
    rate: u32,
) -> Option<SupportedStreamConfigRange> {
    const FORMATS: [SampleFormat; 4] =
        [SampleFormat::F32, SampleFormat::I32, SampleFormat::I24, SampleFormat::I16];
    let format = |range: &SupportedStreamConfigRange| {
        FORMATS.iter().position(|format| *format == range.sample_format())
    };
    let distance = |range: &SupportedStreamConfigRange| {
        rate.abs_diff(rate.clamp(range.min_sample_rate(), range.max_sample_rate()))
    };
    let usable = supported.iter().filter(|range| range.channels() >= channels && format(range).is_some());
    usable.min_by_key(|range| (distance(range), range.channels(), format(range))).copied()
}
