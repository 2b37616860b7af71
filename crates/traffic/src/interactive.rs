//! Request and response.

use trunkline_core::distribution::Sampler;
use trunkline_core::schema::{Default, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration, Time};

use crate::agenda::Agenda;
use crate::draws::{MAX_MESSAGE, Sizes};
use crate::per_channel::PerChannel;
use crate::source::{Answer, Feedback, MessageBuffer, Source, SourceContext, SourceKind};

pub(crate) const KIND: SourceKind = SourceKind {
    name: "interactive",
    aliases: &["ipuke"],
    doc: "Request and response: the source sends a message, waits for its answer, pauses for `think`, and sends the \
          next. The `ipuke` of Hawley (1989). In a flow with `reflect`, its latency is a round trip.",
    parameters: &[
        Parameter {
            name: "message",
            kind: Kind::Sizes { min: Bytes(1), max: Bytes(MAX_MESSAGE) },
            default: Default::Text("64 B"),
            doc: "Size of a request, without headers.",
        },
        Parameter {
            name: "answer",
            kind: Kind::Bytes { min: Bytes(1), max: Bytes(MAX_MESSAGE) },
            default: Default::Absent,
            doc: "Size of an answer, without headers: `4 B` in Hawley (1989), whose sink writes back the length. \
                  Without this key, the whole request is returned, which needs `reflect = true`.",
        },
        Parameter {
            name: "think",
            kind: Kind::Durations { min: Duration::ZERO, max: Duration::from_secs(3600) },
            default: Default::Text("0 s"),
            doc: "Time from an answer to the next request.",
        },
        Parameter {
            name: "timeout",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
            default: Default::Text("1 s"),
            doc: "Maximum time to wait for an answer; after it, the source continues as if the answer had arrived.",
        },
        Parameter {
            name: "messages",
            kind: Kind::Integer { min: 1, max: 1 << 40 },
            default: Default::Absent,
            doc: "Number of requests that each channel makes. Without this key, it makes them until the end of the \
                  run.",
        },
    ],
    build: |values, context| Ok(Box::new(Interactive::new(values, context))),
    answer: |values| match values.bytes_if_given("answer") {
        Some(size) => Answer::Bytes(size.count()),
        None => Answer::Echo,
    },
    needs_reliability: |_| false,
    needs_flow_control: |_| false,
    endless: |values| values.integer_if_given("messages").is_none(),
    max_message: |values| Sizes::max(&values.distribution("message")),
    interval: |_| None,
    samples_per_packet: |_| None,
    packetiser: |_| None,
    audio: |_| None,
};

#[derive(Debug)]
struct Interactive {
    agenda: Agenda,
    channels: PerChannel<Channel>,
    timeout: Duration,
    /// How many channels wait for an answer that may still make them due before the stop.
    waiting: usize,
    /// How many channels wait for the answer to their last request, and until when at the latest.
    ending: (usize, Time),
    /// Whether the sink is asked to answer, rather than expected to reflect.
    asks: bool,
    stop: Time,
}

#[derive(Debug)]
struct Channel {
    sizes: Sizes,
    think: Sampler,
    /// Requests so far: the driver counts them alike.
    sequence: u32,
    left: Option<u64>,
    waits_for: Option<Awaited>,
}

/// The answer that a channel waits for.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    sequence: u32,
    timeout: Time,
    /// How long to think after it, drawn when the request was made: so the time at which the channel goes on without
    /// an answer is known from the beginning.
    think: Duration,
}

impl Interactive {
    fn new(values: &Values, context: &SourceContext) -> Interactive {
        let (sizes, think) = (values.distribution("message"), values.distribution("think"));
        let mut agenda = Agenda::new(context.channels, context.stop);
        let channel = |channel| {
            agenda.set(channel, context.start);
            Channel {
                sizes: Sizes::new(&sizes, context, channel),
                think: think.sampler(context.seed.stream(&format!("{}/{channel}/think", context.place))),
                sequence: 0,
                left: values.integer_if_given("messages"),
                waits_for: None,
            }
        };
        let channels = (0..context.channels).map(channel).collect();
        Interactive {
            agenda,
            channels,
            timeout: values.duration("timeout"),
            waiting: 0,
            ending: (0, Time::ZERO),
            asks: values.bytes_if_given("answer").is_some(),
            stop: context.stop,
        }
    }

    /// Nothing that comes after the stop matters.
    fn stop_waiting_by(&mut self, now: Time) {
        if now >= self.stop {
            self.waiting = 0;
        }
    }
}

impl Source for Interactive {
    /// While it waits, the time at which it goes on without an answer: the timeout and the time to think after it.
    fn next_due(&self) -> Option<Time> {
        self.agenda.first().map(|(due, _)| due)
    }

    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        while let Some((due, number)) = self.agenda.first_by(now) {
            let channel = self.channels.of(number);
            if channel.waits_for.take().is_some() {
                self.waiting = self.waiting.saturating_sub(1);
            }
            out.push_zeros(number, due, channel.sizes.draw() as usize, self.asks);
            let sequence = channel.sequence;
            channel.sequence = sequence.wrapping_add(1);
            channel.left = channel.left.map(|left| left.saturating_sub(1));
            // From now and not from `due`: what a late call has already cost is no waiting for the answer.
            let timeout = now + self.timeout;
            if channel.left == Some(0) {
                self.agenda.clear(number);
                channel.waits_for = Some(Awaited { sequence, timeout, think: Duration::ZERO });
                self.ending = (self.ending.0 + 1, self.ending.1.max(timeout));
            } else {
                let think = Duration::from_nanos(channel.think.draw());
                channel.waits_for = Some(Awaited { sequence, timeout, think });
                self.waiting += 1;
                self.agenda.set(number, timeout + think);
            }
            if out.has_enough() {
                break;
            }
        }
        self.stop_waiting_by(now);
    }

    fn notify(&mut self, now: Time, what: Feedback) {
        self.stop_waiting_by(now);
        let Feedback::Answered { channel: number, sequence } = what else { return };
        let Some(channel) = self.channels.get_mut(number) else { return };
        let Some(awaited) = channel.waits_for.filter(|a| a.sequence == sequence && now < a.timeout) else {
            return;
        };
        channel.waits_for = None;
        if channel.left == Some(0) {
            self.ending.0 = self.ending.0.saturating_sub(1);
            return;
        }
        self.waiting = self.waiting.saturating_sub(1);
        self.agenda.set(number, now + awaited.think);
    }

    /// True once every request is made, or the stop has passed; a channel whose timeout lies after the stop may still
    /// be answered before it.
    fn is_finished(&self) -> bool {
        self.waiting == 0 && self.agenda.first().is_none()
    }

    /// When the last answers are back, or their timeouts over.
    fn over_at(&self) -> Option<Time> {
        let (waiting, latest) = self.ending;
        self.is_finished().then_some(if waiting > 0 { latest } else { Time::ZERO })
    }
}

#[cfg(test)]
mod tests;
