//! The promise, for any path, options and messages.

use std::collections::VecDeque;

use proptest::prelude::*;
use trunkline_testkit::cases::cases;
use trunkline_transport::urp::{BLOCK, WINDOW};

use super::*;

/// What one end is to send: the length of each message, and after how many steps it is offered.
fn messages() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((prop_oneof![0..40usize, 200..300usize, 0..3000usize], 0..20usize), 0..12)
}

fn path() -> impl Strategy<Value = Path> {
    let bad = || prop_oneof![Just(0.0), 0.0..0.3];
    (bad(), bad(), bad(), bad(), 0..400u64, prop::option::of(10_000..10_000_000u64)).prop_map(
        |(loss, duplicate, reorder, corrupt, latency, rate)| Path {
            loss,
            duplicate,
            reorder,
            corrupt,
            rate: rate.map(Rate::from_bits_per_second),
            ..Path::with_latency(Duration::from_millis(latency))
        },
    )
}

fn any_config() -> impl Strategy<Value = UrpConfig> {
    let block = prop_oneof![Just(16), Just(256), Just(1024), BLOCK];
    let packet = prop_oneof![Just(1024), 1..300usize];
    let low_water = proptest::option::of(0..8u8);
    let parts = (block, packet, WINDOW, low_water, 0..10_000usize, 20..2000u64);
    parts.prop_map(|(block, packet, window, low_water, send_buffer, timeout)| UrpConfig {
        block,
        packet,
        window,
        low_water,
        send_buffer,
        timeout: Duration::from_millis(timeout),
        patience: None,
    })
}

proptest! {
    #![proptest_config(cases(256))]

    /// The promise: lossless, in order, exactly once, whatever the circuit would have kept from it, in both directions at
    /// once, with any options, and with messages that come in pieces; and both ends learn of the end.
    #[test]
    fn everything_arrives_in_order_and_once(
        configs in [any_config(), any_config()], paths in [path(), path()], plans in [messages(), messages()],
        pieces in 1..700usize, seed: u64,
    ) {
        let [near_config, far_config] = configs;
        let mut pair = Pair::new(near(near_config), far(far_config), paths, Seed::new(seed, 0));
        while !pair.take_event(Side::Near, Event::Connected) {
            prop_assert!(pair.step_until(Time::MAX));
        }
        let mut streams = plans.each_ref().map(|plan| {
            let total = plan.iter().map(|(length, _)| length).sum();
            Stream { sent: pattern(total), taken: 0, plan: plan.clone().into(), pieces, left: 0, received: Vec::new() }
        });
        let (mut idle, mut closed) = (0, [false; 2]);
        loop {
            let taken = streams.each_ref().map(|stream| stream.taken);
            for side in Side::BOTH {
                let received = pair.receive_all(side.other()).concat();
                streams[side as usize].received.extend(received);
                streams[side as usize].feed(&mut pair, side);
                if streams[side as usize].is_taken() && !core::mem::replace(&mut closed[side as usize], true) {
                    pair.close(side, Close::Graceful);
                }
            }
            if !pair.step_until(Time::MAX) {
                if streams.iter().all(Stream::is_taken) {
                    break;
                }
                // A block is sent when it is full: pieces are taken meanwhile.
                idle = if taken == streams.each_ref().map(|stream| stream.taken) { idle + 1 } else { 0 };
                prop_assert!(idle < 1000, "seed {}: nothing moves, and something was not taken", seed);
            }
        }
        for (side, stream) in Side::BOTH.into_iter().zip(&streams) {
            prop_assert!(
                stream.received == stream.sent,
                "seed {}: {:?} sent {} bytes, {} arrived", seed, side, stream.sent.len(), stream.received.len()
            );
            let ends = pair.events(side).into_iter().filter(|event| matches!(event, Event::Closed(_))).count();
            prop_assert_eq!(ends, 1, "seed {}: {:?}", seed, side);
        }
    }
}

/// One direction's data and how far it has come.
struct Stream {
    sent: Vec<u8>,
    taken: usize,
    plan: VecDeque<(usize, usize)>,
    pieces: usize,
    /// How much of the message under way has not been handed over.
    left: usize,
    received: Vec<u8>,
}

impl Stream {
    fn is_taken(&self) -> bool {
        self.plan.is_empty() && self.left == 0
    }

    /// Hands over the next piece when its time has come.
    fn feed(&mut self, pair: &mut Pair, side: Side) {
        if self.left == 0 {
            let Some((length, wait)) = self.plan.front_mut() else { return };
            if *wait > 0 {
                *wait -= 1;
                return;
            }
            self.left = *length;
            self.plan.pop_front();
        }
        let length = self.left.min(self.pieces);
        let bytes = &self.sent[self.taken..self.taken + length];
        let piece = if length < self.left { Message::piece(bytes) } else { Message::new(bytes) };
        match pair.send_message(side, piece) {
            Ok(()) => {
                self.taken += length;
                self.left -= length;
            }
            Err(error) => assert_eq!(error, SendError::Full),
        }
    }
}
