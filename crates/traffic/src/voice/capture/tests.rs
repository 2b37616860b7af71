use std::collections::VecDeque;

use proptest::prelude::*;
use trunkline_core::schema::Value;
use trunkline_core::{Duration, Time};

use crate::registry::find;
use crate::source::{MessageBuffer, Overflow, Source, SourceContext};
use crate::testing::{build, context, exponential, run, values};

const SAMPLE: Duration = Duration::from_micros(125);

fn given(samples: u64, fifo: u64, largest: u64) -> Vec<(&'static str, Value)> {
    let integers = [("samples", samples), ("fifo", fifo), ("largest", largest)];
    let mut given: Vec<_> = integers.map(|(key, value)| (key, Value::Integer(value))).into();
    given.push(("phase", Value::Text("together".to_owned())));
    given.push(("file", Value::Text("speech.wav".to_owned())));
    given
}

/// Sample `k` is `k % 251`.
fn counting() -> SourceContext {
    SourceContext { speech: [(0..251).map(|k| k as u8).collect::<Vec<_>>()].into(), ..context() }
}

/// What one call hands over: channel, due time, payload; and what was lost before.
type Handed = (u16, Time, Vec<u8>);

fn ask(source: &mut dyn Source, now: Time) -> (Vec<Handed>, Vec<Overflow>) {
    let mut out = MessageBuffer::with_headroom(0);
    source.produce(now, &mut out);
    let handed = |n: usize| (out.messages()[n].channel, out.messages()[n].due, out.bytes(n).to_vec());
    let handed = (0..out.messages().len()).map(handed).collect();
    (handed, out.take_overflows().collect())
}

fn ms(ms: u64) -> Time {
    context().start + Duration::from_millis(ms)
}

#[test]
fn a_transport_that_takes_everything_sees_no_fifo() {
    let talk = [
        ("talk", exponential(Duration::from_millis(300))),
        ("silence", exponential(Duration::from_millis(200))),
    ];
    for pauses in [0, 2] {
        let context = SourceContext { channels: 5, ..context() };
        let plain = run(&mut *build("voice", &talk[..pauses], &context));
        let fifo = [("fifo", Value::Integer(640)), talk[0].clone(), talk[1].clone()];
        assert_eq!(run(&mut *build("voice", &fifo[..1 + pauses], &context)), plain);
    }
}

#[test]
fn what_accumulates_between_two_services_leaves_as_one_packet() {
    let mut source = build("voice", &given(80, 640, 640), &counting());
    let (handed, overflows) = ask(&mut *source, ms(0));
    assert_eq!(handed, [(0, ms(0), (0..80).collect())]);
    // Not asked at 10 and 20 ms; at 25 ms half of the next 80 have come, and stay.
    let (handed, _) = ask(&mut *source, ms(25));
    assert_eq!(handed, [(0, ms(10), (80..240).collect())]);
    assert_eq!((overflows, source.next_due()), (Vec::new(), Some(ms(30))));
}

#[test]
fn the_largest_packet_leaves_the_rest_to_the_next() {
    let mut source = build("voice", &given(80, 640, 160), &counting());
    let lengths = |source: &mut dyn Source| {
        let mut all = Vec::new();
        while source.next_due().is_some_and(|due| due <= ms(40)) {
            all.extend(ask(source, ms(40)).0.into_iter().map(|(_, due, payload)| (due, payload.len())));
        }
        all
    };
    assert_eq!(lengths(&mut *source), [(ms(0), 160), (ms(20), 160), (ms(40), 80)]);
}

#[test]
fn samples_that_find_no_room_are_lost_and_told() {
    let mut source = build("voice", &given(80, 120, 120), &counting());
    // The first 120 of 400 samples have room, and the last of these came at 5 ms.
    let (handed, overflows) = ask(&mut *source, ms(40));
    assert_eq!(handed, [(0, ms(0), (0..120).collect())]);
    assert_eq!(overflows, [Overflow { channel: 0, at: ms(5) + SAMPLE, samples: 280 }]);
    // What is spoken goes on behind the gap.
    let (handed, overflows) = ask(&mut *source, ms(50));
    assert_eq!(handed, [(0, ms(50), (400..480).map(|k| (k % 251) as u8).collect())]);
    assert_eq!(overflows, []);
}

