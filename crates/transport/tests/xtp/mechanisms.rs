//! Each mechanism by itself.

use trunkline_core::{Duration, Ratio, Time};
use trunkline_transport::xtp::wire::{Body, Code, Format, Options, Span};
use trunkline_transport::xtp::{
    Acknowledge, Encapsulation, ErrorControl, FlowControl, Meaning, Open, RateLimit, XtpConfig, XtpEndpoint,
};
use trunkline_transport::{Close, CloseReason, Conversation as _, Endpoint as _, Event, Message, SendError};

use super::wiretap::{Seen, Wiretap, streams};
use trunkline_testkit::pair::{FAR, NEAR};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn config() -> XtpConfig {
    XtpConfig::default()
}

/// Data packets and the control packets that answered them.
fn data_and_control(tap: &Wiretap<XtpEndpoint>) -> (usize, usize) {
    let count =
        |end, formats: &[Format]| tap.from(end).filter(|seen| formats.contains(&seen.format())).count();
    (count(0, &[Format::Data]), count(1, &[Format::Control, Format::ErrorControl]))
}

#[test]
fn every_kth_packet_is_acknowledged() {
    for (every, controls) in [(1, 100), (4, 25), (10, 10)] {
        let config = XtpConfig { acknowledge: Acknowledge::Every(every), ..config() };
        let mut tap = streams(&config, &config);
        for _ in 0..100 {
            tap.send(0, &[7; 80]).unwrap();
            tap.run_for(MS(1));
            tap.read(1);
        }
        tap.run_for(MS(15));
        assert_eq!(data_and_control(&tap), (100, controls), "every {every}");
    }
}

#[test]
fn on_request_means_when_the_user_asks() {
    let config = XtpConfig { acknowledge: Acknowledge::OnRequest, ..config() };
    let mut tap = streams(&config, &config);
    for n in 0..20 {
        let now = tap.now;
        tap.ends[0].send(now, Message::new(&[7; 80])).unwrap();
        if n == 12 {
            tap.ends[0].request_status(now);
        }
        tap.drain(0);
    }
    tap.run_for(MS(20));
    assert_eq!(data_and_control(&tap), (20, 1));
    let asking: Vec<bool> = tap.from(0).map(|seen| seen.has(Options::SREQ)).collect();
    assert_eq!(asking.iter().position(|&asks| asks), Some(12));
    // What is left unacknowledged is asked for when the wait is over.
    tap.run();
    assert_eq!(tap.formats(0).last(), Some(&Format::Control));
    let now = tap.now;
    tap.ends[0].request_status(now);
    tap.drain(0);
    assert_eq!(tap.formats(0).last(), Some(&Format::Control), "with no data waiting, by itself");
}

#[test]
fn never_means_never_except_to_open_and_close() {
    let config = XtpConfig {
        acknowledge: Acknowledge::Never,
        error_control: ErrorControl::None,
        flow_control: FlowControl::None,
        ..config()
    };
    let mut tap = streams(&config, &config);
    for _ in 0..50 {
        tap.send(0, &[7; 80]).unwrap();
    }
    tap.run();
    assert_eq!((tap.from(0).count(), tap.from(1).count()), (50, 0));
    assert!(tap.from(0).all(|seen| seen.has(Options::NOERR.and(Options::NOFLOW))));
    tap.close(0, Close::Graceful);
    tap.run();
    assert_eq!(tap.read(1).len(), 4000);
    assert_eq!(tap.formats(1), [Format::Control]);
    assert_eq!(tap.events(0), [Event::Closed(CloseReason::Local)]);
}

#[test]
fn a_delivery_request_is_answered_when_the_user_has_read() {
    let config = XtpConfig { meaning: Meaning::Delivered, ..config() };
    let mut tap = streams(&config, &config);
    tap.send(0, b"read me").unwrap();
    tap.run_for(MS(12));
    assert!(tap.from(0).all(|seen| seen.has(Options::DREQ) && !seen.has(Options::SREQ)));
    assert_eq!(tap.from(1).count(), 0);
    assert_eq!(tap.read(1), b"read me");
    assert_eq!(tap.formats(1), [Format::Control]);
}

