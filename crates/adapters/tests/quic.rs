//! QUIC in each of its modes: the conformance suite, and whatever the path does.

use proptest::prelude::*;
use trunkline_adapters::quic::{CongestionControl, Encapsulation, Identity, Mode, QuicConfig, QuicEndpoint};
use trunkline_core::{Duration, Rate, Seed};
use trunkline_testkit::cases::cases;
use trunkline_testkit::conformance::{self, Make, transfer};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_testkit::two_process::assert_same_in_another_process;
use trunkline_transport::{Close, Endpoint, Event};

fn quic(config: &QuicConfig, seed: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    ends(config, config, seed)
}

fn ends(near: &QuicConfig, far: &QuicConfig, seed: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let identity = Identity::new([seed as u8; 32]).expect("any secret makes an identity");
    let near = QuicEndpoint::connect(NEAR, FAR, near, identity.fingerprint(), seed);
    let far = QuicEndpoint::listen(FAR, far, &identity, !seed);
    let possible = "the configuration is possible";
    (Box::new(near.expect(possible)), Box::new(far.expect(possible)))
}

fn patient(mode: Mode) -> QuicConfig {
    QuicConfig { mode, timeout: Some(Duration::from_secs(3600)), ..QuicConfig::default() }
}

/// The suite but for the bytes of packets, which encryption makes differ; see [`same_shapes`].
macro_rules! conformance_tests {
    ($make:expr) => {
        trunkline_testkit::conformance_tests!($make;
            a_clean_path_delivers_everything_in_order
            borders_of_messages_are_as_declared
            damage_never_reaches_the_application
            sending_needs_a_connection_where_there_is_one
            the_largest_message_is_as_declared
            a_full_buffer_holds_back_and_says_when_there_is_room
            a_slow_reader_loses_nothing_that_flow_control_protects
            a_graceful_close_delivers_what_was_taken
            an_abort_reaches_the_peer
            a_lost_peer_is_noticed
            late_timers_break_nothing
            garbage_breaks_nothing
            an_idle_conversation_is_silent
            the_same_seed_gives_packets_of_the_same_sizes_at_the_same_times
        );
    };
}
mod stream {
    use super::*;
    const MAKE: Make = |seed| quic(&patient(Mode::Stream), seed);
    conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_packets_of_the_same_sizes_at_the_same_times() {
        same_shapes("stream", MAKE);
    }
}

mod small_stream {
    use super::*;
    const MAKE: Make = |seed| {
        let congestion_control = CongestionControl::NewReno;
        quic(
            &QuicConfig {
                window: 1000,
                send_buffer: 700,
                mtu: 1228,
                congestion_control,
                ..patient(Mode::Stream)
            },
            seed,
        )
    };
    conformance_tests!(MAKE);
}

mod streams {
    use super::*;
    const MAKE: Make = |seed| quic(&patient(Mode::Streams), seed);
    conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_packets_of_the_same_sizes_at_the_same_times() {
        same_shapes("streams", MAKE);
    }
}

mod datagrams {
    use super::*;
    // The suite sends messages of up to 10 kB.
    const MAKE: Make = |seed| quic(&QuicConfig { mtu: 16_384, ..patient(Mode::Datagrams) }, seed);
    conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_packets_of_the_same_sizes_at_the_same_times() {
        same_shapes("datagrams", MAKE);
    }
}

/// Times, sizes and order of packets are the seed's alone.
fn same_shapes(module: &str, make: Make) {
    let path = format!("{module}::another_process_sends_packets_of_the_same_sizes_at_the_same_times");
    assert_same_in_another_process(&path, || format!("{:016x}", conformance::shapes(make, 7)));
}

fn config() -> impl Strategy<Value = QuicConfig> {
    let congestion_control = prop::sample::select(CongestionControl::ALL.to_vec());
    let size = || prop_oneof![1..100usize, 100..70_000usize];
    (size(), size(), 1228..3000usize, congestion_control).prop_map(
        |(window, send_buffer, mtu, congestion_control)| QuicConfig {
            mode: Mode::Stream,
            window,
            send_buffer,
            mtu,
            congestion_control,
            encapsulation: Encapsulation::Udp,
            timeout: None,
        },
    )
}

fn path() -> impl Strategy<Value = Path> {
    let chance = |most: f64| prop_oneof![Just(0.0), 0.0..most];
    let rate = prop::option::of(100_000..10_000_000u64);
    (0..200u64, rate, chance(0.5), chance(0.2), chance(0.2), chance(0.2)).prop_map(
        |(latency, rate, loss, duplicate, reorder, corrupt)| Path {
            rate: rate.map(Rate::from_bits_per_second),
            loss,
            duplicate,
            reorder,
            corrupt,
            ..Path::with_latency(Duration::from_millis(latency))
        },
    )
}

