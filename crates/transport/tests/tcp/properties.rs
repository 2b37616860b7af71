//! The conformance suite over TCP in its kinds, and: whatever the options and the path, everything arrives, once and in order.

use proptest::prelude::*;
use trunkline_core::{Duration, Rate, Seed, Time};
use trunkline_testkit::cases::cases;
use trunkline_testkit::conformance::{self, Make, transfer};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_testkit::two_process::assert_same_in_another_process;
use trunkline_transport::tcp::{
    ALGORITHMS, AckConfig, BufferConfig, CompressConfig, EcnConfig, Estimator, Hystart, Nagle, Pacing,
    Profile, Recovery, TcpConfig, TcpEndpoint, TimeoutConfig, WindowUpdates,
};
use trunkline_transport::{Close, CloseReason, Endpoint, Event};

const MS: Duration = Duration::from_millis(1);

fn tcp(config: &TcpConfig, seed: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let near = TcpEndpoint::connect(NEAR, FAR, config.clone(), seed).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, config.clone(), seed ^ 0xFA12).expect("the configuration is possible");
    (Box::new(near), Box::new(far))
}

/// Patient enough for the worst paths.
fn patient() -> TcpConfig {
    TcpConfig { retries: 40, syn_retries: 40, ..TcpConfig::default() }
}

mod tcp_by_default {
    use super::*;
    const MAKE: Make = |seed| tcp(&patient(), seed);
    trunkline_testkit::conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_the_same_packets() {
        let path = "properties::tcp_by_default::another_process_sends_the_same_packets";
        assert_same_in_another_process(path, || format!("{:016x}", conformance::trace(MAKE, 7)));
    }
}

mod tcp_bbr {
    use super::*;
    const MAKE: Make =
        |seed| tcp(&TcpConfig { congestion_control: "bbr".parse().expect("it exists"), ..patient() }, seed);
    trunkline_testkit::conformance_tests!(MAKE);
}

