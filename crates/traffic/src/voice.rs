//! Packet voice.

mod capture;
mod synthetic;
mod talk;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use trunkline_audio::{ReceivedWav, g711};
use trunkline_core::schema::{Choice, Default, Kind, Parameter, Values};
use trunkline_core::{Duration, Time};

use crate::agenda::Agenda;
use crate::per_channel::PerChannel;
use crate::source::{
    Answer, AudioFormat, Built, Coding, Feedback, MessageBuffer, Packetiser, Source, SourceContext,
    SourceKind,
};
use capture::CapturedVoice;
use talk::TalkSpurts;

/// How long one sample lasts at 8 kHz.
const SAMPLE: Duration = Duration::from_nanos(ReceivedWav::SAMPLE_NANOS);

/// The most samples of a FIFO or of a packet: 8 s.
const LARGEST: u64 = 64_000;

/// The longest time to talk or to be silent.
const LONGEST: Duration = Duration::from_secs(3600);

pub(crate) const KIND: SourceKind = SourceKind {
    name: "voice",
    aliases: &[],
    doc: "Telephone speech: every channel sends G.711 mu-law audio at 8 kHz (64 kbit/s), with `samples` samples per \
          packet, in exact real time. With `talk` and `silence` it speaks in spurts and sends nothing between them: \
          ITU-T P.59 has exponential spurts of 1.004 s and silences of 1.587 s on average, a voice activity of 39 %. \
          With `fifo`, samples enter a FIFO one by one, and a packetiser, serviced every `samples`, passes on \
          everything that has accumulated (Weaver and McNabb 1992).",
    parameters: &[
        Parameter {
            name: "samples",
            kind: Kind::Integer { min: 8, max: 4096 },
            default: Default::Text("80"),
            doc: "Samples per packet, one byte and 125 us each: 80 are 10 ms.",
        },
        Parameter {
            name: "file",
            kind: Kind::File,
            default: Default::Absent,
            doc: "A WAV file of 8 kHz PCM; channel n of the flow plays channel n of the file repeatedly. Without \
                  this key, a synthetic signal with the rhythm of speech.",
        },
        Parameter {
            name: "talk",
            kind: Kind::Durations { min: talk::SHORTEST, max: LONGEST },
            default: Default::Absent,
            doc: "Length of a talk spurt; needs `silence`. Without this key, speech has no pauses.",
        },
        Parameter {
            name: "silence",
            kind: Kind::Durations { min: Duration::ZERO, max: LONGEST },
            default: Default::Absent,
            doc: "Length of the silence after a talk spurt; needs `talk`.",
        },
        Parameter {
            name: "phase",
            kind: Kind::Choice(&[
                Choice { name: "random", doc: "each channel at a random time within the first interval" },
                Choice { name: "spread", doc: "the channels of all members evenly over the first interval" },
                Choice { name: "together", doc: "all at once" },
            ]),
            default: Default::Text("random"),
            doc: "Time of the channels' first packets.",
        },
        Parameter {
            name: "fifo",
            kind: Kind::Integer { min: 8, max: LARGEST },
            default: Default::Absent,
            doc: "Depth of each channel's A/D FIFO in samples, at least `samples`. While the transport does not \
                  accept a packet, samples accumulate there, and leave as one larger packet when it does; samples \
                  that find the FIFO full are lost. Without this key, every packet has `samples` samples and waits \
                  for the transport by itself.",
        },
        Parameter {
            name: "largest",
            kind: Kind::Integer { min: 8, max: LARGEST },
            default: Default::Absent,
            doc: "Maximum number of samples in a packet, at least `samples`; needs `fifo`. Without this key, as many \
                  as the FIFO holds.",
        },
    ],
    build,
    answer: |_| Answer::None,
    needs_reliability: |_| false,
    needs_flow_control: |_| false,
    endless: |_| true,
    max_message: |values| {
        let largest = values.integer_if_given("largest").or(values.integer_if_given("fifo"));
        largest.unwrap_or(values.integer("samples"))
    },
    interval: |values| Some(SAMPLE * values.integer("samples")),
    samples_per_packet: |values| {
        values.integer_if_given("fifo").is_none().then_some(values.integer("samples"))
    },
    packetiser: |values| {
        Some(Packetiser {
            samples: values.integer("samples") as u16, // At most 4096.
            fifo: values.integer_if_given("fifo").map(|depth| depth as u16),
            pauses: values.distribution_if_given("talk").is_some(),
        })
    },
    audio: |_| Some(AudioFormat { sample_rate: g711::SAMPLE_RATE, coding: Coding::MuLaw, is_silent: false }),
};

fn build(values: &Values, context: &SourceContext) -> Built {
    match (values.integer_if_given("fifo"), values.integer_if_given("largest")) {
        (Some(depth), largest) => {
            Ok(Box::new(CapturedVoice::new(values, context, depth, largest.unwrap_or(depth))?))
        }
        (None, None) => Ok(Box::new(Voice::new(values, context)?)),
        (None, Some(_)) => Err("`largest` needs `fifo`: without it every packet has `samples`".to_owned()),
    }
}

