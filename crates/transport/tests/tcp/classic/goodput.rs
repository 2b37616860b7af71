//! How much a window carries over a long path: so much in every round trip, up to what the link does.

use trunkline_core::{Duration, Rate, Seed};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::classic_tcp::{TcpConfig, TcpEndpoint};
use trunkline_transport::{Event, SendError};

const MSS: usize = 1024;
const LATENCY: Duration = Duration::from_millis(50);
const RATE: u64 = 2_000_000;

/// Bits per second that arrive over 2 Mbit/s and 100 ms, of a sender that always has more.
fn goodput(window: usize) -> f64 {
    let config = TcpConfig { window, mss: MSS, ..TcpConfig::default() };
    let near = TcpEndpoint::connect(NEAR, FAR, &config, 1).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, &config, 2).expect("the configuration is possible");
    let path = Path { rate: Some(Rate::from_bits_per_second(RATE)), ..Path::with_latency(LATENCY) };
    let mut pair = Pair::new(Box::new(near), Box::new(far), [path.clone(), path], Seed::new(1, 0));
    pair.drive();
    assert!(pair.take_event(Side::Near, Event::Connected));
    let (begin, end) = (pair.now() + Duration::from_secs(5), pair.now() + Duration::from_secs(35));
    let (mut received, mut bytes) = (Vec::new(), 0);
    loop {
        while pair.send(Side::Near, &[7; 8192]) == Ok(()) {}
        assert_eq!(pair.send(Side::Near, &[7; 8192]), Err(SendError::Full));
        while !pair.take_event(Side::Near, Event::Writable) {
            if !pair.step_until(end) {
                return bytes as f64 * 8.0 / end.since(begin).as_secs_f64();
            }
            received.clear();
            while pair.receive(Side::Far, &mut received) {}
            bytes += if pair.now() > begin { received.len() } else { 0 };
        }
    }
}

#[test]
fn a_window_arrives_in_every_round_trip() {
    for kib in [8, 16, 24, 32, 48, 64] {
        let window = (kib << 10) as f64 * 8.0;
        // The link takes its time for the first segment of a window, too, and the headers are no payload. An acknowledgement is
        // for two segments, of which the first has waited for the second.
        let packet = (MSS + 40) as f64 * 8.0 / RATE as f64;
        let round_trip = 2.0 * LATENCY.as_secs_f64() + 2.0 * packet;
        let expected = (window / round_trip).min(RATE as f64 * MSS as f64 / (MSS + 40) as f64);
        let measured = goodput(kib << 10);
        let off = measured / expected - 1.0;
        assert!(off.abs() < 0.03, "{kib} KiB: {measured:.0} bit/s, {expected:.0} expected");
    }
}