#[test]
fn a_gap_is_reported_at_once_and_only_it_is_sent_again() {
    let config = XtpConfig { acknowledge: Acknowledge::Every(100), ..config() };
    let mut tap = streams(&config, &config);
    let mut left = 2;
    tap.lose(move |packet, _| {
        let lost = matches!(packet.header.seq, 200 | 300) && left > 0;
        left -= i32::from(lost);
        lost
    });
    for _ in 0..10 {
        tap.send(0, &[1; 100]).unwrap();
    }
    tap.run_for(MS(40));
    let reports: Vec<&Seen> = tap.from(1).collect();
    assert_eq!(reports[0].format(), Format::ErrorControl, "nobody asked for it");
    assert_eq!(reports[0].spans(), [Span { left: 400, right: 500 }]);
    assert_eq!(reports.len(), 2, "the gap once, and the repair's acknowledgement");
    let again: Vec<_> = tap.from(0).skip(10).map(|seen| seen.data().unwrap()).collect();
    assert_eq!(again, [(200, 300), (300, 400)]);
    assert_eq!(tap.read(1), [1; 1000]);
    assert_eq!((tap.counter(0, "retransmissions"), tap.counter(1, "duplicates")), (2, 0));
}

#[test]
fn without_fastnak_a_gap_waits_for_a_request() {
    let config = XtpConfig { acknowledge: Acknowledge::Every(100), fast_nak: false, ..config() };
    let mut tap = streams(&config, &config);
    tap.lose(|packet, _| packet.header.seq == 200 && packet.header.sync < 2);
    for _ in 0..10 {
        tap.send(0, &[1; 100]).unwrap();
    }
    tap.run_for(MS(20));
    assert_eq!(tap.from(1).count(), 0);
    tap.run();
    assert_eq!(tap.read(1), [1; 1000]);
}

#[test]
fn a_lost_repair_is_repaired() {
    for acknowledge in [Acknowledge::Every(1), Acknowledge::Every(3), Acknowledge::OnRequest] {
        let config = XtpConfig { acknowledge, ..config() };
        let mut tap = streams(&config, &config);
        let mut left = 4;
        tap.lose(move |packet, _| {
            let lost = packet.header.seq == 200 && matches!(packet.body, Body::Data { .. }) && left > 0;
            left -= i32::from(lost);
            lost
        });
        for _ in 0..10 {
            tap.send(0, &[1; 100]).unwrap();
        }
        tap.run();
        assert_eq!(tap.read(1), [1; 1000]);
        let others = tap.from(0).filter(|seen| seen.data().is_some_and(|(start, _)| start != 200)).count();
        assert_eq!(others, 9, "{acknowledge:?}: nothing but the gap was sent again");
    }
}

#[test]
fn what_gathered_leaves_together_in_whole_messages() {
    let mut tap = streams(&config(), &config());
    let message = [3; 300];
    tap.send_together(0, &[&message[..]; 6]);
    let sizes: Vec<_> = tap.from(0).map(|seen| seen.data().unwrap().1 - seen.data().unwrap().0).collect();
    assert_eq!(sizes, [1200, 600], "as many whole messages as fit into 1448 bytes");
    assert!(tap.from(0).all(|seen| seen.has(Options::EOM)));
    tap.seen.clear();
    tap.send(0, &[4; 3000]).unwrap();
    let sizes: Vec<_> = tap.from(0).map(|seen| seen.data().unwrap().1 - seen.data().unwrap().0).collect();
    assert_eq!(sizes, [1448, 1448, 104]);
    let ends: Vec<bool> = tap.from(0).map(|seen| seen.has(Options::EOM)).collect();
    assert_eq!(ends, [false, false, true]);
}

#[test]
fn nothing_is_sent_beyond_the_allocation() {
    let far = XtpConfig { receive_buffer: 5000, ..config() };
    let mut tap = streams(&config(), &far);
    tap.send(0, &[1; 50_000]).unwrap();
    let mut read = 0;
    let mut alloc = 5000;
    while read < 50_000 {
        tap.run_for(MS(50));
        read += tap.read(1).len() as u64;
        for seen in core::mem::take(&mut tap.seen) {
            match seen.packet().body {
                Body::Control(control) if seen.from == FAR => alloc = control.alloc,
                Body::Data { .. } => {
                    assert!(seen.data().unwrap().1 <= alloc, "{} of {alloc}", seen.data().unwrap().1)
                }
                _ => {}
            }
        }
        assert!(alloc <= read + 5000);
    }
}

