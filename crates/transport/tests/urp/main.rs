//! URP over the pair harness: conformance, rates, recovery.

mod everything;
mod loss;

use trunkline_core::{Duration, Rate, Seed, Time};
use trunkline_testkit::conformance::{self, Make, transfer};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_testkit::two_process::assert_same_in_another_process;
use trunkline_transport::urp::MAX_MESSAGE;
use trunkline_transport::{Close, CloseReason, Endpoint, Event, Message, SendError, UrpConfig, UrpEndpoint};

fn patient(_: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let config = UrpConfig { patience: Some(Duration::from_secs(3600)), ..UrpConfig::default() };
    (near(config), far(config))
}

const MAKE: Make = patient;

trunkline_testkit::conformance_tests!(MAKE);

#[test]
fn another_process_sends_the_same_packets() {
    assert_same_in_another_process("another_process_sends_the_same_packets", || {
        format!("{:016x}", conformance::trace(MAKE, 7))
    });
}

fn near(config: UrpConfig) -> Box<dyn Endpoint> {
    Box::new(UrpEndpoint::connect(NEAR, FAR, config).expect("the options are in range"))
}

fn far(config: UrpConfig) -> Box<dyn Endpoint> {
    Box::new(UrpEndpoint::listen(FAR, NEAR, config).expect("the options are in range"))
}

/// A pair with an open circuit and its first events taken.
fn connected(config: UrpConfig, path: &Path) -> Pair {
    let clean = Path::with_latency(path.latency);
    let mut pair = Pair::new(near(config), far(config), [clean.clone(), clean], Seed::new(1, 0));
    pair.drive();
    for side in Side::BOTH {
        assert_eq!(pair.events(side), [Event::Connected]);
        *pair.path(side) = path.clone();
    }
    pair
}

/// A config whose block is `block` bytes and whose window is `window` blocks.
fn config(block: usize, window: u8) -> UrpConfig {
    UrpConfig { block, window, ..UrpConfig::default() }
}

/// Bytes of which no two blocks are alike.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

const LATENCY: Duration = Duration::from_millis(20);

#[test]
fn a_block_counts_its_trailer_and_the_stuffing_of_its_controls() {
    for (message, expected) in [(1, 7), (12, 18), (256, 262)] {
        let mut pair = connected(UrpConfig::default(), &Path::with_latency(LATENCY));
        let before = Side::BOTH.map(|side| pair.path_counters(side));
        pair.send(Side::Near, &pattern(message)).unwrap();
        pair.drive();
        let after = Side::BOTH.map(|side| pair.path_counters(side));
        let grown = |side: Side| {
            let (before, after) = (before[side as usize], after[side as usize]);
            (after.sent - before.sent, after.bytes - before.bytes)
        };
        assert_eq!(grown(Side::Near), (1, expected), "a block");
        assert_eq!(grown(Side::Far), (1, 2), "an ECHO");
    }
}

#[test]
fn a_message_is_cut_into_blocks_and_its_end_ends_one() {
    let mut pair = connected(config(256, 7), &Path::with_latency(LATENCY));
    let before = pair.path_counters(Side::Near).bytes;
    pair.send(Side::Near, &pattern(600)).unwrap();
    pair.send(Side::Near, &pattern(10)).unwrap();
    pair.drive();
    let blocks = [256, 256, 88, 10];
    assert_eq!(pair.path_counters(Side::Near).bytes - before, blocks.iter().map(|b| b + 6).sum::<u64>());
    assert_eq!(pair.counter(Side::Near, "blocks-sent"), 4);
}

#[test]
fn a_window_per_round_trip_is_what_gets_through() {
    // 1 Gbit/s, so that the round trip is that of the light.
    let path = Path { rate: Some(Rate::from_bits_per_second(1_000_000_000)), ..Path::with_latency(LATENCY) };
    for (block, window) in [(256, 3), (256, 7), (512, 6), (1024, 1), (1024, 7), (16, 2)] {
        let mut pair = connected(config(block, window), &path);
        let start = pair.now();
        let sent = pattern(block * usize::from(window) * 50);
        pair.send(Side::Near, &sent).unwrap();
        while pair.receive_all(Side::Far).concat().is_empty() {
            assert!(pair.step_until(Time::MAX));
        }
        transfer(&mut pair, Side::Near, &[]);
        // 50 windows, each acknowledged a round trip after it left.
        let took = (pair.now().since(start)).as_nanos() as f64;
        let law = (LATENCY * 2 * 50).as_nanos() as f64;
        assert!(
            (0.999..1.02).contains(&(took / law)),
            "{block} * {window}: {took} ns, the law says {law} ns"
        );
    }
}

