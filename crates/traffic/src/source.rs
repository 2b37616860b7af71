//! The contract of a source, and the registry of kinds.

use std::ops::Range;

use trunkline_audio::g711::decode_mu_law;
use trunkline_core::schema::{Parameter, Values};
use trunkline_core::{Bytes, Custom, Duration, Seed, Time};

/// A traffic model.
///
/// The driver loop: when `next_due()` has come, call `produce(now)`, which appends every message that is due and moves
/// `next_due` on. Messages that the transport refuses as "full" stay with the driver, in order; it does not call
/// `produce` again until they are gone, then calls `notify(Writable)`. A source without a pace of its own (unlimited
/// bulk) stays due as long as it has volume left: it is produced from once per message that the transport takes, so it
/// needs a transport with flow control (the experiment file is checked for that).
pub trait Source: Send {
    /// When the next message is due; `None` while it waits for feedback or when it is finished. A call to `produce` at
    /// or after this time gives at least one message, unless that call is made at or after the stop time. It never
    /// decreases but through `notify`: an answer can make a source due earlier than its timeout would have.
    fn next_due(&self) -> Option<Time>;

    /// Appends what is due up to and including `now`. Each message carries the time at which the model wanted it, which
    /// may be earlier than `now`. Called late, it produces all that has become due, each with its own due time.
    ///
    /// Once the buffer holds [`MessageBuffer::ENOUGH`] bytes a call may leave the rest to the next: `next_due` is then
    /// not after `now`, and the driver calls again when these messages are gone. So a source that is faster than its
    /// transport fills no memory. A source with FIFOs leaves all but one message to the next call: what waits for the
    /// transport waits in them. What they had no room for it reports as [`Overflow`]s in the same buffer.
    fn produce(&mut self, now: Time, out: &mut MessageBuffer);

    /// Tells what became of earlier messages.
    fn notify(&mut self, now: Time, what: Feedback);

    /// Whether nothing will ever be due again.
    fn is_finished(&self) -> bool;

    /// From when on nothing is expected of it any more: nothing will be due, and no answer is waited for. `None` while
    /// something may still become due. An answer can make it earlier; a run that lasts until a flow is over ends then.
    fn over_at(&self) -> Option<Time> {
        self.is_finished().then_some(Time::ZERO)
    }

    /// A transfer that an answer has just ended. Drivers ask after every [`Feedback::Answered`], until it is `None`, and
    /// record each with the time at which the answer arrived.
    fn take_transfer(&mut self) -> Option<Transfer> {
        None
    }
}

/// A volume that was transferred and acknowledged by its sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The channel within the flow.
    pub channel: u16,
    /// When its first message was produced.
    pub began: Time,
    /// Its payload.
    pub bytes: Bytes,
}

/// What a source is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// The transport takes messages again.
    Writable,
    /// The reflected message or answer to this one has come back.
    Answered {
        /// The channel of the message that was answered.
        channel: u16,
        /// The sequence number that the driver gave it (counted per channel from 0).
        sequence: u32,
    },
}

/// Messages that a source has produced, in one caller-owned buffer; before every payload stands room for a header.
#[derive(Debug, Default)]
pub struct MessageBuffer {
    headroom: usize,
    bytes: Vec<u8>,
    messages: Vec<Produced>,
    overflows: Vec<Overflow>,
}

/// Samples that found no room in the FIFO of a channel, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The channel within the flow.
    pub channel: u16,
    /// When the first of them came.
    pub at: Time,
    /// How many.
    pub samples: u32,
}

/// One message in a [`MessageBuffer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Produced {
    /// The channel within the flow, from 0.
    pub channel: u16,
    /// When the model wanted it sent.
    pub due: Time,
    /// Where header room and payload stand in the buffer.
    pub range: Range<usize>,
    /// Whether the sink is to answer it with a message of [`Answer::Bytes`]. Never with another [`Answer`].
    pub asks: bool,
}

/// What a source waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    None,
    /// That its messages are reflected, whole: its flow must reflect.
    Echo,
    /// That the sink answers every message that [asks](Produced::asks) with one of so many bytes of payload. The
    /// others are sunk, or reflected if the flow is.
    Bytes(u64),
}

impl MessageBuffer {
    /// How many bytes, header room included, [`Source::produce`] appends before it may leave the rest to the next call.
    pub const ENOUGH: usize = 1 << 20;

    /// An empty buffer that leaves `headroom` zero bytes before every payload.
    pub fn with_headroom(headroom: usize) -> MessageBuffer {
        MessageBuffer { headroom, ..MessageBuffer::default() }
    }

    /// Appends a message whose payload of `length` bytes (zeros at first) is written by `fill`.
    pub fn push(&mut self, channel: u16, due: Time, length: usize, fill: impl FnOnce(&mut [u8])) {
        let start = self.bytes.len();
        let end = start + self.headroom + length;
        self.bytes.resize(end, 0);
        fill(&mut self.bytes[start + self.headroom..end]);
        self.messages.push(Produced { channel, due, range: start..end, asks: false });
    }

    /// Appends a message of `length` zeros; if it `asks`, the sink is to answer it.
    pub fn push_zeros(&mut self, channel: u16, due: Time, length: usize, asks: bool) {
        self.push(channel, due, length, |_| {});
        if let Some(message) = self.messages.last_mut() {
            message.asks = asks;
        }
    }

    /// The messages, in the order of production.
    pub fn messages(&self) -> &[Produced] {
        &self.messages
    }

    /// Header room and payload of a message, to be sent together with others.
    pub fn bytes(&self, message: usize) -> &[u8] {
        &self.bytes[self.messages[message].range.clone()]
    }

