//! Sources, driven as a driver drives them, each message on time.

use trunkline_core::custom::Batches;
use trunkline_core::{Custom, Duration, Seed, Time};
use trunkline_testkit::values::ordinary_values;
use trunkline_traffic::{Answer, Feedback, MessageBuffer, Source, SourceContext, SourceKind};
use trunkline_transport::framing::HEADER_LENGTH;

use crate::Part;

/// A source that never ends. Unit: a message.
pub struct Production {
    source: Box<dyn Source>,
    buffer: MessageBuffer,
    now: Time,
    /// Of each channel, where the source waits for answers.
    sequences: Option<Vec<u32>>,
}

/// A custom source: a message of 100 B every 10 ms, in batches of a thousand.
fn every_10_ms(_: u64) -> Batches<(Duration, u32)> {
    Box::new(std::iter::repeat_with(|| vec![(Duration::from_millis(10), 100); 1000]))
}

impl Production {
    /// A source of this kind with its defaults.
    ///
    /// # Panics
    /// If it cannot be built of them.
    pub fn new(kind: &SourceKind, channels: u16) -> Production {
        let context = SourceContext {
            channels,
            member: 0,
            members: 1,
            start: Time::ZERO,
            stop: Time::MAX,
            seed: Seed::new(1, 0),
            place: format!("flow.{}/0/source", kind.name),
            speech: Vec::new().into(),
            custom: Custom::new(every_10_ms),
        };
        let values = ordinary_values(kind.parameters, &[]);
        let source = (kind.build)(&values, &context);
        let mut production = Production {
            source: source.unwrap_or_else(|problem| panic!("{}: {problem}", kind.name)),
            buffer: MessageBuffer::with_headroom(HEADER_LENGTH),
            now: Time::ZERO,
            sequences: ((kind.answer)(&values) != Answer::None).then(|| vec![0; usize::from(channels)]),
        };
        for _ in 0..2 * channels {
            production.step();
        }
        production
    }
}

impl Part for Production {
    fn step(&mut self) -> u64 {
        let due = self.source.next_due().expect("it goes on to the end of time");
        self.now = self.now.max(due);
        self.buffer.clear();
        self.source.produce(self.now, &mut self.buffer);
        if let Some(sequences) = &mut self.sequences {
            for message in self.buffer.messages() {
                let sequence = &mut sequences[usize::from(message.channel)];
                self.source
                    .notify(self.now, Feedback::Answered { channel: message.channel, sequence: *sequence });
                *sequence = sequence.wrapping_add(1);
            }
        }
        self.buffer.messages().len() as u64
    }
}
