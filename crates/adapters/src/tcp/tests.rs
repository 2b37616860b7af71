use trunkline_core::{Rate, Seed};
use trunkline_testkit::conformance::transfer;
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};

use super::*;

fn pair(config: &TcpConfig, path: &Path) -> Pair {
    let near = TcpEndpoint::connect(NEAR, FAR, config, 1).unwrap();
    let far = TcpEndpoint::listen(FAR, config, 2).unwrap();
    Pair::new(Box::new(near), Box::new(far), [path.clone(), path.clone()], Seed::new(1, 0))
}

fn connected(config: &TcpConfig, path: &Path) -> Pair {
    let mut pair = pair(config, path);
    pair.drive();
    assert!(pair.take_event(Side::Near, Event::Connected) && pair.take_event(Side::Far, Event::Connected));
    pair
}

/// 2 Mbit/s and 100 ms there and back.
fn trunk() -> Path {
    Path {
        rate: Some(Rate::from_bits_per_second(2_000_000)),
        ..Path::with_latency(Duration::from_millis(50))
    }
}

/// Sends messages of 8 KiB without end for `time`; the bytes that arrived, and the segments that carried them.
fn bulk(config: &TcpConfig, path: &Path, time: Duration) -> (u64, u64) {
    let mut pair = connected(config, path);
    let (start, segments) = (pair.now(), pair.counter(Side::Near, "segments-sent"));
    let message = vec![0x5A; 8 << 10];
    let (mut received, mut total) = (Vec::new(), 0);
    loop {
        while pair.send(Side::Near, &message).is_ok() {}
        while pair.receive(Side::Far, &mut received) {}
        total += received.len() as u64;
        received.clear();
        if !pair.step_until(start + time) {
            return (total, pair.counter(Side::Near, "segments-sent") - segments);
        }
    }
}

#[test]
fn throughput_is_the_window_over_the_round_trip_until_the_line_is_full() {
    let time = Duration::from_secs(30);
    for window in [8 << 10, 16 << 10, 24 << 10, 32 << 10, 64 << 10] {
        let (bytes, _) = bulk(&TcpConfig { window, ..TcpConfig::default() }, &trunk(), time);
        let rate = bytes as f64 * 8.0 / time.as_secs_f64();
        // A full segment must be through the line before it can be acknowledged.
        let round_trip = 0.1 + 1500.0 * 8.0 / 2e6;
        let possible = (window as f64 * 8.0 / round_trip).min(2e6 * 1460.0 / 1500.0);
        assert!(
            (0.75..=1.0).contains(&(rate / possible)),
            "{window} bytes: {rate:.0} of {possible:.0} bit/s"
        );
    }
}

#[test]
fn without_nagle_a_full_window_still_goes_in_full_segments() {
    let time = Duration::from_secs(30);
    let segments =
        |nodelay| bulk(&TcpConfig { window: 16_000, nodelay, ..TcpConfig::default() }, &trunk(), time);
    let ((with_nagle, expected), (without, used)) = (segments(false), segments(true));
    assert!(used <= expected * 11 / 10, "{used} segments without Nagle, {expected} with");
    assert!(without >= with_nagle * 9 / 10, "{without} bytes without Nagle, {with_nagle} with");
}

#[test]
fn without_nagle_a_small_message_leaves_at_once() {
    for (nodelay, expected) in [(true, 3), (false, 1)] {
        let mut pair = connected(&TcpConfig { nodelay, ..TcpConfig::default() }, &trunk());
        let before = pair.counter(Side::Near, "segments-sent");
        for _ in 0..3 {
            pair.send(Side::Near, &[1; 80]).unwrap();
        }
        assert_eq!(pair.counter(Side::Near, "segments-sent") - before, expected, "nodelay {nodelay}");
    }
}