#[test]
fn a_reservation_allocates_what_the_user_asks_for() {
    let near = XtpConfig { flow_control: FlowControl::Reserved, ..config() };
    let far = XtpConfig { receive_buffer: 10_000, ..config() };
    let mut tap = streams(&near, &far);
    tap.send(0, &[1; 15_000]).unwrap();
    tap.run_for(MS(200));
    assert!(tap.from(0).all(|seen| seen.data().is_none() || seen.has(Options::RES)));
    assert_eq!(tap.read(1).len(), 10_000, "at first what the buffer holds");
    tap.run_for(MS(200));
    assert_eq!(tap.read(1).len(), 5000, "then as much as was read");
}

#[test]
fn the_rate_is_never_exceeded() {
    let limit = RateLimit { rate: 100_000, burst: 1000 };
    for (near, far) in [
        (XtpConfig { send_rate: Some(limit), ..config() }, config()),
        // The receiver's wish, by negotiation.
        (config(), XtpConfig { receive_rate: Some(limit), ..config() }),
    ] {
        let mut tap = streams(&near, &far);
        tap.send(0, &[1; 20_000]).unwrap();
        let started = tap.now;
        while tap.read(1).len() < usize::MAX && tap.step(Time::MAX) {}
        let sent: Vec<_> =
            tap.from(0).filter_map(|seen| seen.data().map(|(from, to)| (seen.at, to - from))).collect();
        let period = MS(10);
        for &(at, _) in &sent {
            let burst: u64 = sent
                .iter()
                .filter(|(other, _)| *other >= at && *other < at + period)
                .map(|(_, size)| size)
                .sum();
            assert!(burst <= 1000, "{burst} bytes within 10 ms");
        }
        let last = sent.last().unwrap().0;
        assert!(last.since(started) <= MS(200) && sent.iter().map(|(_, size)| size).sum::<u64>() == 20_000);
    }
}

#[test]
fn both_ends_agree_on_the_smaller_packet() {
    let tap = streams(&config(), &XtpConfig { max_packet: 600, ..config() });
    assert_eq!([tap.ends[0].max_data(), tap.ends[1].max_data()], [568, 568]);
}

#[test]
fn an_implicit_opening_carries_data_in_its_first_packet() {
    let config = XtpConfig { open: Open::Implicit, ..config() };
    let near = XtpEndpoint::connect(NEAR, FAR, &config, 1).unwrap();
    let far = XtpEndpoint::listen(FAR, &config, 2).unwrap();
    let mut tap = Wiretap::new(near, far);
    assert_eq!(tap.from(0).count(), 0);
    let mut left = 1;
    tap.lose(move |packet, _| core::mem::take(&mut left) == 1 && matches!(packet.body, Body::First { .. }));
    tap.send(0, b"question").unwrap();
    tap.close(0, Close::Graceful);
    tap.run();
    assert_eq!(tap.read(1), b"question");
    assert_eq!(tap.events(1), [Event::Connected, Event::Readable, Event::Closed(CloseReason::Peer)]);
    tap.send(1, b"answer").unwrap();
    tap.close(1, Close::Graceful);
    tap.run();
    assert_eq!(tap.read(0), b"answer");
    let events = [Event::Connected, Event::Closed(CloseReason::Local), Event::Readable];
    assert_eq!(tap.events(0), events);
    // FIRST was lost and repeated; after its answer both directions close with the packets that carry the data.
    let last = tap.seen.last().unwrap();
    assert!(last.from == NEAR && last.has(Options::END.and(Options::RCLOSE).and(Options::WCLOSE)));
    assert!(tap.seen.len() <= 9, "{} packets", tap.seen.len());
}

#[test]
fn an_unreliable_stream_goes_on_past_losses() {
    let config = XtpConfig { error_control: ErrorControl::None, ..config() };
    let mut tap = streams(&config, &config);
    tap.lose(|packet, from| from == NEAR && packet.header.seq % 300 == 200);
    let mut sent = 0;
    for n in 0..9u8 {
        tap.send(0, &[n; 100]).unwrap();
        sent += 1;
    }
    tap.run();
    let read = tap.read(1);
    assert_eq!(read.chunks(100).map(|message| message[0]).collect::<Vec<_>>(), [0, 1, 3, 4, 6, 7]);
    assert_eq!(data_and_control(&tap).0, sent, "nothing was sent again");
    assert_eq!(tap.counter(1, "bytes-lost"), 200, "and the last is not known to be lost yet");
}

