//! Uncompressed audio, block by block.

mod tones;

use trunkline_core::schema::{Choice, Default, Kind, Parameter, Values};
use trunkline_core::{Duration, Time};

use crate::draws::Volume;
use crate::source::{
    Answer, AudioFormat, Built, Coding, Feedback, MessageBuffer, Source, SourceContext, SourceKind,
};

pub(crate) const KIND: SourceKind = SourceKind {
    name: "audio",
    aliases: &[],
    doc: "Uncompressed audio as a sound card delivers it: after every `frames` of the device, each channel sends a \
          block as one message, all channels at once. If the rate of the stream differs from the device's, a block \
          is resampled, to whole samples: 512 frames at 48 kHz are 470 or 471 samples at 44.1 kHz. The defaults are \
          those of Schiavoni and Queiroz (2013), 705.6 kbit/s in 93.75 messages per second.",
    parameters: &[
        Parameter {
            name: "frames",
            kind: Kind::Integer { min: 1, max: 8192 },
            default: Default::Text("512"),
            doc: "Frames of the device in a block.",
        },
        rate("device-rate", "48000", "Frames of the device per second."),
        rate("sample-rate", "44100", "Samples of each channel of the stream per second."),
        Parameter {
            name: "bits",
            kind: Kind::Integer { min: 8, max: 32 },
            default: Default::Text("16"),
            doc: "Bits of a sample, sent in whole bytes.",
        },
        Parameter {
            name: "signal",
            kind: Kind::Choice(&[
                Choice { name: "silence", doc: "zeros" },
                Choice {
                    name: "tones",
                    doc: "two plucked notes per second, different in each channel, for listening",
                },
            ]),
            default: Default::Text("silence"),
            doc: "Content of the samples.",
        },
        Parameter {
            name: "blocks",
            kind: Kind::Integer { min: 1, max: 1 << 40 },
            default: Default::Absent,
            doc: "Number of blocks that each channel sends. Without this key, it sends until the end of the run.",
        },
    ],
    build,
    answer: |_| Answer::None,
    needs_reliability: |_| false,
    needs_flow_control: |_| false,
    endless: |values| values.integer_if_given("blocks").is_none(),
    max_message: |values| Block::of(values).largest(),
    interval: |values| Some(Block::of(values).duration()),
    samples_per_packet: |_| None,
    packetiser: |_| None,
    audio: |values| {
        let Block { sample_rate, sample_bytes, .. } = Block::of(values);
        // At most 768,000, and at most 4.
        let coding = Coding::Pcm { bytes: sample_bytes as u8 };
        let is_silent = &*values.text("signal") == "silence";
        Some(AudioFormat { sample_rate: sample_rate as u32, coding, is_silent })
    },
};

fn build(values: &Values, context: &SourceContext) -> Built {
    Ok(Box::new(Audio::new(values, context)))
}

const fn rate(name: &'static str, default: &'static str, doc: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Integer { min: 8000, max: 768_000 }, default: Default::Text(default), doc }
}

/// What a block is. Its number decides about both of its moments, so that neither time nor samples are ever lost.
#[derive(Clone, Copy, Debug)]
struct Block {
    frames: u64,
    device_rate: u64,
    sample_rate: u64,
    sample_bytes: u64,
}

impl Block {
    fn of(values: &Values) -> Block {
        Block {
            frames: values.integer("frames"),
            device_rate: values.integer("device-rate"),
            sample_rate: values.integer("sample-rate"),
            sample_bytes: values.integer("bits").div_ceil(8),
        }
    }

    /// Nominally.
    fn duration(self) -> Duration {
        self.begin(1)
    }

    /// When the block of that number begins, from the first on.
    fn begin(self, number: u64) -> Duration {
        let nanos =
            u128::from(number) * u128::from(self.frames) * 1_000_000_000 / u128::from(self.device_rate);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many whole samples of the stream there are before the block of that number.
    fn samples_before(self, number: u64) -> u128 {
        u128::from(number) * u128::from(self.frames) * u128::from(self.sample_rate)
            / u128::from(self.device_rate)
    }

    /// The bytes of the block of that number.
    fn bytes(self, number: u64) -> u64 {
        let samples = self.samples_before(number + 1) - self.samples_before(number);
        // Blocks are small: see the ranges of the parameters.
        samples as u64 * self.sample_bytes
    }

    /// The most bytes of any block.
    fn largest(self) -> u64 {
        (self.frames * self.sample_rate).div_ceil(self.device_rate) * self.sample_bytes
    }
}

/// All channels of a sound card; a block of each is due when the device has captured it.
#[derive(Debug)]
struct Audio {
    block: Block,
    /// The number of the block that is due next.
    number: u64,
    /// The channel whose turn it is.
    channel: u16,
    channels: u16,
    is_silent: bool,
    start: Time,
    stop: Time,
    left: Volume,
}

impl Audio {
    fn new(values: &Values, context: &SourceContext) -> Audio {
        Audio {
            block: Block::of(values),
            number: 0,
            channel: 0,
            channels: context.channels,
            is_silent: &*values.text("signal") == "silence",
            start: context.start,
            stop: context.stop,
            left: Volume { bytes: None, messages: values.integer_if_given("blocks") },
        }
    }

