//! Congestion control end to end: the rates of RFC 4341 and RFC 5348 at known loss, and what becomes of messages that
//! do not get out in time.

use trunkline_core::{Duration, Rate, Seed, Time};
use trunkline_testkit::pair::{Pair, Path, Side};
use trunkline_transport::dccp::{Ccid, DccpConfig, throughput};
use trunkline_transport::{Event, SendError};

use super::ends;

const LATENCY: Duration = Duration::from_millis(25);
const ROUND_TRIP: f64 = 0.05;

/// A connected pair whose path towards the far end is then this one.
fn connected(config: &DccpConfig, path: Path, seed: u64) -> Pair {
    let (near, far) = ends(config, seed);
    let clean = Path::with_latency(path.latency);
    let mut pair = Pair::new(near, far, [clean.clone(), clean], Seed::new(seed, 0));
    pair.drive();
    *pair.path(Side::Near) = path;
    pair
}

/// Sends messages of this size as fast as they are taken; how many arrive within this time.
fn saturate(pair: &mut Pair, size: usize, time: Duration) -> u64 {
    let until = pair.now() + time;
    let (message, mut buffer) = (vec![7; size], Vec::new());
    let (mut full, mut received) = (false, 0);
    loop {
        while !full {
            match pair.send(Side::Near, &message) {
                Ok(()) => {}
                Err(SendError::Full) => full = true,
                Err(error) => panic!("{error} at {}", pair.now()),
            }
        }
        if !pair.step_until(until) {
            return received;
        }
        buffer.clear();
        while pair.receive(Side::Far, &mut buffer) {
            received += 1;
        }
        full = !pair.take_event(Side::Near, Event::Writable);
    }
}

/// One packet in `period` is lost.
fn periodic_loss(period: u64) -> Path {
    Path { drop: (1..20_000).map(|n| n * period).collect(), ..Path::with_latency(LATENCY) }
}

#[track_caller]
fn close(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found / expected - 1.0).abs() < tolerance,
        "{found:.0} bytes per second instead of {expected:.0}"
    );
}

#[test]
fn ccid_2_s_rate_is_that_of_tcp_at_the_same_loss() {
    for period in [20, 50, 100, 400] {
        let mut pair = connected(&DccpConfig::default(), periodic_loss(period), 1);
        saturate(&mut pair, 1000, Duration::from_secs(10));
        let received = saturate(&mut pair, 1000, Duration::from_secs(30));
        // The equation of RFC 5348 is that of TCP.
        let expected = throughput(1000.0, ROUND_TRIP, 1.0 / period as f64);
        close(received as f64 * 1000.0 / 30.0, expected, 0.15);
    }
}

#[test]
fn ccid_3_s_rate_is_the_equation_s() {
    for period in [20, 100, 400] {
        let config = DccpConfig { ccid: Ccid::Tfrc, ..DccpConfig::default() };
        let mut pair = connected(&config, periodic_loss(period), 1);
        saturate(&mut pair, 1000, Duration::from_secs(10));
        let received = saturate(&mut pair, 1000, Duration::from_secs(30));
        let loss = 1.0 / period as f64;
        let expected = throughput(1000.0, ROUND_TRIP, loss) * (1.0 - loss);
        close(received as f64 * 1000.0 / 30.0, expected, 0.1);
    }
}

#[test]
fn ccid_3_s_rate_is_the_equation_s_at_random_loss() {
    let config = DccpConfig { ccid: Ccid::Tfrc, ..DccpConfig::default() };
    let loss = 0.02;
    let mut pair = connected(&config, Path { loss, ..Path::with_latency(LATENCY) }, 1);
    saturate(&mut pair, 1000, Duration::from_secs(10));
    let received = saturate(&mut pair, 1000, Duration::from_secs(60));
    close(received as f64 * 1000.0 / 60.0, throughput(1000.0, ROUND_TRIP, loss), 0.2);
}

#[test]
fn ccid_4_gives_voice_what_tcp_with_large_segments_gets() {
    // 160 bytes every 10 ms are 16 kB/s. At 10 % loss and a round trip of 50 ms, CCID 3 would let out 6 kB/s of such
    // packets; the equation for 1460 bytes, less the headers' share, allows 42 kB/s.
    let offered = 16_000.0;
    let [tfrc, small_packets] = [Ccid::Tfrc, Ccid::TfrcSmallPackets].map(|ccid| {
        let config = DccpConfig { ccid, ..DccpConfig::default() };
        let mut pair = connected(&config, Path { loss: 0.1, ..Path::with_latency(LATENCY) }, 1);
        saturate(&mut pair, 160, Duration::from_secs(10));
        saturate(&mut pair, 160, Duration::from_secs(30)) as f64 * 160.0 / 30.0
    });
    close(tfrc, throughput(160.0, ROUND_TRIP, 0.1), 0.25);
    close(small_packets, offered * 0.9, 0.05);
}

#[test]
fn a_bottleneck_is_filled() {
    for ccid in [Ccid::TcpLike, Ccid::Tfrc] {
        let rate = Some(Rate::from_bits_per_second(2_000_000));
        let config = DccpConfig { ccid, ..DccpConfig::default() };
        let mut pair = connected(&config, Path { rate, ..Path::with_latency(LATENCY) }, 1);
        saturate(&mut pair, 1000, Duration::from_secs(2));
        let received = saturate(&mut pair, 1000, Duration::from_secs(10));
        // 1036 bytes on the link for 1000 of a message.
        assert!(received >= 2375, "{ccid:?}: {received} of 2413 messages");
    }
}

#[test]
fn what_is_too_old_is_dropped_at_the_sender_and_counted() {
    let lifetime = Duration::from_millis(100);
    let config = DccpConfig { ccid: Ccid::Tfrc, lifetime: Some(lifetime), ..DccpConfig::default() };
    // The equation lets out some 45 kB/s; 300 kB/s are offered.
    let mut pair = connected(&config, Path { loss: 0.02, ..Path::with_latency(LATENCY) }, 1);
    let (mut received, mut late) = (0, 0);
    for _ in 0..20_000 {
        let mut message = [0; 300];
        message[..8].copy_from_slice(&pair.now().as_nanos().to_be_bytes());
        assert_eq!(pair.send(Side::Near, &message), Ok(()));
        pair.drive_for(Duration::from_millis(1));
        for message in pair.receive_all(Side::Far) {
            let sent = Time::from_nanos(u64::from_be_bytes(message[..8].try_into().unwrap()));
            received += 1;
            late += u64::from(pair.now().since(sent) > LATENCY + lifetime + Duration::from_millis(1));
        }
    }
    pair.drive_for(Duration::from_secs(1));
    received += pair.receive_all(Side::Far).len() as u64;
    assert_eq!(late, 0);
    let expired = pair.counter(Side::Near, "expired");
    let lost = pair.path_counters(Side::Near).lost;
    assert!(expired > 10_000 && received > 2_000, "{expired} expired, {received} received");
    // Some of the lost packets had no data.
    assert!((20_000 - lost..=20_000).contains(&(expired + received)), "{expired} + {received} + {lost}");
}
