//! What sessions say to each other, packet by packet.

use trunkline_core::{Duration, Rate, Seed, Time};

use crate::rtp::rtcp::{RtcpPacket, decode_compound, encode_bye, encode_cname, encode_report};
use crate::rtp::wire::{RtpHeader, RtpPacket};
use crate::rtp::{Arrival, PayloadFormat, Reporting, RtpConfig, RtpConfigError, RtpSession};

fn config(place: &str) -> RtpConfig {
    RtpConfig::new(PayloadFormat::PCMU, Seed::new(1, 0).stream(place))
}

fn session(place: &str) -> RtpSession {
    RtpSession::new(config(place)).unwrap()
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn write(session: &mut RtpSession, now: Time, message: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    session.write(now, message, &mut packet);
    packet
}

fn control(session: &mut RtpSession, now: Time) -> Vec<Vec<u8>> {
    core::iter::from_fn(|| {
        let mut packet = Vec::new();
        session.poll_control(now, &mut packet).then_some(packet)
    })
    .collect()
}

/// Lets the next report come, and gives it with its time.
fn next_report(session: &mut RtpSession) -> (Time, Vec<u8>) {
    loop {
        let now = session.next_timeout().expect("reports are still to come");
        session.handle_timeout(now);
        if let Some(packet) = control(session, now).pop() {
            return (now, packet);
        }
    }
}

#[test]
fn options_out_of_range_are_refused() {
    let refused = |config: RtpConfig| RtpSession::new(config).unwrap_err().to_string();
    let format = |payload_type, clock| PayloadFormat { payload_type, clock, ..PayloadFormat::PCMU };
    let expected = "RTP's payload type is 72; expected 0 to 63 or 96 to 127";
    assert_eq!(refused(RtpConfig { format: format(72, 8000), ..config("a") }), expected);
    let expected =
        "RTP's payload has no clock, no channel or no bytes in a sample; expected at least 1 of each";
    assert_eq!(refused(RtpConfig { format: format(0, 0), ..config("a") }), expected);
    let expected = "RTP's canonical name has 0 bytes; expected 1 to 255";
    assert_eq!(refused(RtpConfig { cname: String::new(), ..config("a") }), expected);
    let slow = Reporting::with_bandwidth(Rate::from_bits_per_second(999));
    let error = RtpSession::new(RtpConfig { reporting: Some(slow), ..config("a") }).unwrap_err();
    assert_eq!(error, RtpConfigError::Bandwidth);
    let error = RtpSession::new(RtpConfig { probation: 0, ..config("a") }).unwrap_err();
    assert_eq!(error, RtpConfigError::Probation);
}

#[test]
fn l16_has_its_numbers_at_44100_hz_and_the_agreed_one_otherwise() {
    let number = |clock, channels| PayloadFormat::l16(clock, channels, 97).payload_type;
    assert_eq!(
        [number(44_100, 2), number(44_100, 1), number(48_000, 2), number(44_100, 3)],
        [10, 11, 97, 97]
    );
}

#[test]
fn timestamps_count_samples_and_the_time_of_pauses() {
    // Stereo of 16 bits: 960 bytes behind the preamble are 240 samples, 5 ms at 48 kHz.
    let format = PayloadFormat::l16(48_000, 2, 96);
    let config = RtpConfig { format, preamble: 40, ..config("a") };
    let mut session = RtpSession::new(config).unwrap();
    let mut header = |millis| {
        let packet = write(&mut session, at(millis), &[0; 1000]);
        RtpPacket::decode(&packet).unwrap().header
    };
    let first = header(10);
    assert!(first.marker && first.payload_type == 96);
    // 5 ms later, then late, then early, then after a second of silence, which begins a talkspurt.
    for (millis, samples, marker) in
        [(15, 240, false), (50, 480, false), (50, 720, false), (1050, 48_720, true)]
    {
        let next = header(millis);
        let advanced = next.timestamp.wrapping_sub(first.timestamp);
        assert_eq!((advanced, next.marker, next.ssrc), (samples, marker, first.ssrc), "at {millis} ms");
    }
}

#[test]
fn two_ends_measure_each_other() {
    let mut ends = [session("a"), session("b")];
    // 30 ms there, 50 ms back; near sends every 20 ms, of which every tenth is lost.
    let mut flying: Vec<(u64, usize, Vec<u8>)> = Vec::new();
    for millis in 0..20_000 {
        let now = at(millis);
        let (arrived, still): (Vec<_>, Vec<_>) = flying.drain(..).partition(|(when, ..)| *when == millis);
        flying = still;
        for (_, side, packet) in arrived {
            assert_ne!(ends[side].handle(now, &packet), Arrival::Dropped);
        }
        for (side, delay) in [(0, 30), (1, 50)] {
            if side == 0 && millis % 20 == 0 {
                let packet = write(&mut ends[0], now, &[0; 160]);
                if millis / 20 % 10 != 5 {
                    flying.push((millis + delay, 1, packet));
                }
            }
            ends[side].handle_timeout(now);
            flying.extend(control(&mut ends[side], now).into_iter().map(|p| (millis + delay, 1 - side, p)));
        }
    }
    let report = ends[0].peer_report().expect("it was told");
    assert_eq!(report.block.ssrc, ends[0].ssrc());
    let around = report.round_trip.unwrap().as_millis_f64();
    assert!((around - 80.0).abs() < 0.1, "{around}");
    assert!((20..=31).contains(&report.block.fraction_lost), "{:?}", report.block);
    assert_eq!(report.jitter, Duration::ZERO, "a steady path");
    let reception = ends[1].reception().unwrap();
    assert!((99..=100).contains(&reception.lost), "{reception:?}");
    assert_eq!(ends[1].peer_report(), None, "it has sent no data");
}

#[test]
fn senders_send_sender_reports_with_a_clock_and_all_they_have_sent() {
    let mut near = RtpSession::new(RtpConfig { wall_clock: 77 << 32, ..config("a") }).unwrap();
    let packet = write(&mut near, at(0), &[0; 160]);
    let first = RtpPacket::decode(&packet).unwrap().header;
    write(&mut near, at(20), &[0; 100]);
    let (now, report) = next_report(&mut near);
    let parts: Vec<_> = decode_compound(&report).unwrap().collect();
    let [RtcpPacket::SenderReport { ssrc, info, blocks }, RtcpPacket::Description(mut chunks)] = parts[..]
    else {
        panic!("{parts:?}")
    };
    assert_eq!((ssrc, info.packets, info.bytes, blocks.count()), (near.ssrc(), 2, 260, 0));
    assert_eq!(chunks.next(), Some((ssrc, Some(&b"trunkline"[..]))));
    // Both clocks name the same moment.
    let since = now.since(Time::ZERO).as_secs_f64();
    assert!((info.ntp as f64 / 4_294_967_296.0 - 77.0 - since).abs() < 1e-6);
    let rtp = f64::from(info.rtp.wrapping_sub(first.timestamp)) / 8000.0;
    assert!((rtp - since).abs() < 0.001, "{rtp} and {since}");
}

#[test]
fn reports_stop_with_the_data_and_come_back_with_it() {
    let [mut near, mut far] = [session("a"), session("b")];
    assert_eq!(near.next_timeout(), None);
    near.handle(at(0), &write(&mut far, at(0), &[0; 160]));
    for start in [0, 1_000_000] {
        let packet = write(&mut near, at(start), &[0; 160]);
        assert!(matches!(far.handle(at(start), &packet), Arrival::Data(_)));
        for end in [&mut near, &mut far] {
            let mut reports = 0;
            while let Some(now) = end.next_timeout() {
                end.handle_timeout(now);
                reports += control(end, now).len();
                assert!(now < at(start + 60_000));
            }
            assert!((1..6).contains(&reports), "{reports}");
        }
    }
    // Nobody was missed for having been as silent as it should.
    assert_eq!((near.counters.peers_lost, far.counters.peers_lost), (0, 0));
}

#[test]
fn who_has_said_nothing_says_no_goodbye() {
    let mut near = session("a");
    near.leave();
    assert!(control(&mut near, at(0)).is_empty());
    let mut near = session("a");
    write(&mut near, at(0), &[0; 160]);
    near.leave();
    let goodbye = control(&mut near, at(1));
    assert_eq!((goodbye.len(), near.next_timeout()), (1, None));
    let last = decode_compound(&goodbye[0]).unwrap().last();
    let ssrc = near.ssrc().to_be_bytes();
    assert_eq!(last, Some(RtcpPacket::Bye { sources: &ssrc, reason: None }));
}

#[test]
fn a_peer_that_leaves_may_come_back_as_another_at_once() {
    let [mut near, mut far, mut other] = ["a", "b", "c"].map(session);
    let is_data = |arrival: Arrival<'_>| matches!(arrival, Arrival::Data(_));
    let early = write(&mut near, at(0), &[1; 160]);
    assert!(is_data(far.handle(at(0), &early)) && far.is_peer_there());
    let late = write(&mut near, at(20), &[2; 160]);
    near.leave();
    for packet in control(&mut near, at(20)) {
        far.handle(at(20), &packet);
    }
    assert!(!far.is_peer_there());
    assert!(is_data(far.handle(at(30), &late)), "it was sent before the goodbye");
    assert!(is_data(far.handle(at(40), &write(&mut other, at(40), &[3; 160]))) && far.is_peer_there());
    // The one before comes no more: its packets cannot be told from duplicates.
    assert!([early, late].iter().all(|packet| far.handle(at(50), packet) == Arrival::Dropped));
}

#[test]
fn a_peer_that_begins_anew_without_a_goodbye_proves_itself_first() {
    let [mut near, mut far, mut other] = ["a", "b", "c"].map(session);
    far.handle(at(0), &write(&mut near, at(0), &[1; 160]));
    assert_eq!(far.handle(at(20), &write(&mut other, at(20), &[2; 160])), Arrival::Dropped);
    assert!(matches!(far.handle(at(40), &write(&mut other, at(40), &[3; 160])), Arrival::Data(_)));
    assert_eq!(far.reception().unwrap().ssrc, other.ssrc());
}

#[test]
fn a_silent_peer_is_missed_and_found_again() {
    let [mut near, mut far] = [session("a"), session("b")];
    near.handle(at(0), &write(&mut far, at(0), &[1; 160]));
    let mut millis = 0;
    while near.is_peer_there() {
        write(&mut near, at(millis), &[0; 160]);
        near.handle_timeout(at(millis));
        control(&mut near, at(millis));
        millis += 20;
        assert!(millis < 40_000, "it is never missed");
    }
    assert!(millis >= 25_000, "missed after {millis} ms");
    near.handle(at(millis), &write(&mut far, at(millis), &[1; 160]));
    assert!(near.is_peer_there());
}

#[test]
fn equal_identifiers_are_resolved_and_loops_found() {
    // The same stream: the same identifier, sequence number and timestamp.
    let mut ends = [session("a"), session("a")];
    let common = ends[0].ssrc();
    let packets = [0, 1].map(|side: usize| write(&mut ends[side], at(0), &[side as u8; 160]));
    for side in [0, 1] {
        assert!(matches!(ends[side].handle(at(30), &packets[1 - side]), Arrival::Data(_)));
    }
    // Both have taken another, by chance the same again; their goodbyes name the old one.
    let goodbyes = [0, 1].map(|side: usize| control(&mut ends[side], at(30)));
    for side in [0, 1] {
        assert_eq!(goodbyes[side].len(), 1);
        let last = decode_compound(&goodbyes[side][0]).unwrap().last();
        assert!(matches!(last, Some(RtcpPacket::Bye { sources, .. }) if sources == common.to_be_bytes()));
        assert_ne!(ends[side].ssrc(), common);
        assert_eq!(ends[side].handle(at(60), &goodbyes[1 - side][0]), Arrival::Control);
        assert_eq!((ends[side].counters.collisions, ends[side].counters.byes_received), (1, 1));
    }
    // What an end sends now comes back to it.
    let own = write(&mut ends[0], at(100), &[9; 160]);
    assert_eq!(ends[0].handle(at(120), &own), Arrival::Dropped);
    assert_eq!((ends[0].counters.loops, ends[0].counters.collisions), (1, 1));
}

/// Reports describe the source of packets that the application makes (RFC 3550 section 6.4.1).
#[test]
fn what_another_sends_is_reported() {
    let mut session = session("a");
    for n in 0..3u16 {
        let timestamp = 1000 + 160 * u32::from(n);
        let header = RtpHeader { marker: false, payload_type: 0, sequence: 9 + n, timestamp, ssrc: 77 };
        let mut packet = Vec::new();
        RtpPacket::new(header, &[0; 160]).encode(&mut packet);
        session.observe(at(20 * u64::from(n)), &packet);
    }
    session.observe(at(41), b"nothing");
    let (now, report) = next_report(&mut session);
    let mut parts = decode_compound(&report).unwrap();
    let Some(RtcpPacket::SenderReport { ssrc, info, .. }) = parts.next() else { panic!("{report:?}") };
    assert_eq!((ssrc, info.packets, info.bytes), (77, 3, 480));
    // The last was sent at 40 ms.
    let since = now.since(at(40)).as_nanos() * 8000 / 1_000_000_000;
    assert_eq!(info.rtp, 1000 + 2 * 160 + since as u32);
    // Its own reports, as a group brings them back, change nothing.
    session.handle(now, &report);
    session.leave();
    let bye = control(&mut session, now).pop().unwrap();
    let ends = |part| matches!(part, RtcpPacket::Bye { sources, .. } if *sources == 77u32.to_be_bytes());
    assert!(decode_compound(&bye).unwrap().any(ends));
}

/// RFC 3550 section 6.2: all receivers together have 3.75 % of the bandwidth for their reports. Members that send BYE leave
/// the rest more.
#[test]
fn members_of_a_group_share_the_bandwidth_of_reports() {
    let mut sender = session("sender");
    let mut receiver = RtpSession::new(RtpConfig { is_group: true, ..config("a") }).unwrap();
    let mut now = Time::ZERO;
    // Every second for five minutes, and how many reports of the receiver there were.
    let mut minutes = |receiver: &mut RtpSession, others: u32, leave: bool| {
        let mut count = 0;
        for _ in 0..300 {
            now += Duration::from_secs(1);
            let packet = write(&mut sender, now, &[0; 160]);
            assert!(matches!(receiver.handle(now, &packet), Arrival::Data(_)));
            for ssrc in 1..=others {
                let mut report = Vec::new();
                encode_report(ssrc, None, &[], &mut report);
                encode_cname(ssrc, "member", &mut report);
                if leave {
                    encode_bye(ssrc, "", &mut report);
                }
                receiver.handle(now, &report);
            }
            receiver.handle_timeout(now);
            count += control(receiver, now).len();
        }
        count
    };
    let alone = minutes(&mut receiver, 0, false);
    let among_many = minutes(&mut receiver, 500, false);
    let left = minutes(&mut receiver, 500, true);
    // 5 s apart; with 501 receivers of 56 bytes, 300 bytes/s give 93 s.
    assert!((40..80).contains(&alone), "{alone}");
    assert!((1..8).contains(&among_many), "{among_many}");
    assert!((40..80).contains(&left), "{left}");
    let report = next_report(&mut receiver).1;
    let Some(RtcpPacket::ReceiverReport { blocks, .. }) = decode_compound(&report).unwrap().next() else {
        panic!("{report:?}")
    };
    assert_eq!(blocks.count(), 1, "one block, about the sender");
}