#[test]
fn segments_are_as_large_as_the_smaller_end_allows() {
    let near = TcpEndpoint::connect(NEAR, FAR, &TcpConfig { mss: 1000, ..TcpConfig::default() }, 1).unwrap();
    let far = TcpEndpoint::listen(FAR, &TcpConfig { mss: 500, ..TcpConfig::default() }, 2).unwrap();
    let path = Path::with_latency(Duration::from_millis(1));
    let mut pair = Pair::new(Box::new(near), Box::new(far), [path.clone(), path], Seed::new(1, 0));
    pair.drive();
    pair.take_event(Side::Near, Event::Connected);
    let before = pair.path_counters(Side::Near);
    transfer(&mut pair, Side::Near, &[vec![0; 50_000]]);
    let after = pair.path_counters(Side::Near);
    assert_eq!(after.sent - before.sent, 100);
    assert_eq!(after.bytes - before.bytes, 100 * 540);
}

#[test]
fn the_window_holds_exactly_its_bytes() {
    let window = 10_000;
    let mut pair = connected(&TcpConfig { window, ..TcpConfig::default() }, &trunk());
    pair.send(Side::Near, &[0; 50_000]).unwrap();
    pair.drive_for(Duration::from_secs(20));
    let mut received = Vec::new();
    while pair.receive(Side::Far, &mut received) {}
    assert_eq!(received.len(), window);
}

#[test]
fn one_lost_segment_is_repaired_by_fast_retransmission() {
    let path = Path::with_latency(Duration::from_millis(10));
    let mut pair = connected(&TcpConfig::default(), &path);
    let sent = pair.path_counters(Side::Near).sent;
    pair.path(Side::Near).drop = vec![sent + 12];
    let start = pair.now();
    let message = vec![9; 60_000];
    pair.send(Side::Near, &message).unwrap();
    let mut received = Vec::new();
    while received.len() < message.len() && pair.step_until(Time::MAX) {
        while pair.receive(Side::Far, &mut received) {}
    }
    assert_eq!(received, message);
    assert_eq!(pair.counter(Side::Near, "retransmissions"), 1);
    // Long before the retransmission timer, which is never below a second.
    assert!(pair.now().since(start) < Duration::from_millis(500), "took {}", pair.now().since(start));
}

#[test]
fn a_lost_connection_request_is_repeated_after_a_second() {
    let path = Path { drop: vec![0], ..Path::with_latency(Duration::from_millis(10)) };
    let mut pair = Pair::new(
        Box::new(TcpEndpoint::connect(NEAR, FAR, &TcpConfig::default(), 1).unwrap()),
        Box::new(TcpEndpoint::listen(FAR, &TcpConfig::default(), 2).unwrap()),
        [path, Path::with_latency(Duration::from_millis(10))],
        Seed::new(1, 0),
    );
    while !pair.take_event(Side::Near, Event::Connected) {
        assert!(pair.step_until(Time::MAX));
    }
    assert_eq!(pair.now(), Time::ZERO + Duration::from_millis(1020));
    assert_eq!(pair.counter(Side::Near, "retransmissions"), 1);
}

#[test]
fn a_lost_peer_is_given_up_after_the_timeout_and_no_sooner() {
    let timeout = Duration::from_secs(30);
    let mut pair = connected(&TcpConfig { timeout: Some(timeout), ..TcpConfig::default() }, &trunk());
    pair.drive_for(Duration::from_secs(1000));
    assert!(pair.events(Side::Near).is_empty(), "an idle peer is no lost peer");
    pair.path(Side::Far).cut = Some(Time::ZERO);
    let start = pair.now();
    pair.send(Side::Near, b"?").unwrap();
    pair.drive_until(start + (timeout - Duration::from_nanos(1)));
    assert!(pair.events(Side::Near).is_empty());
    pair.drive_until(start + timeout);
    assert_eq!(pair.events(Side::Near), [Event::Closed(CloseReason::TimedOut(timeout))]);
}

