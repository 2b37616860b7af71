//! Packet voice.

mod synthetic;
mod talk;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use trunkline_audio::ReceivedWav;
use trunkline_core::schema::{Choice, Default, Kind, Parameter, Values};
use trunkline_core::{Duration, Time};

use crate::agenda::Agenda;
use crate::source::{Feedback, MessageBuffer, Source, SourceContext, SourceKind};
use talk::TalkSpurts;

/// How long one sample lasts at 8 kHz.
const SAMPLE: Duration = Duration::from_nanos(ReceivedWav::SAMPLE_NANOS);

/// The longest time to talk or to be silent.
const LONGEST: Duration = Duration::from_secs(3600);

pub(crate) const KIND: SourceKind = SourceKind {
    name: "voice",
    aliases: &[],
    doc: "Telephone speech: every channel sends G.711 mu-law audio at 8 kHz (64 kbit/s), as many samples per packet as \
          told, at exactly the time they take to speak. With `talk` and `silence` it speaks in spurts and sends \
          nothing between them: ITU-T P.59 has exponential spurts of 1.004 s and silences of 1.587 s on average, a \
          voice activity of 39 %.",
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
            doc: "A WAV file of 8 kHz PCM; channel n of the flow speaks its channel n, over and over. Absent: a \
                  synthetic signal with the rhythm of speech.",
        },
        Parameter {
            name: "talk",
            kind: Kind::Durations { min: talk::SHORTEST, max: LONGEST },
            default: Default::Absent,
            doc: "Length of a talk spurt; goes with `silence`. Absent: speaks without a pause.",
        },
        Parameter {
            name: "silence",
            kind: Kind::Durations { min: Duration::ZERO, max: LONGEST },
            default: Default::Absent,
            doc: "Length of the silence after a talk spurt; goes with `talk`.",
        },
        Parameter {
            name: "phase",
            kind: Kind::Choice(&[
                Choice { name: "random", doc: "each channel at a random time within the first interval" },
                Choice { name: "spread", doc: "the channels of all members evenly over the first interval" },
                Choice { name: "together", doc: "all at once" },
            ]),
            default: Default::Text("random"),
            doc: "When the channels send their first packets.",
        },
    ],
    build: |values, context| Ok(Box::new(Voice::new(values, context)?)),
    needs_answers: false,
    needs_flow_control: |_| false,
    endless: |_| true,
    max_message: |values| values.integer("samples"),
    interval: |values| Some(SAMPLE * values.integer("samples")),
    samples_per_packet: |values| Some(values.integer("samples")),
};

/// Speech of several channels. Message n of a channel holds samples n x `samples` and on of its speech, whether or not
/// silences lie between: what is received can be put together again from the sequence numbers alone.
#[derive(Debug)]
struct Voice {
    agenda: Agenda,
    samples: usize,
    interval: Duration,
    speech: Arc<[Vec<u8>]>,
    /// Where in its speech each channel is.
    positions: Vec<usize>,
    /// One per channel; empty if they never pause.
    spurts: Vec<TalkSpurts>,
}

impl Voice {
    fn new(values: &Values, context: &SourceContext) -> Result<Voice, String> {
        let recorded = values.text_if_given("file").is_some();
        let speech = if recorded { Arc::clone(&context.speech) } else { synthetic::voices() };
        if speech.is_empty() || speech.iter().any(Vec::is_empty) {
            return Err("`file` has a channel without samples".to_owned());
        }
        let samples = values.integer("samples");
        let mut voice = Voice {
            agenda: Agenda::new(context.channels, context.stop),
            samples: samples as usize,
            interval: SAMPLE * samples,
            positions: (0..context.channels)
                .map(|channel| if recorded { 0 } else { offset(context, channel) })
                .collect(),
            speech,
            spurts: spurts(values, context)?,
        };
        let phase = values.text("phase");
        for channel in 0..context.channels {
            let first = context.start + voice.phase(&phase, channel, context);
            voice.schedule(channel, first);
        }
        Ok(voice)
    }

    /// How long after the start a channel's first packet is due.
    fn phase(&self, phase: &str, channel: u16, context: &SourceContext) -> Duration {
        match phase {
            "spread" => {
                let channels = u128::from(context.channels);
                let place = u128::from(context.member) * channels + u128::from(channel);
                let places = u128::from(context.members.max(1)) * channels;
                let nanos = u128::from(self.interval.as_nanos()) * place / places.max(place + 1);
                Duration::from_nanos(nanos as u64)
            }
            "together" => Duration::ZERO,
            _ => {
                let place = format!("{}/{channel}/phase", context.place);
                context.seed.stream(&place).duration_below(self.interval)
            }
        }
    }

    /// Makes a channel due at `slot`, or at its first slot after that at which it talks.
    fn schedule(&mut self, channel: u16, slot: Time) {
        let due = match self.spurts.get_mut(usize::from(channel)) {
            Some(spurts) => spurts.next_slot(slot, self.interval),
            None => slot,
        };
        self.agenda.set(channel, due);
    }

    /// Writes a channel's next samples.
    fn speak(&mut self, channel: u16, mut payload: &mut [u8]) {
        let speech = &self.speech[usize::from(channel) % self.speech.len()];
        let position = &mut self.positions[usize::from(channel)];
        while !payload.is_empty() {
            let rest = &speech[*position..];
            let length = rest.len().min(payload.len());
            let (now, later) = payload.split_at_mut(length);
            now.copy_from_slice(&rest[..length]);
            *position = if length == rest.len() { 0 } else { *position + length };
            payload = later;
        }
    }
}

impl Source for Voice {
    fn next_due(&self) -> Option<Time> {
        self.agenda.first().map(|(due, _)| due)
    }

    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        while let Some((due, channel)) = self.agenda.first_by(now) {
            out.push(channel, due, self.samples, |payload| self.speak(channel, payload));
            self.schedule(channel, due + self.interval);
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

/// The talk spurts of every channel, if the voice pauses at all.
fn spurts(values: &Values, context: &SourceContext) -> Result<Vec<TalkSpurts>, String> {
    match (values.distribution_if_given("talk"), values.distribution_if_given("silence")) {
        (None, None) => Ok(Vec::new()),
        (Some(talk), Some(silence)) => Ok((0..context.channels)
            .map(|channel| TalkSpurts::new(&talk, &silence, context, channel))
            .collect()),
        (Some(_), None) => Err("`talk` needs `silence`: how long it is silent after a talk spurt".to_owned()),
        (None, Some(_)) => Err("`silence` needs `talk`: how long a talk spurt is".to_owned()),
    }
}

/// Where in the synthetic speech a channel begins, so that no two of a flow say the same at the same time.
fn offset(context: &SourceContext, channel: u16) -> usize {
    let place = u64::from(context.member) * u64::from(context.channels) + u64::from(channel);
    // A step that shares no divisor with the length visits every position.
    (place.wrapping_mul(7919) % synthetic::LENGTH as u64) as usize
}