/// Speech of several channels. Message n of a channel holds samples n x `samples` and on of its speech, whether or not
/// silences lie between: what is received can be put together again from the sequence numbers alone.
///
/// With an only channel it is at most a cache line, and the speech is all that a message touches besides.
#[derive(Debug)]
struct Voice {
    agenda: Agenda,
    speakers: PerChannel<Speaker>,
}

/// Who speaks on a channel.
#[derive(Debug)]
struct Speaker {
    speech: Arc<[Vec<u8>]>,
    /// Which entry of the speech.
    part: u16,
    /// Samples per packet.
    samples: u16,
    /// Where in its part of the speech, which comes from a WAV file and is shorter than 4 GiB.
    position: u32,
    /// `None` for one that never pauses.
    spurts: Option<Box<TalkSpurts>>,
}

impl Voice {
    fn new(values: &Values, context: &SourceContext) -> Result<Voice, String> {
        let speakers = (0..context.channels)
            .map(|channel| Speaker::new(values, context, channel))
            .collect::<Result<_, _>>()?;
        let mut voice = Voice { agenda: Agenda::new(context.channels, context.stop), speakers };
        for channel in 0..context.channels {
            let speaker = voice.speakers.of(channel);
            let first = context.start + phase(values, context, channel, speaker.interval());
            voice.agenda.set(channel, speaker.next_slot(first));
        }
        Ok(voice)
    }
}

impl Speaker {
    fn new(values: &Values, context: &SourceContext, channel: u16) -> Result<Speaker, String> {
        let (speech, part, position) = if values.text_if_given("file").is_some() {
            let speech = Arc::clone(&context.speech);
            let part = usize::from(channel) % speech.len().max(1);
            if speech.get(part).is_none_or(Vec::is_empty) {
                return Err("`file` has a channel without samples".to_owned());
            }
            (speech, part as u16, 0)
        } else {
            let (part, position) = synthetic::place(context, channel);
            (synthetic::voices(), part, position)
        };
        let samples = values.integer("samples") as u16; // At most 4096.
        let spurts = spurts(values, context, channel)?.map(Box::new);
        Ok(Speaker { speech, part, samples, position, spurts })
    }

    #[inline]
    fn interval(&self) -> Duration {
        SAMPLE * u64::from(self.samples)
    }

    #[inline]
    fn next_slot(&mut self, slot: Time) -> Time {
        let interval = self.interval();
        match &mut self.spurts {
            Some(spurts) => spurts.next_slot(slot, interval),
            None => slot,
        }
    }

    /// Leaves the next samples out.
    fn skip(&mut self, samples: u32) {
        let length = self.speech[usize::from(self.part)].len() as u64;
        self.position = ((u64::from(self.position) + u64::from(samples)) % length) as u32;
    }

    /// Writes the next samples.
    #[inline]
    fn speak(&mut self, mut payload: &mut [u8]) {
        let speech = &self.speech[usize::from(self.part)];
        while !payload.is_empty() {
            let rest = &speech[self.position as usize..];
            let length = rest.len().min(payload.len());
            let (now, later) = payload.split_at_mut(length);
            now.copy_from_slice(&rest[..length]);
            self.position = if length == rest.len() { 0 } else { self.position + length as u32 };
            payload = later;
        }
    }
}

impl Source for Voice {
    #[inline]
    fn next_due(&self) -> Option<Time> {
        self.agenda.first().map(|(due, _)| due)
    }

    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        while let Some((due, channel)) = self.agenda.first_by(now) {
            let speaker = self.speakers.of(channel);
            out.push(channel, due, usize::from(speaker.samples), |payload| speaker.speak(payload));
            let next = speaker.next_slot(due + speaker.interval());
            self.agenda.set(channel, next);
            if out.has_enough() {
                break;
            }
        }
    }

    fn notify(&mut self, _: Time, _: Feedback) {}

    fn is_finished(&self) -> bool {
        self.agenda.first().is_none()
    }
}

/// How long after the start a channel's first packet is due.
fn phase(values: &Values, context: &SourceContext, channel: u16, interval: Duration) -> Duration {
    match &*values.text("phase") {
        "spread" => {
            let channels = u128::from(context.channels);
            let place = u128::from(context.member) * channels + u128::from(channel);
            let places = u128::from(context.members.max(1)) * channels;
            let nanos = u128::from(interval.as_nanos()) * place / places.max(place + 1);
            Duration::from_nanos(nanos as u64)
        }
        "together" => Duration::ZERO,
        _ => {
            let place = format!("{}/{channel}/phase", context.place);
            context.seed.stream(&place).duration_below(interval)
        }
    }
}

/// The talk spurts of a channel, if the voice pauses at all.
fn spurts(values: &Values, context: &SourceContext, channel: u16) -> Result<Option<TalkSpurts>, String> {
    match (values.distribution_if_given("talk"), values.distribution_if_given("silence")) {
        (None, None) => Ok(None),
        (Some(talk), Some(silence)) => Ok(Some(TalkSpurts::new(&talk, &silence, context, channel))),
        (Some(_), None) => Err("`talk` needs `silence`: how long it is silent after a talk spurt".to_owned()),
        (None, Some(_)) => Err("`silence` needs `talk`: how long a talk spurt is".to_owned()),
    }
}