#[test]
fn an_unreliable_stream_does_not_wait_for_lost_acknowledgements() {
    let config = XtpConfig { error_control: ErrorControl::None, ..config() };
    let mut tap = streams(&config, &config);
    tap.lose(|_, from| from == FAR);
    for _ in 0..50 {
        tap.send(0, &[7; 160]).unwrap();
        tap.run_for(MS(20));
    }
    assert_eq!(tap.read(1).len(), 50 * 160);
    let data: Vec<Time> = tap.from(0).filter(|seen| seen.data().is_some()).map(|seen| seen.at).collect();
    assert!(data.windows(2).all(|pair| pair[1].since(pair[0]) == MS(20)));
}

#[test]
fn sort_stands_in_every_packet() {
    let config = XtpConfig { sort: Some(9), ..config() };
    let mut tap = streams(&config, &config);
    tap.send(0, b"urgent").unwrap();
    tap.run();
    tap.ends[0].set_sort(Some(4));
    tap.send(0, b"more urgent").unwrap();
    let sorts: Vec<u16> = tap.seen.iter().map(|seen| seen.packet().header.sort).collect();
    assert_eq!(sorts, [9, 9, 4]);
    assert!(tap.seen.iter().all(|seen| seen.has(Options::SORT)));
}

#[test]
fn nocheck_leaves_data_unchecked() {
    let config = XtpConfig { checksum: false, ..config() };
    let mut tap = streams(&config, &config);
    tap.send(0, b"data").unwrap();
    let seen = &tap.seen[0];
    assert!(seen.has(Options::NOCHECK));
    let mut bytes = seen.bytes.clone();
    *bytes.last_mut().unwrap() = b'X';
    let damaged = Seen { bytes, ..seen.clone() };
    assert_eq!(damaged.data(), Some((0, 4)), "still a packet");
}

#[test]
fn unanswered_requests_are_repeated_with_growing_waits_and_then_given_up() {
    let config = XtpConfig { patience: Some(Duration::from_secs(10)), ..config() };
    let mut tap = streams(&config, &config);
    tap.send(0, b"learns the round trip").unwrap();
    tap.run();
    tap.lose(|_, _| true);
    tap.seen.clear();
    let started = tap.now;
    tap.send(0, b"lost").unwrap();
    tap.send(0, b"lost").unwrap();
    tap.run_for(MS(1000));
    tap.send(0, b"waits: no new data before an answer").unwrap();
    tap.run();
    let requests: Vec<Duration> = tap.from(0).skip(2).map(|seen| seen.at.since(started)).collect();
    assert!(tap.from(0).skip(2).all(|seen| seen.data().is_none()));
    let gaps: Vec<u64> = requests.windows(2).map(|w| (w[1] - w[0]).as_nanos()).collect();
    assert!(gaps.len() >= 5, "{requests:?}");
    for pair in gaps[..gaps.len() - 1].windows(2) {
        assert_eq!(pair[1], 2 * pair[0], "{requests:?}");
    }
    let last = tap.seen.last().unwrap();
    assert!(matches!(last.packet().body, Body::Diagnostic { code: Code::CONTEXT_ABANDONED, .. }));
    assert_eq!(last.at.since(started), Duration::from_secs(10));
    let reason = CloseReason::TimedOut(Duration::from_secs(10));
    assert_eq!(tap.events(0), [Event::Closed(reason)]);
    assert_eq!(tap.send(0, b"?"), Err(SendError::Closed(reason)));
}