#[test]
fn a_reader_that_pauses_for_longer_than_the_timeout_is_no_lost_peer() {
    let timeout = Some(Duration::from_secs(5));
    let mut pair = connected(&TcpConfig { window: 4000, timeout, ..TcpConfig::default() }, &trunk());
    pair.send(Side::Near, &[1; 20_000]).unwrap();
    pair.drive_for(Duration::from_secs(300));
    assert!(pair.events(Side::Near).is_empty());
    let mut received = Vec::new();
    while received.len() < 20_000 {
        while pair.receive(Side::Far, &mut received) {}
        assert!(pair.step_until(Time::MAX));
    }
}

#[test]
fn without_a_timeout_nothing_is_given_up() {
    let mut pair = connected(&TcpConfig { timeout: None, ..TcpConfig::default() }, &trunk());
    pair.path(Side::Far).cut = Some(Time::ZERO);
    pair.send(Side::Near, b"?").unwrap();
    pair.drive_for(Duration::from_secs(3600));
    assert!(pair.events(Side::Near).is_empty());
}

#[test]
fn corrupted_segments_are_counted() {
    let mut pair = connected(&TcpConfig::default(), &trunk());
    pair.path(Side::Near).corrupt = 0.1;
    transfer(&mut pair, Side::Near, &[vec![3; 100_000]]);
    let counted = pair.counter(Side::Far, "checksum-errors") + pair.counter(Side::Far, "malformed");
    assert_eq!(counted, pair.path_counters(Side::Near).corrupted);
    assert!(counted > 0 && pair.counter(Side::Near, "retransmissions") > 0);
}

#[test]
fn nobody_listening_resets_the_request() {
    let elsewhere = Address { port: FAR.port + 1, ..FAR };
    let path = Path::with_latency(Duration::from_millis(10));
    let mut pair = Pair::new(
        Box::new(TcpEndpoint::connect(NEAR, FAR, &TcpConfig::default(), 1).unwrap()),
        Box::new(TcpEndpoint::listen(elsewhere, &TcpConfig::default(), 2).unwrap()),
        [path.clone(), path],
        Seed::new(1, 0),
    );
    pair.drive();
    assert_eq!(pair.events(Side::Near), [Event::Closed(CloseReason::Reset)]);
}

#[test]
fn a_window_that_opens_is_told_even_to_a_driver_that_forgets_to_drain() {
    let config = TcpConfig { window: 3000, ..TcpConfig::default() };
    let mut near = TcpEndpoint::connect(NEAR, FAR, &config, 1).unwrap();
    let mut far = TcpEndpoint::listen(FAR, &config, 2).unwrap();
    let mut packet = Vec::new();
    let mut now = Time::from_nanos(123);
    let mut exchange = |near: &mut TcpEndpoint, far: &mut TcpEndpoint, now| loop {
        let mut idle = true;
        while near.poll_transmit(now, &mut packet).is_some() {
            far.handle_packet(now, NEAR, Ecn::NotCapable, &packet);
            idle = false;
        }
        while far.poll_transmit(now, &mut packet).is_some() {
            near.handle_packet(now, FAR, Ecn::NotCapable, &packet);
            idle = false;
        }
        if idle {
            break;
        }
    };
    exchange(&mut near, &mut far, now);
    near.send(now, Message::new(&[1; 10_000])).unwrap();
    for _ in 0..5 {
        exchange(&mut near, &mut far, now);
        now += Duration::from_millis(20);
        far.handle_timeout(now);
    }
    exchange(&mut near, &mut far, now);
    assert_eq!(far.receive(&mut Vec::new()).unwrap().length, 3000);
    let next = far.next_timeout().unwrap();
    assert!(next > now && next.since(now) <= Duration::from_micros(1));
    far.handle_timeout(next);
    exchange(&mut near, &mut far, next);
    assert!(far.receive(&mut Vec::new()).is_some(), "the sender was not told");
}

