//! The conformance suite over SCTP in its kinds, and: whatever the options and the path, what was promised is kept.

use std::collections::BTreeSet;

use proptest::prelude::*;
use trunkline_core::{Duration, Rate, Seed};
use trunkline_testkit::cases::cases;
use trunkline_testkit::conformance::{self, Make, transfer};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_testkit::two_process::assert_same_in_another_process;
use trunkline_transport::sctp::{Encapsulation, Reliability, SctpConfig, SctpEndpoint};
use trunkline_transport::{Endpoint, Event};

fn sctp(config: &SctpConfig, seed: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let near = SctpEndpoint::connect(NEAR, FAR, config, seed).expect("the configuration is possible");
    let far = SctpEndpoint::listen(FAR, config, seed ^ 0xFA12).expect("the configuration is possible");
    (Box::new(near), Box::new(far))
}

/// Gives up after an hour, however often it has repeated itself, and without heartbeats comes to rest.
fn patient() -> SctpConfig {
    SctpConfig {
        heartbeat: None,
        max_retransmissions: None,
        timeout: Some(Duration::from_secs(3600)),
        ..SctpConfig::default()
    }
}

mod sctp_reliable {
    use super::*;
    const MAKE: Make = |seed| sctp(&patient(), seed);
    trunkline_testkit::conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_the_same_packets() {
        assert_same_in_another_process(
            "properties::sctp_reliable::another_process_sends_the_same_packets",
            || format!("{:016x}", conformance::trace(MAKE, 7)),
        );
    }
}

