//! How connections begin and end.

use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::*;

#[test]
fn a_connection_begins_with_three_segments() {
    let mut tap = Tap::new(ends(&plain()), MS * 5);
    tap.run_for(SECOND);
    let seen: Vec<_> = tap.seen.iter().map(|seen| (seen.at, seen.header.flags, seen.header.mss)).collect();
    assert_eq!(
        seen,
        [(Duration::ZERO, SYN, Some(1000)), (MS * 5, SYN | ACK, Some(1000)), (MS * 10, ACK, None)]
    );
    assert!(tap.seen.iter().all(|seen| seen.header.window == 65_535));
}

#[test]
fn numbers_may_wrap() {
    for initial in [u32::MAX - 20_000, u32::MAX, i32::MAX as u32 - 10_000] {
        let mut both = ends(&plain());
        for end in &mut both {
            end.sender = Sender::new(&plain(), initial);
        }
        let mut tap = Tap::new(both, MS * 5);
        tap.run_for(SECOND);
        let mut data = 0;
        tap.lose = Box::new(move |seen| {
            data += usize::from(seen.length > 0);
            seen.length > 0 && data % 13 == 0
        });
        for side in [0, 1] {
            tap.send(side, 60_000).unwrap();
        }
        tap.run_for(SECOND * 100);
        assert_eq!(tap.received.each_ref().map(Vec::len), [60_000; 2]);
    }
}

#[test]
fn both_may_connect_at_once() {
    let ends = [(0, 1), (1, 0)]
        .map(|(own, other)| TcpEndpoint::connect(ENDS[own], ENDS[other], &plain(), own as u64).unwrap());
    let mut tap = Tap::new(ends, MS * 5);
    tap.run_for(SECOND);
    assert_eq!(tap.events, [[Event::Connected], [Event::Connected]]);
    let flags: Vec<_> = tap.seen.iter().map(|seen| seen.header.flags).collect();
    assert_eq!(flags[..4], [SYN, SYN, SYN | ACK, SYN | ACK]);
    tap.send(1, 5000).unwrap();
    tap.run_for(SECOND);
    assert_eq!(tap.received[0].len(), 5000);
}

#[test]
fn each_direction_ends_by_itself() {
    let mut tap = Tap::connected(&plain(), MS * 5);
    tap.send(0, 1500).unwrap();
    tap.close(0, Close::Graceful);
    tap.run_for(SECOND);
    let flags: Vec<_> = tap.seen.iter().filter(|seen| seen.from == 0).map(|seen| seen.header.flags).collect();
    assert_eq!(flags, [ACK, ACK | PSH | FIN]);
    assert_eq!(
        tap.events,
        [
            vec![Event::Closed(CloseReason::Local)],
            vec![Event::Readable, Event::Readable, Event::Closed(CloseReason::Peer)]
        ]
    );
    tap.send(1, 3000).unwrap();
    tap.close(1, Close::Graceful);
    tap.run_for(SECOND);
    assert_eq!(tap.received[0].len(), 3000);
    assert_eq!([tap.ends[0].state, tap.ends[1].state], [State::TimeWait, State::Closed]);
    tap.run_for(SECOND * 60);
    assert_eq!(tap.ends[0].state, State::Closed);
}

#[test]
fn both_may_close_at_once() {
    let mut tap = Tap::connected(&plain(), MS * 5);
    for side in [0, 1] {
        tap.close(side, Close::Graceful);
    }
    tap.run_for(SECOND);
    assert_eq!(tap.events, [[Event::Closed(CloseReason::Local)], [Event::Closed(CloseReason::Local)]]);
    assert_eq!([tap.ends[0].state, tap.ends[1].state], [State::TimeWait; 2]);
}

#[test]
fn a_lost_last_acknowledgement_is_given_again() {
    let mut tap = Tap::connected(&plain(), MS * 5);
    tap.close(0, Close::Graceful);
    tap.run_for(MS * 20);
    tap.lose = Box::new(|seen| seen.from == 0 && seen.at < MS * 100);
    tap.close(1, Close::Graceful);
    tap.run_for(SECOND * 50);
    assert_eq!([tap.ends[0].state, tap.ends[1].state], [State::TimeWait, State::Closed]);
    assert_eq!(tap.count(1, "timeouts"), 1);
}