    /// Header room and payload of a message.
    pub fn bytes_mut(&mut self, message: usize) -> &mut [u8] {
        &mut self.bytes[self.messages[message].range.clone()]
    }

    /// Whether it holds [`MessageBuffer::ENOUGH`] bytes.
    pub fn has_enough(&self) -> bool {
        self.bytes.len() >= MessageBuffer::ENOUGH
    }

    /// Notes what a FIFO had no room for.
    pub fn overflowed(&mut self, overflow: Overflow) {
        self.overflows.push(overflow);
    }

    /// Takes the overflows out, in the order in which they were noted. Drivers record them after every call of
    /// [`Source::produce`].
    #[inline]
    pub fn take_overflows(&mut self) -> impl Iterator<Item = Overflow> {
        self.overflows.drain(..)
    }

    /// Forgets all messages and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.messages.clear();
    }
}

/// A kind of source that an experiment file can name: `source = { kind = "voice", samples = 80 }`.
pub struct SourceKind {
    /// The word in the file.
    pub name: &'static str,
    /// Other words for it (the papers' names).
    pub aliases: &'static [&'static str],
    /// One paragraph: what it models and where that is defined.
    pub doc: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Builds the source of one member of a flow, or says what is wrong with the combination of values.
    pub build: fn(&Values, &SourceContext) -> Built,
    /// What it waits for with these values.
    pub answer: fn(&Values) -> Answer,
    /// Whether, with these values, a message or answer that is lost would stop it for good: the transport must repair
    /// loss.
    pub needs_reliability: fn(&Values) -> bool,
    /// Whether, with these values, nothing but the transport holds it back: the transport must have flow control.
    pub needs_flow_control: fn(&Values) -> bool,
    /// Whether, with these values, it goes on to the end of the run.
    pub endless: fn(&Values) -> bool,
    /// The largest message that it can produce with these values, in bytes of payload.
    pub max_message: fn(&Values) -> u64,
    /// The mean time between messages of one channel while it sends; `None` if answers or the transport decide.
    pub interval: fn(&Values) -> Option<Duration>,
    /// How many samples of G.711 audio at 8 kHz each message carries; `None` if it carries no audio, or not always as
    /// many.
    pub samples_per_packet: fn(&Values) -> Option<u64>,
    /// How it packs samples of G.711 audio at 8 kHz into messages; `None` if it carries none.
    pub packetiser: fn(&Values) -> Option<Packetiser>,
    /// How audio is written in its messages; `None` if it carries none.
    pub audio: fn(&Values) -> Option<AudioFormat>,
}

/// How audio is written in a message: samples of one channel, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioFormat {
    /// Samples of the channel per second.
    pub sample_rate: u32,
    /// How a sample is written.
    pub coding: Coding,
    /// Whether there is nothing to hear in it.
    pub is_silent: bool,
}

/// How a sample is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// G.711 mu-law, one byte.
    MuLaw,
    /// An integer in two's complement, most significant byte first.
    Pcm {
        /// Its bytes, 1 to 4.
        bytes: u8,
    },
}

impl AudioFormat {
    /// How many samples so many bytes are; what is left over counts for nothing.
    pub fn samples(self, bytes: usize) -> usize {
        bytes / self.sample_bytes()
    }

    /// Appends the samples of a payload, from -1 to 1 at full scale.
    pub fn decode(self, payload: &[u8], samples: &mut Vec<f32>) {
        match self.coding {
            Coding::MuLaw => {
                samples.extend(payload.iter().map(|&code| f32::from(decode_mu_law(code)) / 32_768.0));
            }
            Coding::Pcm { .. } => samples.extend(payload.chunks_exact(self.sample_bytes()).map(|bytes| {
                let mut wide = [0; 4];
                wide[..bytes.len()].copy_from_slice(bytes);
                i32::from_be_bytes(wide) as f32 / 2_147_483_648.0
            })),
        }
    }

    fn sample_bytes(self) -> usize {
        match self.coding {
            Coding::MuLaw => 1,
            Coding::Pcm { bytes } => usize::from(bytes.clamp(1, 4)),
        }
    }
}

/// How samples are packed into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packetiser {
    /// A message is made for so many samples.
    pub samples: u16,
    /// Depth of the FIFO from which they come, in samples; a message may then have more.
    pub fifo: Option<u16>,
    /// Whether the speaker pauses.
    pub pauses: bool,
}

/// A source, or what is wrong with the combination of its values, in one clause.
pub type Built = Result<Box<dyn Source>, String>;

/// A function that makes the messages of each channel: the time since the message before, or since the start, and the size in
/// bytes.
pub type CustomSource = Custom<(Duration, u32)>;

/// What a source is built with, beside its own values.
#[derive(Clone, Debug)]
pub struct SourceContext {
    /// How many channels the flow has, at least 1. Each is a source of its own: n channels offer n times as much.
    pub channels: u16,
    /// Which member of the flow this is, from 0.
    pub member: u32,
    /// How many members the flow has.
    pub members: u32,
    /// When the source may start.
    pub start: Time,
    /// When it must have stopped: nothing is due at or after this.
    pub stop: Time,
    /// The seed of this repetition.
    pub seed: Seed,
    /// The place of this member, for its streams: `flow.voice/3/source`.
    pub place: String,
    /// Per channel of the audio file that the source names, if it names one: mu-law bytes at 8 kHz. Channel `c` of the
    /// flow plays entry `c % len`, from the start again at its end.
    pub speech: std::sync::Arc<[Vec<u8>]>,
    /// The function of a custom source.
    pub custom: CustomSource,
}