mod tcp_small_window {
    use super::*;
    const MAKE: Make = |seed| {
        let buffer = BufferConfig::fixed(1000);
        tcp(&TcpConfig { receive_buffer: buffer, send_buffer: buffer, mss: 536, ..patient() }, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

mod tcp_without_options {
    use super::*;
    const MAKE: Make = |seed| {
        let config = TcpConfig {
            window_scaling: false,
            timestamps: false,
            sack: false,
            tail_loss_probe: false,
            recovery: Recovery::Dupack,
            nagle: Nagle::Minshall,
            ..patient()
        };
        tcp(&config, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

mod tcp_large_segments {
    use super::*;
    const MAKE: Make = |seed| {
        let buffer = BufferConfig::fixed(8 << 10);
        tcp(&TcpConfig { receive_buffer: buffer, send_buffer: buffer, mss: 65_495, ..patient() }, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

mod tcp_of_bare_bones {
    use super::*;
    const MAKE: Make = |seed| {
        let config = TcpConfig {
            window_scaling: false,
            timestamps: false,
            sack: false,
            tail_loss_probe: false,
            frto: false,
            recovery: Recovery::Timeout,
            nagle: Nagle::Below(1460),
            half_window_segments: false,
            wakes_writer_late: false,
            window_updates: WindowUpdates::WhenClosed,
            receive_buffer: BufferConfig::fixed(8 << 10),
            send_buffer: BufferConfig::fixed(8 << 10),
            burst: 0,
            tick: Duration::ZERO,
            congestion_control: "reno".parse().expect("it exists"),
            acks: AckConfig { adaptive: false, unpushed: true, ..AckConfig::default() },
            timeout: TimeoutConfig { keep_backoff: false, min: MS, ..TimeoutConfig::default() },
            ..patient()
        };
        tcp(&config, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

mod tcp_of_1995 {
    use super::*;
    const MAKE: Make = |seed| {
        let config = TcpConfig { retries: 40, syn_retries: 40, ..Profile::Solaris25.config() };
        tcp(&TcpConfig { nagle: Profile::Solaris25.nagle(), ..config }, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

fn timeout() -> impl Strategy<Value = TimeoutConfig> {
    (any::<bool>(), 1..4000u64, 1..2000u64, 1..60_000u64, any::<bool>()).prop_map(
        |(is_linux, initial, min, more, keep_backoff)| TimeoutConfig {
            estimator: if is_linux { Estimator::Linux } else { Estimator::Rfc6298 },
            initial: MS * initial,
            min: MS * min,
            max: MS * (min + more),
            keep_backoff,
        },
    )
}

fn acks() -> impl Strategy<Value = AckConfig> {
    (0..500u64, any::<bool>(), 1..10u32, 0..20u32, any::<bool>(), 0..50u32).prop_map(
        |(delay, adaptive, every, quick, unpushed, count)| AckConfig {
            delay: MS * delay,
            adaptive,
            max_delay: MS * delay.max(200),
            every,
            quick,
            unpushed,
            compress: CompressConfig { delay: MS * u64::from(count % 3), count },
            tick: MS * u64::from(count % 7),
        },
    )
}

fn buffer() -> impl Strategy<Value = BufferConfig> {
    let size = || prop_oneof![1..3000usize, 3000..=65_536usize, 65_536..1_000_000usize];
    (size(), size(), any::<bool>()).prop_map(|(one, other, is_fixed)| match is_fixed {
        true => BufferConfig::fixed(one),
        false => BufferConfig { initial: one.min(other), max: one.max(other) },
    })
}

fn choice<T: Copy + core::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    (0..all.len()).prop_map(move |index| all[index])
}

/// Any options that do not exclude each other.
pub(crate) fn config() -> impl Strategy<Value = TcpConfig> {
    let mss = prop_oneof![48..1500usize, 1500..=65_495usize];
    let flags = prop::array::uniform9(any::<bool>());
    let recovery =
        choice(&[Recovery::Rack, Recovery::Rack, Recovery::Dupack, Recovery::Reno, Recovery::Timeout]);
    let hystart = choice(&[Hystart::Off, Hystart::Linux, Hystart::PlusPlus]);
    let pacing = choice(&[Pacing::Auto, Pacing::Always, Pacing::Never]);
    let ecn = choice(&[EcnConfig::Off, EcnConfig::Accept, EcnConfig::On, EcnConfig::Accurate]);
    let updates = choice(&[WindowUpdates::Doubled, WindowUpdates::TwoSegments, WindowUpdates::WhenClosed]);
    let nagle = prop_oneof![
        Just(Nagle::Off),
        Just(Nagle::Minshall),
        Just(Nagle::Cork),
        (0..2000usize).prop_map(Nagle::Below)
    ];
    let rate = || prop::option::of((100_000..100_000_000u64).prop_map(Rate::from_bits_per_second));
    let others = (1..12u32, 0..100_000usize, rate(), rate(), 0..11u64);
    (
        (mss, buffer(), buffer(), flags, 0..ALGORITHMS.len(), timeout(), acks()),
        (recovery, hystart, pacing, ecn, updates, nagle, others),
    )
        .prop_map(|((mss, receive_buffer, send_buffer, flags, algorithm, timeout, acks), rest)| {
            let (recovery, hystart, pacing, ecn, window_updates, nagle, others) = rest;
            let (initial_window, burst, interface, max_pacing_rate, tick) = others;
            let [scaling, timestamps, sack, probe, frto, idle, half, late, bytes] = flags;
            let kind = &ALGORITHMS[algorithm];
            TcpConfig {
                mss,
                receive_buffer,
                send_buffer,
                window_scaling: scaling,
                timestamps,
                sack,
                congestion_control: kind.name.parse().expect("it is in the list"),
                hystart,
                initial_window,
                slow_start_after_idle: idle,
                recovery: if recovery == Recovery::Rack && !sack { Recovery::Dupack } else { recovery },
                tail_loss_probe: probe && sack,
                frto,
                timeout,
                acks,
                window_updates,
                nagle,
                half_window_segments: half,
                window_in_bytes: bytes,
                wakes_writer_late: late,
                pacing: match pacing {
                    Pacing::Never if kind.needs_pacing || max_pacing_rate.is_some() => Pacing::Auto,
                    pacing => pacing,
                },
                max_pacing_rate,
                burst,
                interface,
                ecn: if kind.needs_ecn && ecn == EcnConfig::Off { EcnConfig::Accept } else { ecn },
                keepalive: None,
                user_timeout: None,
                retries: 1000,
                syn_retries: 1000,
                tick: MS * tick,
            }
        })
}

pub(crate) fn path() -> impl Strategy<Value = Path> {
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
            ..Path::with_latency(MS * latency)
        },
    )
}

/// Bytes that tell their places.
pub(crate) fn messages(sizes: &[usize]) -> Vec<Vec<u8>> {
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
        let near = TcpEndpoint::connect(NEAR, FAR, near, seed).expect("the configuration is possible");
        let far = TcpEndpoint::listen(FAR, far, !seed).expect("the configuration is possible");
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

/// A closed end whose pacing had held a segment back asked for ever to be called at once.
#[test]
fn a_paced_end_comes_to_rest_when_it_has_closed() {
    let near = TcpConfig {
        mss: 213,
        receive_buffer: BufferConfig::fixed(1751),
        send_buffer: BufferConfig { initial: 23_339, max: 41_923 },
        wakes_writer_late: false,
        window_scaling: false,
        timestamps: false,
        sack: false,
        hystart: Hystart::Off,
        initial_window: 2,
        recovery: Recovery::Dupack,
        tail_loss_probe: false,
        timeout: TimeoutConfig {
            initial: MS * 2662,
            min: MS * 1388,
            max: MS * 30_436,
            keep_backoff: false,
            ..TimeoutConfig::default()
        },
        acks: AckConfig {
            delay: MS * 174,
            adaptive: false,
            every: 4,
            quick: 8,
            unpushed: true,
            compress: CompressConfig { delay: MS * 2, count: 35 },
            ..AckConfig::default()
        },
        window_updates: WindowUpdates::TwoSegments,
        burst: 64_925,
        interface: Some(Rate::from_bits_per_second(7_963_941)),
        retries: 1000,
        syn_retries: 1000,
        tick: MS * 2,
        ..TcpConfig::default()
    };
    let far = TcpConfig {
        mss: 44_116,
        receive_buffer: BufferConfig { initial: 2578, max: 473_685 },
        send_buffer: BufferConfig::fixed(112),
        congestion_control: "bbr".parse().expect("it exists"),
        initial_window: 1,
        recovery: Recovery::Timeout,
        timeout: TimeoutConfig {
            initial: MS * 1095,
            min: MS * 986,
            max: MS * 38_138,
            ..TimeoutConfig::default()
        },
        acks: AckConfig {
            delay: MS * 21,
            every: 9,
            quick: 8,
            unpushed: true,
            compress: CompressConfig { delay: Duration::ZERO, count: 36 },
            ..AckConfig::default()
        },
        nagle: Nagle::Below(1502),
        burst: 77_113,
        interface: None,
        ecn: EcnConfig::Off,
        tick: MS * 9,
        window_scaling: true,
        wakes_writer_late: false,
        ..near.clone()
    };
    let out = Path {
        duplicate: 0.1470004566041383,
        reorder: 0.06935924135071747,
        corrupt: 0.19075711539017576,
        ..Path::with_latency(MS * 33)
    };
    let back = Path {
        rate: Some(Rate::from_bits_per_second(2_023_060)),
        loss: 0.07236156352087446,
        duplicate: 0.0660399959231861,
        reorder: 0.025449107636655005,
        corrupt: 0.17856424772557258,
        ..Path::with_latency(MS * 55)
    };
    let seed = 115_040_659_738_441_569;
    let near = TcpEndpoint::connect(NEAR, FAR, near, seed).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, far, !seed).expect("the configuration is possible");
    let mut pair = Pair::new(Box::new(near), Box::new(far), [out, back], Seed::new(seed, 0));
    pair.drive();
    let sizes =
        [2788, 5639, 3381, 2300, 53, 1502, 3753, 1097, 392, 27, 4333, 4977, 1749, 4074, 1968, 3960, 3341];
    for from in Side::BOTH {
        transfer(&mut pair, from, &messages(&sizes));
    }
    for side in Side::BOTH {
        pair.close(side, Close::Graceful);
        let steps = (0..10_000).take_while(|_| pair.step_until(Time::MAX)).count();
        assert!(steps < 10_000, "an end never comes to rest, at {}", pair.now());
    }
}

/// A receive buffer smaller than one unit of the scaled window was announced as a closed window for ever, and the sender probed it
/// for ever.
#[test]
fn a_receive_buffer_below_the_unit_of_the_scaled_window_does_not_close_the_window() {
    for window_updates in [WindowUpdates::Doubled, WindowUpdates::TwoSegments, WindowUpdates::WhenClosed] {
        let receive_buffer = BufferConfig { initial: 10, max: 1_000_000 };
        let config = TcpConfig { receive_buffer, window_updates, ..patient() };
        let (near, far) = tcp(&config, 7);
        let mut pair = Pair::new(near, far, [(); 2].map(|()| Path::with_latency(MS * 20)), Seed::new(7, 0));
        pair.drive();
        let sent = messages(&[100]);
        pair.send(Side::Near, &sent[0]).expect("the send buffer has room");
        let mut received = Vec::new();
        let end = pair.now() + Duration::from_secs(60);
        while received.len() < 100 && pair.step_until(end) {
            received.extend(pair.receive_all(Side::Far).concat());
        }
        assert!(received == sent[0], "{window_updates:?}: {} bytes", received.len());
    }
}

/// Nothing switched on, and the shortest of everything: what is left of a configuration when proptest has shrunk it.
fn shrunk() -> TcpConfig {
    TcpConfig {
        wakes_writer_late: false,
        window_scaling: false,
        timestamps: false,
        sack: false,
        hystart: Hystart::Off,
        slow_start_after_idle: false,
        recovery: Recovery::Reno,
        tail_loss_probe: false,
        frto: false,
        timeout: TimeoutConfig {
            estimator: Estimator::Rfc6298,
            initial: MS * 326,
            min: MS,
            max: MS * 375,
            keep_backoff: false,
        },
        acks: AckConfig {
            delay: MS * 2,
            adaptive: true,
            every: 1,
            quick: 15,
            compress: CompressConfig { delay: Duration::ZERO, count: 0 },
            ..AckConfig::default()
        },
        window_updates: WindowUpdates::WhenClosed,
        half_window_segments: false,
        burst: 0,
        ecn: EcnConfig::Off,
        retries: 1000,
        syn_retries: 1000,
        tick: Duration::ZERO,
        ..TcpConfig::default()
    }
}

/// BBR has no threshold; where a loss is repaired as in 4.3BSD-Reno, that was taken for its window, which overflowed.
#[test]
fn bbr_keeps_its_window_where_a_loss_is_repaired_as_in_4_3bsd_reno() {
    let near = TcpConfig {
        mss: 2730,
        receive_buffer: BufferConfig { initial: 2730, max: 3000 },
        send_buffer: BufferConfig { initial: 1, max: 2342 },
        wakes_writer_late: true,
        congestion_control: "none".parse().expect("it exists"),
        initial_window: 1,
        recovery: Recovery::Timeout,
        timeout: TimeoutConfig { initial: MS * 109, ..shrunk().timeout },
        acks: AckConfig { delay: Duration::ZERO, adaptive: false, quick: 0, ..shrunk().acks },
        window_updates: WindowUpdates::Doubled,
        nagle: Nagle::Below(60),
        burst: 780,
        ..shrunk()
    };
    let far = TcpConfig {
        mss: 65,
        receive_buffer: BufferConfig::fixed(93_188),
        send_buffer: BufferConfig { initial: 1, max: 3000 },
        congestion_control: "bbr".parse().expect("it exists"),
        initial_window: 5,
        ..shrunk()
    };
    let out = Path {
        rate: Some(Rate::from_bits_per_second(7_187_043)),
        duplicate: 0.11494477826992233,
        reorder: 0.17297093066905408,
        ..Path::with_latency(MS * 187)
    };
    let back = Path {
        duplicate: 0.15681864330548448,
        reorder: 0.008923278218891221,
        ..Path::with_latency(MS * 138)
    };
    let seed = 14_889_821_972_394_826_157;
    let near = TcpEndpoint::connect(NEAR, FAR, near, seed).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, far, !seed).expect("the configuration is possible");
    let mut pair = Pair::new(Box::new(near), Box::new(far), [out, back], Seed::new(seed, 0));
    pair.drive();
    let sent = messages(&[716, 3180, 4285, 4740, 1526, 4059, 1471, 2105, 5412, 1674]);
    for from in Side::BOTH {
        assert_eq!(transfer(&mut pair, from, &sent).concat(), sent.concat());
    }
    for side in Side::BOTH {
        pair.close(side, Close::Graceful);
        pair.drive();
    }
}
