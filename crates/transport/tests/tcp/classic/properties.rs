//! The conformance suite over classic TCP in its kinds, and: whatever the options and the path, everything arrives.

use proptest::prelude::*;
use trunkline_core::{Duration, Rate, Seed};
use trunkline_testkit::cases::cases;
use trunkline_testkit::conformance::{self, Make, transfer};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_testkit::two_process::assert_same_in_another_process;
use trunkline_transport::classic_tcp::{TcpConfig, TcpEndpoint, TimerConfig};
use trunkline_transport::{Close, CloseReason, Endpoint, Event};

fn tcp(config: &TcpConfig, seed: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let near = TcpEndpoint::connect(NEAR, FAR, config, seed).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, config, seed ^ 0xFA12).expect("the configuration is possible");
    (Box::new(near), Box::new(far))
}

fn patient() -> TcpConfig {
    TcpConfig { timeout: Some(Duration::from_secs(3600)), ..TcpConfig::default() }
}

mod tcp_by_default {
    use super::*;
    const MAKE: Make = |seed| tcp(&patient(), seed);
    trunkline_testkit::conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_the_same_packets() {
        let path = "classic::properties::tcp_by_default::another_process_sends_the_same_packets";
        assert_same_in_another_process(path, || format!("{:016x}", conformance::trace(MAKE, 7)));
    }
}

mod tcp_small_window {
    use super::*;
    const MAKE: Make = |seed| tcp(&TcpConfig { window: 1000, mss: 536, ..patient() }, seed);
    trunkline_testkit::conformance_tests!(MAKE);
}

mod tcp_large_segments {
    use super::*;
    const MAKE: Make = |seed| tcp(&TcpConfig { window: 8 << 10, mss: 65_495, ..patient() }, seed);
    trunkline_testkit::conformance_tests!(MAKE);
}

mod tcp_with_nagle {
    use super::*;
    const MAKE: Make = |seed| tcp(&TcpConfig { nagle: 1460, ack_every: 1000, ..patient() }, seed);
    trunkline_testkit::conformance_tests!(MAKE);
}

mod tcp_of_bare_bones {
    use super::*;
    const MAKE: Make = |seed| {
        let timer =
            TimerConfig { keep_backoff: false, min: Duration::from_millis(1), ..TimerConfig::default() };
        let delayed_ack = Duration::ZERO;
        tcp(&TcpConfig { fast_retransmit: false, delayed_ack, timer, ..patient() }, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let window = prop_oneof![1..3000usize, 3000..=65_536usize];
    let mss = prop_oneof![48..1500usize, 1500..=65_495usize];
    let timer = (1..4000u64, 1..2000u64, 1..60_000u64, any::<bool>()).prop_map(
        |(initial, min, more, keep_backoff)| {
            let [initial, min, max] = [initial, min, min + more].map(Duration::from_millis);
            TimerConfig { initial, min, max, keep_backoff }
        },
    );
    let acks = (0..500u64, 1..10u32, any::<bool>(), any::<bool>());
    (window, mss, acks, 0..2000usize, 1..12u32, timer, any::<bool>()).prop_map(
        |(
            window,
            mss,
            (delay, ack_every, ack_unpushed, window_updates),
            nagle,
            initial_window,
            timer,
            fast_retransmit,
        )| {
            TcpConfig {
                window,
                mss,
                delayed_ack: Duration::from_millis(delay),
                ack_every,
                ack_unpushed,
                window_updates,
                nagle,
                initial_window,
                timer,
                fast_retransmit,
                timeout: None,
            }
        },
    )
}

fn path() -> impl Strategy<Value = Path> {
    let chance = || prop_oneof![Just(0.0), 0.0..0.2];
    let loss = prop_oneof![Just(0.0), 0.0..0.4];
    let rate = prop::option::of(100_000..10_000_000u64);
    (0..200u64, rate, loss, chance(), chance(), chance()).prop_map(
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

/// Bytes that tell their places.
fn messages(sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut place = 0u32;
    let mut next = || {
        place += 1;
        (place.wrapping_mul(0x9E37_79B9) >> 24) as u8
    };
    sizes.iter().map(|size| (0..*size).map(|_| next()).collect()).collect()
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn tcp_delivers_everything_once_and_in_order_both_ways_and_closes(
        near in config(), far in config(), out in path(), back in path(), seed: u64,
        sizes in prop::collection::vec(0..6000usize, 1..20),
    ) {
        let near = TcpEndpoint::connect(NEAR, FAR, &near, seed).expect("the configuration is possible");
        let far = TcpEndpoint::listen(FAR, &far, !seed).expect("the configuration is possible");
        let mut pair = Pair::new(Box::new(near), Box::new(far), [out, back], Seed::new(seed, 0));
        pair.drive();
        let sent = messages(&sizes);
        for from in Side::BOTH {
            prop_assert!(pair.take_event(from, Event::Connected), "{:?}", from);
            let received = transfer(&mut pair, from, &sent);
            prop_assert!(received.concat() == sent.concat(), "{:?}: {} bytes", from, received.concat().len());
        }
        for (side, reason) in [(Side::Near, CloseReason::Local), (Side::Far, CloseReason::Peer)] {
            pair.close(side, Close::Graceful);
            pair.drive();
            prop_assert!(pair.take_event(side, Event::Closed(reason)), "{:?}", side);
        }
    }
}