#[test]
fn an_idle_peer_is_asked_whether_it_lives() {
    let config = XtpConfig {
        keep_alive: Some(Duration::from_secs(5)),
        patience: Some(Duration::from_secs(7)),
        ..config()
    };
    let mut tap = streams(&config, &XtpConfig::default());
    tap.run_for(Duration::from_secs(21));
    let asked: Vec<Time> = tap.from(0).map(|seen| seen.at).collect();
    assert_eq!(asked.len(), 4);
    // Each time so long after the last sign of life, which came a round trip after the question.
    assert!(asked.windows(2).all(|pair| pair[1].since(pair[0]) == Duration::from_secs(5) + MS(20)));
    assert_eq!(tap.from(1).count(), 4);
    tap.lose(|_, _| true);
    tap.run();
    assert_eq!(tap.events(0), [Event::Closed(CloseReason::TimedOut(Duration::from_secs(7)))]);
}

#[test]
fn late_packets_of_a_finished_stream_are_answered() {
    let mut tap = streams(&config(), &config());
    tap.send(0, b"bye").unwrap();
    tap.close(0, Close::Graceful);
    tap.run();
    tap.read(1);
    // The last confirmation is lost: the peer asks again, and is told by whoever has finished.
    let mut left = 1;
    tap.lose(move |packet, _| packet.header.options.has(Options::END) && core::mem::take(&mut left) == 1);
    tap.close(1, Close::Graceful);
    tap.run();
    assert_eq!(tap.seen.iter().filter(|seen| seen.lost).count(), 1);
    assert_eq!(tap.from(0).filter(|seen| seen.has(Options::END)).count(), 2);
    assert_eq!(tap.events(0).last(), Some(&Event::Closed(CloseReason::Local)));
    assert_eq!(tap.events(1).last(), Some(&Event::Closed(CloseReason::Peer)));
}

#[test]
fn what_cannot_be_is_refused() {
    let never = XtpConfig { acknowledge: Acknowledge::Never, ..config() };
    let refusals = [
        XtpConfig { max_packet: 100, ..config() },
        XtpConfig { acknowledge: Acknowledge::Every(0), ..config() },
        XtpConfig { send_rate: Some(RateLimit { rate: 0, burst: 10 }), ..config() },
        XtpConfig { min_wait: Duration::ZERO, ..config() },
        never,
    ]
    .map(|config| XtpEndpoint::connect(NEAR, FAR, &config, 1).unwrap_err().to_string());
    for (found, expected) in refusals.iter().zip([
        "XTP's largest packet is 100 bytes; expected 128 to 65507",
        "every 0th packet",
        "sending rate limit allows no packets",
        "least wait is zero",
        "without acknowledgements",
    ]) {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn the_size_of_a_packet_counts_what_carries_it() {
    for (encapsulation, headers) in [(Encapsulation::Ip, 20), (Encapsulation::Udp, 28)] {
        let mut near = XtpEndpoint::connect(NEAR, FAR, &XtpConfig { encapsulation, ..config() }, 1).unwrap();
        let mut packet = Vec::new();
        let transmit = near.poll_transmit(Time::ZERO, &mut packet).unwrap();
        assert_eq!(packet.len(), 32 + 16 + 24, "header, addresses, traffic");
        assert_eq!(transmit.size.count(), 72 + headers);
    }
}

#[test]
fn what_is_withheld_is_delivered_at_once_and_repeated() {
    let withholding = XtpConfig { withhold: Ratio::new(0.2).unwrap(), ..config() };
    let mut tap = streams(&config(), &withholding);
    let mut delivered = 0;
    for _ in 0..500 {
        tap.send(0, &[7; 80]).unwrap();
        tap.run_for(MS(30));
        delivered += tap.read(1).len();
        assert_eq!(delivered % 80, 0);
    }
    assert_eq!(delivered, 500 * 80, "each at once and once only");
    tap.run();
    let again = tap.counter(0, "retransmissions");
    assert!((70..130).contains(&again), "{again} of 500 packets were repeated; expected a fifth");
    assert_eq!(tap.counter(1, "duplicates"), again);
}

#[test]
fn a_sender_that_seldom_asks_does_not_wait_for_a_window_that_is_open() {
    let config = XtpConfig { acknowledge: Acknowledge::Every(1000), receive_buffer: 2000, ..config() };
    let mut tap = streams(&config, &config);
    for n in 0..100 {
        tap.send(0, &[7; 160]).unwrap();
        tap.run_for(MS(40));
        assert_eq!(tap.read(1).len(), 160, "message {n} within a round trip or two, as the reader keeps up");
    }
    assert!(tap.from(1).count() < 25, "{} reports", tap.from(1).count());
}