#[test]
fn a_reset_ends_a_connection_only_from_within_the_window() {
    let mut tap = Tap::connected(&plain(), MS * 5);
    let expected = tap.ends[1].receiver.acknowledgement();
    for (sequence, ends) in [
        (expected.wrapping_sub(1), false),
        (expected.wrapping_add(70_000), false),
        (expected.wrapping_add(9), true),
    ] {
        let mut packet = Vec::new();
        Header { sequence, flags: RST, ..Header::default() }.write(ENDS[0], ENDS[1], [&[]; 2], &mut packet);
        tap.ends[1].handle_packet(tap.now, ENDS[0], Ecn::NotCapable, &packet);
        tap.drain(1);
        assert_eq!(tap.events[1], if ends { vec![Event::Closed(CloseReason::Reset)] } else { vec![] });
    }
    // Who goes on talking to it learns of it.
    tap.send(0, 100).unwrap();
    tap.run_for(SECOND);
    assert_eq!(tap.events[0], [Event::Closed(CloseReason::Reset)]);
    assert_eq!(tap.send(0, 100), Err(SendError::Closed(CloseReason::Reset)));
}

#[test]
fn who_disagree_do_not_answer_each_other_for_ever() {
    let mut tap = Tap::connected(&plain(), MS * 5);
    for (side, from) in [(0, ENDS[1]), (1, ENDS[0])] {
        let end = &mut tap.ends[side];
        let (sequence, acknowledgement) = (end.receiver.acknowledgement(), end.sender.sequence());
        let mut packet = Vec::new();
        let forged = Header { sequence, acknowledgement, flags: ACK, window: 1000, ..Header::default() };
        forged.write(from, ENDS[side], [&[7; 50], &[]], &mut packet);
        end.handle_packet(tap.now, from, Ecn::NotCapable, &packet);
        tap.drain(side);
    }
    tap.run_for(SECOND * 10);
    assert_eq!(tap.seen.len(), 2);
}

#[test]
fn a_request_that_nobody_waits_for_is_refused() {
    let [near, mut far] = ends(&plain());
    far.close(Time::ZERO, Close::Graceful);
    let mut tap = Tap::new([near, far], MS * 5);
    tap.run_for(SECOND);
    assert_eq!(tap.events, [[Event::Closed(CloseReason::Reset)], [Event::Closed(CloseReason::Local)]]);
}

#[test]
fn who_listens_goes_on_after_a_request_that_was_taken_back() {
    let [mut near, far] = ends(&plain());
    let mut packet = Vec::new();
    near.poll_transmit(Time::ZERO, &mut packet).unwrap();
    let mut tap = Tap::new([near, far], MS * 5);
    tap.ends[1].handle_packet(Time::ZERO, ENDS[0], Ecn::NotCapable, &packet);
    tap.drain(1);
    assert_eq!(tap.ends[1].state, State::SynReceived);
    tap.close(0, Close::Abort);
    tap.flying.clear();
    let sequence = tap.ends[1].receiver.acknowledgement();
    Header { sequence, flags: RST, ..Header::default() }.write(ENDS[0], ENDS[1], [&[]; 2], &mut packet);
    tap.ends[1].handle_packet(Time::ZERO, ENDS[0], Ecn::NotCapable, &packet);
    tap.drain(1);
    tap.ends[0] = TcpEndpoint::connect(ENDS[0], ENDS[1], &plain(), 5).unwrap();
    tap.drain(0);
    tap.run_for(SECOND);
    assert_eq!(tap.events[1], [Event::Connected]);
}

#[test]
fn values_out_of_range_are_refused() {
    let refused =
        |config: TcpConfig| TcpEndpoint::listen(ENDS[1], &config, 1).err().map(|error| error.to_string());
    let expected = "classic TCP's window is 65537 bytes; expected 1 to 65536".to_owned();
    assert_eq!(refused(TcpConfig { window: 65_537, ..plain() }), Some(expected));
    let timer = TimerConfig { min: SECOND * 2, max: SECOND, ..TimerConfig::default() };
    for config in [
        TcpConfig { mss: 47, ..plain() },
        TcpConfig { ack_every: 0, ..plain() },
        TcpConfig { initial_window: 0, ..plain() },
        TcpConfig { delayed_ack: SECOND, ..plain() },
        TcpConfig { timer, ..plain() },
    ] {
        assert!(refused(config).is_some());
    }
    assert_eq!(refused(plain()), None);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn no_segments_make_an_end_panic_or_break_the_contract(data in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz_tcp(&data);
    }
}