#[test]
fn blocks_are_acknowledged_together_when_the_application_was_slow() {
    let mut pair = connected(config(1024, 7), &Path::with_latency(LATENCY));
    let sent = pattern(200_000);
    pair.send(Side::Near, &sent).unwrap();
    pair.drive_for(Duration::from_secs(5));
    // ECHOs stop when the receive buffer is full; what the window lets through comes on top.
    let blocks = pair.counter(Side::Far, "blocks-received");
    assert_eq!(blocks, 64 + 6);
    assert!(pair.counter(Side::Near, "timeouts") >= 3, "the sender asks");
    assert_eq!(pair.counter(Side::Near, "retransmissions"), 0, "nothing is missing");
    let answers = pair.path_counters(Side::Far).sent;
    let mut received = pair.receive_all(Side::Far).concat();
    assert_eq!(pair.path_counters(Side::Far).sent, answers + 1, "one ECHO for all");
    received.extend(transfer(&mut pair, Side::Near, &[]).concat());
    assert!(received == sent);
}

#[test]
fn an_empty_message_sends_nothing() {
    let mut pair = connected(UrpConfig::default(), &Path::with_latency(LATENCY));
    let sent = pair.path_counters(Side::Near).sent;
    pair.send(Side::Near, &[]).unwrap();
    assert_eq!(pair.path_counters(Side::Near).sent, sent);
    assert_eq!(transfer(&mut pair, Side::Near, &[b"x".to_vec()]), [b"x"]);
}

#[test]
fn a_message_above_the_limit_is_refused() {
    let mut pair = connected(UrpConfig::default(), &Path::with_latency(LATENCY));
    let refused = pair.send(Side::Near, &vec![0; MAX_MESSAGE + 1]);
    assert_eq!(refused, Err(SendError::TooLarge { limit: MAX_MESSAGE }));
    assert_eq!(pair.send(Side::Near, &vec![0; MAX_MESSAGE]), Ok(()));
}

#[test]
fn a_lost_opening_is_repeated() {
    for drop in [[vec![0], vec![]], [vec![], vec![0]]] {
        let [out, back] = drop.map(|drop| Path { drop, ..Path::with_latency(LATENCY) });
        let config = UrpConfig::default();
        let mut pair = Pair::new(near(config), far(config), [out, back], Seed::new(1, 0));
        pair.drive();
        assert_eq!(pair.now(), Time::ZERO + config.timeout + LATENCY * 2);
        for side in Side::BOTH {
            assert_eq!(pair.events(side), [Event::Connected]);
        }
        assert_eq!(transfer(&mut pair, Side::Far, &[b"hello".to_vec()]), [b"hello"]);
    }
}

#[test]
fn data_before_the_answer_to_an_opening_are_repeated() {
    // The far end is open and sends; its AINIT is lost, so the near end does not know yet that it is open.
    let back = Path { drop: vec![0], ..Path::with_latency(LATENCY) };
    let config = UrpConfig::default();
    let paths = [Path::with_latency(LATENCY), back];
    let mut pair = Pair::new(near(config), far(config), paths, Seed::new(1, 0));
    pair.drive_for(LATENCY);
    let sent = pattern(1000);
    pair.send(Side::Far, &sent).unwrap();
    assert_eq!(transfer(&mut pair, Side::Far, &[]).concat(), sent);
}

#[test]
fn an_aborted_circuit_answers_those_who_have_not_heard() {
    let mut pair = connected(UrpConfig::default(), &Path::with_latency(LATENCY));
    let away = pair.path_counters(Side::Near).sent;
    pair.path(Side::Near).drop = vec![away];
    pair.close(Side::Near, Close::Abort);
    pair.drive();
    assert_eq!(pair.events(Side::Far), []);
    pair.send(Side::Far, b"still there?").unwrap();
    pair.drive();
    assert_eq!(pair.events(Side::Far), [Event::Closed(CloseReason::Reset)]);
}