mod sctp_small_buffers {
    use super::*;
    const MAKE: Make = |seed| {
        let config = SctpConfig { window: 48 << 10, send_buffer: 3000, max_packet: 576, ..patient() };
        sctp(&SctpConfig { encapsulation: Encapsulation::Ip, ..config }, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

mod sctp_unordered {
    use super::*;
    const MAKE: Make = |seed| sctp(&SctpConfig { ordered: false, ..patient() }, seed);
    trunkline_testkit::conformance_tests!(MAKE);
}

mod sctp_many_streams {
    use super::*;
    const MAKE: Make = |seed| sctp(&SctpConfig { streams: 5, ..patient() }, seed);
    trunkline_testkit::conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_the_same_packets() {
        assert_same_in_another_process(
            "properties::sctp_many_streams::another_process_sends_the_same_packets",
            || format!("{:016x}", conformance::trace(MAKE, 7)),
        );
    }
}

mod sctp_lifetime {
    use super::*;
    const MAKE: Make = |seed| {
        let reliability = Reliability::Lifetime(Duration::from_secs(30));
        sctp(&SctpConfig { reliability, ..patient() }, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

mod sctp_limited_retransmissions {
    use super::*;
    const MAKE: Make = |seed| {
        let reliability = Reliability::Retransmissions(1);
        sctp(&SctpConfig { reliability, streams: 3, ordered: false, ..patient() }, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_the_same_packets() {
        let path = "properties::sctp_limited_retransmissions::another_process_sends_the_same_packets";
        assert_same_in_another_process(path, || format!("{:016x}", conformance::trace(MAKE, 7)));
    }
}

fn config() -> impl Strategy<Value = SctpConfig> {
    let window = prop_oneof![8_192..20_000usize, 20_000..300_000usize];
    let encapsulation = prop::sample::select(vec![Encapsulation::Udp, Encapsulation::Ip]);
    (1..6u16, any::<bool>(), window, 1..100_000usize, 576..3000usize, encapsulation).prop_map(
        |(streams, ordered, window, send_buffer, max_packet, encapsulation)| SctpConfig {
            streams,
            ordered,
            window,
            send_buffer,
            max_packet,
            encapsulation,
            reliability: Reliability::Full,
            timeout: None,
            ..patient()
        },
    )
}

fn partial() -> impl Strategy<Value = Reliability> {
    prop_oneof![
        (1..3000u64).prop_map(|ms| Reliability::Lifetime(Duration::from_millis(ms))),
        (0..4u16).prop_map(Reliability::Retransmissions),
    ]
}

fn path() -> impl Strategy<Value = Path> {
    let chance = || prop_oneof![Just(0.0), 0.0..0.2];
    let loss = prop_oneof![Just(0.0), 0.0..0.5];
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

/// Messages that name themselves.
fn messages(sizes: &[usize]) -> Vec<Vec<u8>> {
    let message = |(&size, n): (&usize, u32)| [&n.to_be_bytes()[..], &vec![n as u8; size]].concat();
    sizes.iter().zip(0..).map(message).collect()
}

/// What arrives over these paths, of associations made on them too.
fn received(
    near: &SctpConfig,
    far: &SctpConfig,
    paths: [Path; 2],
    seed: u64,
    sent: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let near = SctpEndpoint::connect(NEAR, FAR, near, seed).expect("the configuration is possible");
    let far = SctpEndpoint::listen(FAR, far, !seed).expect("the configuration is possible");
    let mut pair = Pair::new(Box::new(near), Box::new(far), paths, Seed::new(seed, 0));
    pair.drive();
    assert!(pair.take_event(Side::Near, Event::Connected));
    transfer(&mut pair, Side::Near, sent)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn sctp_delivers_everything_once_and_in_the_order_it_promises(
        near in config(), far in config(), out in path(), back in path(), seed: u64,
        sizes in prop::collection::vec(0..4000usize, 1..20),
    ) {
        let sent = messages(&sizes);
        let mut received = received(&near, &far, [out, back], seed, &sent);
        if near.streams > 1 && near.ordered {
            for stream in 0..usize::from(near.streams) {
                let of_stream: Vec<_> = sent.iter().skip(stream).step_by(usize::from(near.streams)).collect();
                let arrived: Vec<_> = received.iter().filter(|message| of_stream.contains(message)).collect();
                prop_assert!(arrived == of_stream, "stream {}", stream);
            }
        }
        if near.streams > 1 || !near.ordered {
            received.sort();
        }
        prop_assert!(received == sent, "{} of {} messages", received.len(), sent.len());
    }

    #[test]
    fn partially_reliable_sctp_gives_up_but_never_repeats_or_changes(
        near in config(), far in config(), reliability in partial(), out in path(), back in path(), seed: u64,
        sizes in prop::collection::vec(0..4000usize, 1..20),
    ) {
        let near = SctpConfig { reliability, ..near };
        let is_ordered = near.ordered && near.streams == 1;
        let clean = [&out, &back].iter().all(|path| path.loss + path.corrupt + path.reorder == 0.0)
            && matches!(reliability, Reliability::Retransmissions(_));
        let sent = messages(&sizes);
        let received = received(&near, &far, [out, back], seed, &sent);
        prop_assert!(received.iter().all(|message| sent.contains(message)), "something was never sent");
        let distinct: BTreeSet<_> = received.iter().collect();
        prop_assert_eq!(distinct.len(), received.len(), "something came twice");
        prop_assert!(!is_ordered || received.is_sorted(), "the order changed");
        prop_assert!(!clean || received.len() == sent.len(), "nothing was to be given up");
    }
}

#[test]
fn what_lies_behind_a_gap_in_a_small_window_keeps_nothing_out_of_it() {
    let near = SctpConfig { window: 8192, send_buffer: 11_605, max_packet: 1302, ..patient() };
    let far = SctpConfig { window: 10_526, max_packet: 576, ..patient() };
    let out = Path { loss: 0.45, duplicate: 0.16, corrupt: 0.1, ..Path::default() };
    let back = Path { loss: 0.2, reorder: 0.18, ..Path::with_latency(Duration::from_millis(1)) };
    let sent =
        messages(&[617, 1541, 465, 3605, 953, 1021, 3225, 1870, 487, 3904, 2437, 2429, 977, 963].repeat(3));
    for seed in 0..20 {
        let received = received(&near, &far, [out.clone(), back.clone()], seed, &sent);
        assert!(received == sent, "seed {seed}: {} of {} messages", received.len(), sent.len());
    }
}