/// A pair that has agreed to talk, whatever the path does to it.
fn pair(near: &QuicConfig, far: &QuicConfig, paths: [Path; 2], seed: u64) -> Pair {
    let (near, far) = ends(near, far, seed);
    let mut pair = Pair::new(near, far, paths, Seed::new(seed, 0));
    pair.drive();
    assert!(pair.take_event(Side::Near, Event::Connected) && pair.take_event(Side::Far, Event::Connected));
    pair
}

/// Messages that differ from each other, whatever their sizes.
fn numbered(sizes: &[usize]) -> Vec<Vec<u8>> {
    let message = |(number, &size): (u16, &usize)| {
        [&number.to_be_bytes(), vec![number as u8; size].as_slice()].concat()
    };
    (0..).zip(sizes).map(message).collect()
}

#[test]
fn whatever_the_path_does_a_run_repeats_from_the_first_packet_to_the_last() {
    let bad = Path {
        loss: 0.1,
        duplicate: 0.05,
        reorder: 0.05,
        corrupt: 0.1,
        ..Path::with_latency(Duration::from_millis(10))
    };
    for (mode, seed) in Mode::ALL.into_iter().flat_map(|mode| (0..15).map(move |seed| (mode, seed))) {
        let run = || {
            let mut pair = pair(&patient(mode), &patient(mode), [bad.clone(), bad.clone()], seed);
            let received =
                transfer(&mut pair, Side::Near, &numbered(&[100, 500, 1000, 50, 20, 1200, 1300, 5, 1000]));
            pair.close(Side::Near, Close::Graceful);
            pair.drive();
            (received, pair.shape_hash())
        };
        assert_eq!(run(), run(), "{mode:?}, seed {seed}");
    }
}

/// On this path so many packets of the handshake are lost that those under way fill the congestion window, and quinn-proto
/// by itself never sends the one that would end the handshake.
#[test]
fn a_handshake_that_fills_the_congestion_window_ends_all_the_same() {
    let config = |window, send_buffer, mtu, congestion_control| QuicConfig {
        mode: Mode::Streams,
        window,
        send_buffer,
        mtu,
        congestion_control,
        timeout: None,
        ..QuicConfig::default()
    };
    let near = config(59, 64_737, 2353, CongestionControl::NewReno);
    let far = config(23_571, 47, 2649, CongestionControl::Cubic);
    let path = |milliseconds, rate, loss| Path {
        rate: Some(Rate::from_bits_per_second(rate)),
        loss,
        ..Path::with_latency(Duration::from_millis(milliseconds))
    };
    let out = Path {
        duplicate: 0.19963385153963717,
        corrupt: 0.17016815856400952,
        ..path(20, 2_648_063, 0.41586529796603244)
    };
    let back = path(31, 869_180, 0.4900251155504956);
    let mut pair = pair(&near, &far, [out, back], 17_873_825_902_566_907_871);
    let messages = numbered(&[2938, 2239, 2691]);
    assert_eq!(transfer(&mut pair, Side::Near, &messages).concat().len(), messages.concat().len());
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_stream_delivers_everything_in_order_and_once(
        near in config(), far in config(), out in path(), back in path(), seed: u64,
        sizes in prop::collection::vec(0..3000usize, 1..12),
    ) {
        let mut pair = pair(&near, &far, [out, back], seed);
        let messages = numbered(&sizes);
        prop_assert!(transfer(&mut pair, Side::Near, &messages).concat() == messages.concat());
    }

    #[test]
    fn streams_deliver_every_message_whole_and_once(
        near in config(), far in config(), out in path(), back in path(), seed: u64,
        sizes in prop::collection::vec(0..3000usize, 1..12),
    ) {
        let [near, far] = [near, far].map(|config| QuicConfig { mode: Mode::Streams, ..config });
        let mut pair = pair(&near, &far, [out, back], seed);
        let mut messages = numbered(&sizes);
        let mut received = transfer(&mut pair, Side::Near, &messages);
        received.sort();
        messages.sort();
        prop_assert!(received == messages);
    }

    #[test]
    fn datagrams_arrive_unchanged_and_never_twice(
        near in config(), far in config(), out in path(), back in path(), seed: u64,
        sizes in prop::collection::vec(0..1000usize, 1..40),
    ) {
        let [near, far] = [near, far].map(|config| QuicConfig { mode: Mode::Datagrams, ..config });
        let mut pair = pair(&near, &far, [out, back], seed);
        let messages = numbered(&sizes);
        let mut received = transfer(&mut pair, Side::Near, &messages);
        let count = received.len() as u64;
        prop_assert!(received.iter().all(|message| messages.contains(message)), "never sent");
        received.sort();
        received.dedup();
        prop_assert_eq!(received.len() as u64, count, "received twice");
        // Each has one fate.
        prop_assert_eq!(pair.counter(Side::Near, "datagrams-sent"), messages.len() as u64);
        prop_assert_eq!(pair.counter(Side::Far, "datagrams-received"), count + pair.counter(Side::Far, "receive-buffer-full"));
    }
}