#[test]
fn channels_take_turns_in_the_order_in_which_they_wait() {
    let context = SourceContext { channels: 3, ..counting() };
    let mut source = build("voice", &given(80, 640, 640), &context);
    let mut turns = Vec::new();
    for at in [0, 25, 25, 25, 25] {
        turns.extend(
            ask(&mut *source, ms(at)).0.into_iter().map(|(channel, due, all)| (channel, due, all.len())),
        );
    }
    assert_eq!(turns, [(0, ms(0), 80), (1, ms(0), 240), (2, ms(0), 240), (0, ms(10), 160)]);
}

#[test]
fn values_that_do_not_go_together_are_refused() {
    let problem = |given: &[(&'static str, Value)]| {
        let Err(problem) = (find("voice").unwrap().1.build)(&values("voice", given), &context()) else {
            panic!("was built");
        };
        problem
    };
    assert_eq!(
        problem(&[("fifo", Value::Integer(79))]),
        "`fifo` is 79; expected at least the 80 `samples` of a packet"
    );
    let small = [("fifo", Value::Integer(200)), ("largest", Value::Integer(40))];
    assert!(problem(&small).starts_with("`largest` is 40"), "{}", problem(&small));
    assert!(problem(&[("largest", Value::Integer(100))]).starts_with("`largest` needs `fifo`"));
}

/// A FIFO and a packetiser, sample by sample.
struct Model {
    fifo: VecDeque<u8>,
    depth: usize,
    found: usize,
    come: u64,
    lost: Vec<Time>,
}

impl Model {
    /// Everything up to and including `now`; the first of `samples` samples comes at `first`.
    fn advance(&mut self, now: Time, first: Time, samples: u64, stop: Time) {
        loop {
            let at = first + SAMPLE * self.come;
            let service = first + SAMPLE * (self.come / samples * samples + samples - 1);
            if at > now || service >= stop {
                return;
            }
            if self.fifo.len() < self.depth {
                self.fifo.push_back((self.come % 251) as u8);
            } else {
                self.lost.push(at);
            }
            self.come += 1;
            if self.come.is_multiple_of(samples) {
                self.found = self.fifo.len();
            }
        }
    }
}

proptest! {
    #[test]
    fn samples_in_are_samples_out_and_lost_and_waiting(
        samples in 8u64..100,
        more in 0u64..300,
        largest in 0u64..200,
        pauses in prop::collection::vec(0u64..60_000, 1..60),
    ) {
        let (depth, largest) = (samples + more, samples + largest);
        let context = SourceContext { stop: ms(1500), ..counting() };
        let mut source = build("voice", &given(samples, depth, largest), &context);
        let first = Time::ZERO + (ms(0).since(Time::ZERO) - SAMPLE * (samples - 1));
        let mut model = Model { fifo: VecDeque::new(), depth: depth as usize, found: 0, come: 0, lost: Vec::new() };
        let (mut now, mut last_due, mut out) = (ms(0), ms(0), 0);
        for pause in pauses {
            now += Duration::from_micros(pause);
            while let Some(due) = source.next_due().filter(|&due| due <= now) {
                prop_assert!(due >= last_due);
                last_due = due;
                let lost = model.lost.len();
                model.advance(now, first, samples, context.stop);
                let (handed, overflows) = ask(&mut *source, now);
                let expected: Vec<u8> = model.fifo.drain(..model.found.min(largest as usize)).collect();
                model.found -= expected.len();
                prop_assert_eq!(&handed, &[(0, due, expected)]);
                let told: Vec<(Time, u32)> = overflows.iter().map(|o| (o.at, o.samples)).collect();
                let expected = model.lost.get(lost).map(|&at| (at, (model.lost.len() - lost) as u32));
                prop_assert_eq!(told, expected.into_iter().collect::<Vec<_>>());
                out += handed[0].2.len();
                prop_assert_eq!(model.come as usize, out + model.lost.len() + model.fifo.len());
            }
        }
    }
}