#[test]
fn impossible_options_are_refused_with_their_range() {
    let refused = |config: TcpConfig| TcpEndpoint::connect(NEAR, FAR, &config, 1).err().unwrap().to_string();
    let good = TcpConfig::default;
    assert_eq!(
        refused(TcpConfig { mss: 47, ..good() }),
        "TCP's maximum segment size is 47 bytes; expected 48 to 65495"
    );
    assert_eq!(
        refused(TcpConfig { window: 0, ..good() }),
        "TCP's receive window is 0 bytes; expected 1 to 1073741824"
    );
    assert!(refused(TcpConfig { send_buffer: 0, ..good() }).contains("send buffer"));
    let port = TcpEndpoint::listen(Address { host: 0, port: 0 }, &good(), 1).err();
    assert_eq!(port, Some(TcpConfigError::Port));
    assert_eq!("cubic".parse(), Ok(CongestionControl::Cubic));
    assert_eq!("bbr".parse::<CongestionControl>(), Err(TcpConfigError::CongestionControl("bbr".to_owned())));
}

mod packets {
    use proptest::prelude::*;
    use trunkline_testkit::cases::cases;

    use super::*;

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn damaged_segments_never_make_it_panic(
            damage in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6), keep: usize, fix: bool,
        ) {
            let mut near = TcpEndpoint::connect(NEAR, FAR, &TcpConfig::default(), 1).unwrap();
            let mut far = TcpEndpoint::listen(FAR, &TcpConfig::default(), 2).unwrap();
            let mut packet = Vec::new();
            near.poll_transmit(Time::ZERO, &mut packet).unwrap();
            for (at, value) in damage {
                let at = at % packet.len();
                packet[at] = value;
            }
            packet.truncate(keep % (packet.len() + 1));
            if fix {
                mend_checksums(&mut packet);
            }
            far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
            near.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
            while far.poll_transmit(Time::ZERO, &mut packet).is_some() {}
            prop_assert!(far.next_timeout().is_none_or(|next| next > Time::ZERO));
        }
    }

    /// So that damage gets beyond the checksums, into the engine.
    fn mend_checksums(packet: &mut [u8]) {
        use smoltcp::wire::{Ipv4Packet, TcpPacket};
        let length = packet.len() as u16;
        if packet.len() < HEADERS {
            return;
        }
        packet[0] = 0x45;
        let mut ip = Ipv4Packet::new_unchecked(&mut *packet);
        ip.set_total_len(length);
        ip.fill_checksum();
        let (from, to) = (ip.src_addr(), ip.dst_addr());
        if let Ok(mut tcp) = TcpPacket::new_checked(ip.payload_mut()) {
            tcp.fill_checksum(&IpAddress::Ipv4(from), &IpAddress::Ipv4(to));
        }
    }
}
#[test]
fn a_window_smaller_than_a_segment_never_stops_the_engine_for_good() {
    let near = TcpConfig { send_buffer: 68, mss: 339, nodelay: true, timeout: None, ..TcpConfig::default() };
    let far = TcpConfig { window: 20, mss: 48, ..near.clone() };
    let near = TcpConfig { congestion_control: CongestionControl::None, ..near };
    for seed in 0..200 {
        let out = Path { loss: 0.14, corrupt: 0.02, ..Path::default() };
        let back = Path { loss: 0.15, reorder: 0.12, ..Path::with_latency(Duration::from_millis(11)) };
        let near = TcpEndpoint::connect(NEAR, FAR, &near, 1).unwrap();
        let far = TcpEndpoint::listen(FAR, &far, 2).unwrap();
        let mut pair = Pair::new(Box::new(near), Box::new(far), [out, back], Seed::new(seed, 0));
        pair.drive();
        let received = transfer(&mut pair, Side::Near, &[vec![0; 1971]]).concat().len();
        assert_eq!(received, 1971, "seed {seed}");
    }
}
