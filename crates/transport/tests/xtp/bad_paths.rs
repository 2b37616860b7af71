//! Whatever the options and the path: a reliable stream delivers everything in order and once, an unreliable one what
//! arrived in order and once, and every close ends.

use proptest::prelude::*;
use trunkline_core::{Duration, Rate, Seed};
use trunkline_testkit::cases::cases;
use trunkline_testkit::conformance::transfer;
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::xtp::{
    Acknowledge, Encapsulation, ErrorControl, FlowControl, Meaning, Open, RateLimit, XtpConfig, XtpEndpoint,
};
use trunkline_transport::{Close, CloseReason, Event};

fn config(error_control: ErrorControl) -> impl Strategy<Value = XtpConfig> {
    let size = || prop_oneof![1..100usize, 100..70_000usize];
    let acknowledge = prop_oneof![
        Just(Acknowledge::Every(1)),
        (2..20u32).prop_map(Acknowledge::Every),
        Just(Acknowledge::OnRequest)
    ];
    let meaning = prop_oneof![Just(Meaning::Arrived), Just(Meaning::Delivered)];
    let flow_control =
        prop_oneof![Just(FlowControl::Window), Just(FlowControl::Reserved), Just(FlowControl::None)];
    let rate = prop::option::weighted(
        0.3,
        (5_000..1_000_000u32, 50..5000u32).prop_map(|(rate, burst)| RateLimit { rate, burst }),
    );
    let open = prop_oneof![Just(Open::Handshake), Just(Open::Implicit)];
    (size(), size(), 128..3000usize, acknowledge, meaning, flow_control, rate, open, any::<[bool; 2]>())
        .prop_map(
            move |(
                send_buffer,
                receive_buffer,
                max_packet,
                acknowledge,
                meaning,
                flow_control,
                send_rate,
                open,
                bits,
            )| {
                // Without flow control nothing keeps a sender from filling a small buffer again and again.
                let small = flow_control == FlowControl::None;
                XtpConfig {
                    encapsulation: if bits[0] { Encapsulation::Ip } else { Encapsulation::Udp },
                    max_packet,
                    open,
                    error_control,
                    fast_nak: bits[1],
                    flow_control,
                    send_rate,
                    acknowledge,
                    meaning,
                    send_buffer,
                    receive_buffer: if small { receive_buffer + 70_000 } else { receive_buffer },
                    patience: Some(Duration::from_secs(24 * 3600)),
                    ..XtpConfig::default()
                }
            },
        )
}

fn path() -> impl Strategy<Value = Path> {
    let chance = || prop_oneof![Just(0.0), 0.0..0.3];
    let rate = prop::option::of(100_000..10_000_000u64);
    (0..200u64, rate, prop_oneof![Just(0.0), 0.0..0.5], chance(), chance(), chance()).prop_map(
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

fn pair(near: &XtpConfig, far: &XtpConfig, out: Path, back: Path, seed: u64) -> Pair {
    let near = XtpEndpoint::connect(NEAR, FAR, near, seed).unwrap();
    let far = XtpEndpoint::listen(FAR, far, !seed).unwrap();
    let mut pair = Pair::new(Box::new(near), Box::new(far), [out, back], Seed::new(seed, 0));
    pair.drive();
    pair
}

fn messages(sizes: &[usize]) -> Vec<Vec<u8>> {
    sizes.iter().zip(1..).map(|(&size, n)| vec![n; size]).collect()
}

fn closed(pair: &mut Pair, side: Side) -> Vec<CloseReason> {
    let events = pair.events(side).into_iter();
    events.filter_map(|event| if let Event::Closed(reason) = event { Some(reason) } else { None }).collect()
}

/// Closes one end, then the other; both learn of it.
fn close(pair: &mut Pair) -> Result<(), TestCaseError> {
    for side in Side::BOTH {
        pair.close(side, Close::Graceful);
        pair.drive();
        pair.receive_all(side.other());
        pair.drive();
    }
    prop_assert_eq!(closed(pair, Side::Near), [CloseReason::Local]);
    prop_assert_eq!(closed(pair, Side::Far), [CloseReason::Peer]);
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn reliable_streams_deliver_everything_in_order_and_once(
        near in config(ErrorControl::Selective), far in config(ErrorControl::Selective),
        out in path(), back in path(), seed: u64,
        there in prop::collection::vec(0..3000usize, 1..12), answers in prop::collection::vec(0..3000usize, 0..4),
    ) {
        let mut pair = pair(&near, &far, out, back, seed);
        let there = messages(&there);
        prop_assert!(transfer(&mut pair, Side::Near, &there).concat() == there.concat());
        let answers = messages(&answers);
        if pair.send(Side::Far, b"") == Ok(()) {
            prop_assert!(transfer(&mut pair, Side::Far, &answers).concat() == answers.concat());
        }
        if !there.concat().is_empty() {
            close(&mut pair)?;
        }
    }

    #[test]
    fn unreliable_streams_deliver_what_arrived_in_order_and_once(
        near in config(ErrorControl::None), far in config(ErrorControl::None),
        out in path(), back in path(), seed: u64, count in 1..200u32,
    ) {
        // Whole messages in every packet, so that no message is split and half lost.
        let near = XtpConfig {
            flow_control: FlowControl::None, max_packet: near.max_packet.max(256), send_rate: None, ..near
        };
        let far = XtpConfig { max_packet: far.max_packet.max(256), receive_buffer: 1 << 20, receive_rate: None, ..far };
        let mut pair = pair(&near, &far, out, back, seed);
        let mut received = Vec::new();
        for n in 0..count {
            let mut message = [0x55; 40];
            message[..4].copy_from_slice(&n.to_be_bytes());
            let _ = pair.send(Side::Near, &message);
            pair.drive_for(Duration::from_millis(3));
            received.extend(pair.receive_all(Side::Far).concat());
        }
        pair.drive();
        received.extend(pair.receive_all(Side::Far).concat());
        let numbers: Vec<u32> =
            received.chunks(40).map(|m| u32::from_be_bytes([m[0], m[1], m[2], m[3]])).collect();
        prop_assert!(received.chunks(40).all(|message| message[4..] == [0x55; 36]), "torn messages");
        prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", numbers);
        prop_assert!(numbers.iter().all(|&n| n < count));
        close(&mut pair)?;
    }
}