    /// Writes the samples of the channel whose turn it is into zeros.
    fn fill(&self, payload: &mut [u8]) {
        if !self.is_silent {
            let Block { sample_rate, sample_bytes, .. } = self.block;
            let first = self.block.samples_before(self.number) as u64;
            tones::fill(sample_rate, self.channel, first, sample_bytes as usize, payload);
        }
    }
}

impl Source for Audio {
    fn next_due(&self) -> Option<Time> {
        let due = self.start + self.block.begin(self.number);
        (due < self.stop && !self.left.is_used_up()).then_some(due)
    }

    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        while let Some(due) = self.next_due().filter(|due| *due <= now) {
            let bytes = self.block.bytes(self.number);
            out.push(self.channel, due, bytes as usize, |payload| self.fill(payload));
            self.channel += 1;
            if self.channel == self.channels {
                self.channel = 0;
                self.number += 1;
                self.left.take(bytes);
            }
            if out.has_enough() {
                break;
            }
        }
    }

    fn notify(&mut self, _: Time, _: Feedback) {}

    fn is_finished(&self) -> bool {
        self.next_due().is_none()
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::schema::Value;

    use super::*;
    use crate::testing::{build, context, run, values};

    #[test]
    fn the_study_s_blocks_have_470_samples_or_471_and_come_every_512_frames() {
        let context = SourceContext {
            channels: 2,
            start: Time::ZERO,
            stop: Time::from_nanos(2_000_000_000),
            ..context()
        };
        let sent = run(build("audio", &[], &context).as_mut());
        assert_eq!(sent.len(), 2 * 188);
        let sizes: Vec<usize> = sent.iter().step_by(2).map(|sent| sent.length).collect();
        assert_eq!(&sizes[..6], [940, 940, 942, 940, 942, 940]);
        assert_eq!(
            sizes[..75].iter().sum::<usize>(),
            75 * 512 * 441 / 480 * 2,
            "nothing is lost or invented"
        );
        for (place, sent) in sent.iter().enumerate() {
            let block = (place / 2) as u64;
            assert_eq!(usize::from(sent.channel), place % 2);
            assert_eq!(sent.due, Time::from_nanos(block * 512 * 1_000_000_000 / 48_000));
        }
    }

    #[test]
    fn tones_go_on_from_block_to_block_and_differ_between_channels() {
        let given = [("signal", Value::Text("tones".into())), ("bits", Value::Integer(24))];
        let context = SourceContext {
            channels: 2,
            stop: Time::from_nanos(2_000_000_000),
            start: Time::ZERO,
            ..context()
        };
        let mut source = build("audio", &given, &context);
        let mut out = MessageBuffer::with_headroom(0);
        source.produce(Time::from_nanos(1_999_000_000), &mut out);
        let format = (KIND.audio)(&values("audio", &given)).unwrap();
        assert!(!format.is_silent);
        let mut channels = [Vec::new(), Vec::new()];
        for (place, message) in out.messages().iter().enumerate() {
            format.decode(out.bytes(place), &mut channels[usize::from(message.channel)]);
        }
        let [left, right] = &channels;
        assert!(left.len() > 80_000 && left != right);
        for channel in &channels {
            let loudest = channel.iter().fold(0.0f32, |most, sample| most.max(sample.abs()));
            assert!((0.2..=0.25).contains(&loudest), "{loudest}");
            // No step but at the beginning of a note, where all is zero.
            let step = channel.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
            assert!(step < 0.05, "{step}");
        }
    }

    #[test]
    fn so_many_blocks_of_each_channel_are_sent_and_no_more() {
        let given = [("blocks", Value::Integer(3)), ("bits", Value::Integer(20))];
        let context = SourceContext { channels: 3, ..context() };
        let sent = run(build("audio", &given, &context).as_mut());
        assert_eq!(sent.iter().map(|sent| sent.channel).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(sent[0].length, 470 * 3, "samples of 20 bits take three bytes");
        assert!(!(KIND.endless)(&values("audio", &given)) && (KIND.endless)(&values("audio", &[])));
    }
}
