//! Goodput of one saturating sender over a link with an unlimited queue, by congestion control and loss.

use trunkline_core::{Duration, Rate, Seed};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::Event;
use trunkline_transport::tcp::{BufferConfig, Profile, TcpConfig, TcpEndpoint};

const RATE: u64 = 5_000_000;
/// Payload of a full segment with time stamps (RFC 7323: 12 bytes), and its packet.
const SEGMENT: f64 = 1448.0;
const PACKET: f64 = 1500.0;

/// A sender that always has more, and what arrived of it.
struct Bulk {
    pair: Pair,
    /// Share of what the link can carry of payload, between 2 s and 12 s.
    share: f64,
}

fn bulk(congestion_control: &str, latency: u64, loss: f64) -> Bulk {
    let algorithm = congestion_control.parse().expect("it exists");
    bulk_of(TcpConfig { congestion_control: algorithm, ..TcpConfig::default() }, latency, loss)
}

fn bulk_of(config: TcpConfig, latency: u64, loss: f64) -> Bulk {
    let near = TcpEndpoint::connect(NEAR, FAR, config.clone(), 1).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, config, 2).expect("the configuration is possible");
    let rate = Some(Rate::from_bits_per_second(RATE));
    let path = Path { rate, loss, ..Path::with_latency(Duration::from_millis(latency)) };
    let mut pair = Pair::new(Box::new(near), Box::new(far), [path.clone(), path], Seed::new(1, 0));
    while !pair.take_event(Side::Near, Event::Connected) {
        assert!(pair.step_until(pair.now() + Duration::from_secs(60)), "the ends never connect");
    }
    let (begin, end) = (pair.now() + Duration::from_secs(2), pair.now() + Duration::from_secs(12));
    let (mut received, mut bytes) = (Vec::new(), 0);
    loop {
        while pair.send(Side::Near, &[7; 8192]).is_ok() {}
        while !pair.take_event(Side::Near, Event::Writable) {
            if !pair.step_until(end) {
                let most = RATE as f64 * SEGMENT / PACKET * end.since(begin).as_secs_f64();
                return Bulk { share: bytes as f64 * 8.0 / most, pair };
            }
            received.clear();
            while pair.receive(Side::Far, &mut received) {}
            bytes += if pair.now() > begin { received.len() } else { 0 };
        }
    }
}

#[test]
fn every_congestion_control_fills_a_link_without_loss_over_20_and_100_ms() {
    for name in ["cubic", "reno", "bbr", "bbr3", "dctcp", "prague"] {
        for latency in [10, 50] {
            let Bulk { pair, share } = bulk(name, latency, 0.0);
            // BBR drains the path for 200 ms in every 10 s, or half of it in every 5 s, to measure its round trip.
            let least = if name.starts_with("bbr") { 0.95 } else { 0.97 };
            assert!((least..=1.001).contains(&share), "{name} over {latency} ms: {share}");
            assert_eq!(pair.counter(Side::Near, "retransmissions"), 0, "{name} over {latency} ms");
        }
    }
}

/// Mathis et al. 1997: over a path of random loss p, Reno gets about sqrt(3 / (2 p)) segments in a round trip; fewer with
/// delayed acknowledgements. CUBIC is never slower (RFC 9438 section 4.3).
#[test]
fn random_loss_slows_cubic_as_theory_has_it_and_bbr_hardly() {
    let segments = (3.0_f64 / 2.0 / 0.01).sqrt();
    let theory = segments * PACKET * 8.0 / 0.020 / RATE as f64;
    let cubic = bulk("cubic", 10, 0.01);
    assert!((0.5 * theory..1.3 * theory).contains(&cubic.share), "{} of {theory}", cubic.share);
    let bbr = bulk("bbr", 10, 0.01);
    assert!(bbr.share > 0.9, "{}", bbr.share);
}

/// With selective acknowledgements every loss but that of the last segments is repaired without a timeout (RFC 6675, RFC
/// 8985), and nothing is sent again that had arrived (no segment overtakes another here).
#[test]
fn losses_are_repaired_without_timeouts_and_nothing_is_sent_twice_for_nothing() {
    for loss in [0.001, 0.01, 0.03] {
        let Bulk { pair, .. } = bulk("cubic", 10, loss);
        let [lost, repeated, spurious, timeouts] =
            ["", "retransmissions", "retransmissions-spurious", "timeouts"].map(|name| match name {
                "" => pair.path_counters(Side::Near).lost,
                name => pair.counter(Side::Near, name),
            });
        assert!(repeated <= lost && repeated + 10 > lost, "{loss}: {lost} lost, {repeated} sent again");
        assert_eq!((spurious, timeouts), (0, 0), "{loss}");
    }
}

#[test]
fn in_1995_a_window_arrived_in_every_round_trip() {
    for kib in [8, 16, 32, 48] {
        let buffer = BufferConfig::fixed(kib << 10);
        let config = TcpConfig {
            mss: 1024,
            receive_buffer: buffer,
            send_buffer: buffer,
            nagle: Profile::Solaris25.nagle(),
            ..Profile::Solaris25.config()
        };
        let Bulk { share, .. } = bulk_of(config, 50, 0.0);
        let rate = share * RATE as f64 * SEGMENT / PACKET;
        // 100 ms, and the time of two segments on the link: the first waits for the second.
        let window = (kib << 10) as f64 * 8.0 / (0.1 + 2.0 * 1064.0 * 8.0 / RATE as f64);
        assert!((rate / window - 1.0).abs() < 0.03, "{kib} KiB: {rate:.0} bit/s of {window:.0}");
    }
}
