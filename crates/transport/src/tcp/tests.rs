use std::collections::BTreeMap;

use super::receiver::Text;
use super::wire::{ACK, FIN, PSH, RST, SYN};
use super::*;

const ENDS: [Address; 2] = [Address { host: 0, port: 40_001 }, Address { host: 1, port: 7_001 }];
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A segment on the path.
#[derive(Clone, Debug)]
struct Seen {
    at: Duration,
    from: usize,
    header: Header,
    length: usize,
}

/// Two ends, a path with a delay, and a record of everything that was on it.
struct Tap {
    ends: [TcpEndpoint; 2],
    now: Time,
    /// From when `Seen::at` counts.
    start: Time,
    latency: Duration,
    seen: Vec<Seen>,
    lose: Box<dyn FnMut(&Seen) -> bool>,
    /// Whether an end reads what arrives.
    reads: [bool; 2],
    received: [Vec<u8>; 2],
    events: [Vec<Event>; 2],
    flying: BTreeMap<(Time, usize), (usize, Vec<u8>)>,
    count: usize,
}

impl Tap {
    fn new(ends: [TcpEndpoint; 2], latency: Duration) -> Tap {
        let mut tap = Tap {
            ends,
            now: Time::ZERO,
            start: Time::ZERO,
            latency,
            seen: Vec::new(),
            lose: Box::new(|_| false),
            reads: [true; 2],
            received: Default::default(),
            events: Default::default(),
            flying: BTreeMap::new(),
            count: 0,
        };
        tap.drain(0);
        tap.drain(1);
        tap
    }

    /// Two ends with these options that have connected; what that took is forgotten.
    fn connected(config: &TcpConfig, latency: Duration) -> Tap {
        let mut tap = Tap::new(ends(config), latency);
        tap.run_for(latency * 4);
        assert_eq!(tap.events, [[Event::Connected], [Event::Connected]]);
        tap.restart();
        tap
    }

    /// Forgets what was seen.
    fn restart(&mut self) {
        self.seen.clear();
        self.events = Default::default();
        self.start = self.now;
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
            let timers = self.ends.each_ref().map(Endpoint::next_timeout);
            let Some(at) =
                [arrival, timers[0], timers[1]].into_iter().flatten().min().filter(|at| *at <= end)
            else {
                break;
            };
            self.now = at;
            if arrival == Some(at) {
                let Some((_, (to, packet))) = self.flying.pop_first() else { unreachable!("it is there") };
                self.ends[to].handle_packet(at, ENDS[1 - to], Ecn::NotCapable, &packet);
                self.drain(to);
            } else {
                let side = usize::from(timers[0] != Some(at));
                self.ends[side].handle_timeout(at);
                self.drain(side);
            }
        }
        self.now = end;
    }

    fn send(&mut self, side: usize, length: usize) -> Result<(), SendError> {
        let sent = self.ends[side].send(self.now, Message::new(&vec![7; length]));
        self.drain(side);
        sent
    }

    fn close(&mut self, side: usize, how: Close) {
        self.ends[side].close(self.now, how);
        self.drain(side);
    }

    /// Reads, whether or not the end does so by itself.
    fn read(&mut self, side: usize) -> usize {
        let before = self.received[side].len();
        while self.ends[side].receive(&mut self.received[side]).is_some() {
            self.transmit(side);
        }
        self.received[side].len() - before
    }

    fn drain(&mut self, side: usize) {
        self.transmit(side);
        if self.reads[side] {
            self.read(side);
        }
        while let Some(event) = self.ends[side].poll_event() {
            self.events[side].push(event);
        }
        assert!(self.ends[side].next_timeout().is_none_or(|next| next > self.now));
    }

    fn transmit(&mut self, side: usize) {
        let mut packet = Vec::new();
        while let Some(transmit) = self.ends[side].poll_transmit(self.now, &mut packet) {
            assert_eq!(transmit.size, Bytes(packet.len() as u64 + 20));
            let (header, data) = Header::verify(ENDS[side], transmit.to, &packet).expect("it is well-formed");
            let seen = Seen { at: self.now.since(self.start), from: side, header, length: data.len() };
            if !(self.lose)(&seen) {
                self.count += 1;
                self.flying.insert((self.now + self.latency, self.count), (1 - side, packet.clone()));
            }
            self.seen.push(seen);
        }
    }

    /// When one end sent data, and how much.
    fn data(&self, from: usize) -> Vec<(Duration, usize)> {
        self.seen
            .iter()
            .filter(|seen| seen.from == from && seen.length > 0)
            .map(|seen| (seen.at, seen.length))
            .collect()
    }

    /// When one end sent nothing but an acknowledgement.
    fn acknowledgements(&self, from: usize) -> Vec<Duration> {
        let of =
            self.seen.iter().filter(|seen| seen.from == from && seen.length == 0 && seen.header.flags == ACK);
        of.map(|seen| seen.at).collect()
    }

    fn count(&self, side: usize, name: &str) -> u64 {
        let mut value = None;
        self.ends[side].counters(&mut |counter, count| {
            if counter == name {
                value = Some(count);
            }
        });
        value.expect("there is such a counter")
    }
}

fn ends(config: &TcpConfig) -> [TcpEndpoint; 2] {
    [TcpEndpoint::connect(ENDS[0], ENDS[1], config, 1), TcpEndpoint::listen(ENDS[1], config, 2)]
        .map(Result::unwrap)
}

/// Segments of 1000 bytes, each acknowledged at once.
fn plain() -> TcpConfig {
    TcpConfig { mss: 1000, delayed_ack: Duration::ZERO, ..TcpConfig::default() }
}

/// Segments as on FDDI, acknowledgements that wait for 50 ms.
fn fddi() -> TcpConfig {
    TcpConfig { mss: 4312, delayed_ack: MS * 50, initial_window: 10, ..TcpConfig::default() }
}

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
fn slow_start_doubles_what_is_sent_in_every_round_trip() {
    for initial_window in [1, 3] {
        let mut tap = Tap::connected(&TcpConfig { initial_window, ..plain() }, MS * 50);
        tap.send(0, 60_000).unwrap();
        tap.run_for(SECOND);
        let mut bursts = BTreeMap::new();
        for (at, length) in tap.data(0) {
            assert_eq!(length, 1000);
            *bursts.entry(at).or_insert(0u32) += 1;
        }
        let (mut left, mut burst, mut expected) = (60, initial_window, BTreeMap::new());
        while left > 0 {
            expected.insert(MS * 100 * expected.len() as u64, burst.min(left));
            (left, burst) = (left - burst.min(left), burst * 2);
        }
        assert_eq!(bursts, expected);
    }
}

#[test]
fn the_segment_that_empties_the_buffer_is_pushed_and_no_other() {
    let mut tap = Tap::connected(&TcpConfig { initial_window: 10, ..plain() }, MS);
    tap.send(0, 2500).unwrap();
    tap.run_for(SECOND);
    let flags: Vec<_> = tap.seen.iter().filter(|seen| seen.from == 0).map(|seen| seen.header.flags).collect();
    assert_eq!(flags, [ACK, ACK, ACK | PSH]);
}

#[test]
fn an_acknowledgement_waits_from_the_first_of_two_segments_on() {
    let mut tap = Tap::connected(&TcpConfig { window: 32 << 10, ..fddi() }, MS * 5);
    tap.send(0, 4096).unwrap();
    tap.run_for(MS * 20);
    tap.send(0, 4096).unwrap();
    tap.run_for(SECOND);
    assert_eq!(tap.data(0), [(Duration::ZERO, 4096), (MS * 20, 4096)]);
    assert_eq!(tap.acknowledgements(1), [MS * 55]);
    assert_eq!(tap.count(1, "acknowledgements-sent"), 1);
}

#[test]
fn two_full_segments_are_acknowledged_at_once() {
    let mut tap = Tap::connected(&fddi(), MS * 5);
    tap.send(0, 3 * 4312).unwrap();
    tap.run_for(SECOND);
    assert_eq!(tap.acknowledgements(1), [MS * 5, MS * 55]);
}

#[test]
fn what_is_not_pushed_is_acknowledged_at_once_if_so_chosen() {
    let config = TcpConfig { ack_unpushed: true, ack_every: 1000, ..fddi() };
    let mut tap = Tap::connected(&config, MS * 5);
    tap.send(0, 5000).unwrap();
    tap.run_for(SECOND);
    assert_eq!(tap.data(0), [(Duration::ZERO, 4312), (Duration::ZERO, 688)]);
    assert_eq!(tap.acknowledgements(1), [MS * 5, MS * 55]);
}

#[test]
fn an_acknowledgement_goes_with_data() {
    let mut tap = Tap::connected(&fddi(), MS * 5);
    tap.send(0, 100).unwrap();
    tap.run_for(MS * 30);
    tap.send(1, 100).unwrap();
    tap.run_for(MS * 30);
    assert_eq!((tap.acknowledgements(1), tap.count(0, "retransmitted-segments")), (vec![], 0));
}

#[test]
fn what_a_reader_takes_at_once_is_acknowledged_with_the_whole_window() {
    let mut tap = Tap::connected(&plain(), MS);
    tap.send(0, 1000).unwrap();
    tap.run_for(SECOND);
    let acknowledgements: Vec<_> =
        tap.seen.iter().filter(|seen| seen.from == 1).map(|seen| seen.header.window).collect();
    assert_eq!(acknowledgements, [65_535]);
    // Who reads later has it announced later.
    tap.reads[1] = false;
    tap.restart();
    tap.send(0, 1000).unwrap();
    tap.run_for(SECOND);
    assert_eq!(tap.seen[1].header.window, 64_535);
    assert_eq!(tap.seen[1].at, MS + Duration::from_nanos(1));
}

/// When data is sent that never arrives.
fn attempts(config: &TcpConfig) -> Vec<u64> {
    let mut tap = Tap::connected(config, MS * 50);
    tap.lose = Box::new(|_| true);
    tap.send(0, 100).unwrap();
    tap.run_for(SECOND * 290);
    let seconds = |at: Duration| {
        assert_eq!(at.as_nanos() % 1_000_000_000, 0);
        at.as_nanos() / 1_000_000_000
    };
    tap.data(0).into_iter().map(|(at, _)| seconds(at)).collect()
}

#[test]
fn the_timeout_doubles_up_to_its_most() {
    assert_eq!(attempts(&plain()), [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    let timer = TimerConfig { min: SECOND * 2, max: SECOND * 20, ..TimerConfig::default() };
    assert_eq!(attempts(&TcpConfig { timer, ..plain() })[..6], [0, 2, 6, 14, 30, 50]);
}

#[test]
fn a_request_is_repeated_until_it_is_answered() {
    let mut tap = Tap::new(ends(&plain()), MS);
    tap.flying.clear();
    tap.lose = Box::new(|seen| seen.at < SECOND * 20);
    tap.run_for(SECOND * 60);
    let requests: Vec<_> =
        tap.seen.iter().filter(|seen| seen.header.flags == SYN).map(|seen| seen.at).collect();
    assert_eq!(requests, [0, 3, 9, 21].map(Duration::from_secs));
    assert_eq!(tap.events, [[Event::Connected], [Event::Connected]]);
    tap.restart();
    tap.send(0, 60_000).unwrap();
    assert_eq!(tap.data(0).len(), 1, "a request that was lost makes the first window one segment");
}

/// Timeouts of a sender whose round trip grows from 100 ms to 3 s, for each of so many messages.
fn spurious(keep_backoff: bool) -> Vec<u64> {
    let timer = TimerConfig { keep_backoff, ..TimerConfig::default() };
    let mut tap = Tap::connected(&TcpConfig { timer, ..plain() }, MS * 50);
    for _ in 0..10 {
        tap.send(0, 100).unwrap();
        tap.run_for(SECOND);
    }
    assert_eq!(tap.count(0, "timeouts"), 0);
    tap.latency = MS * 1500;
    let mut timeouts = Vec::new();
    for _ in 0..8 {
        let before = tap.count(0, "timeouts");
        tap.send(0, 100).unwrap();
        tap.run_for(SECOND * 20);
        timeouts.push(tap.count(0, "timeouts") - before);
    }
    assert_eq!(tap.received[1].len(), 18 * 100);
    assert_eq!(tap.count(0, "retransmitted-segments"), timeouts.iter().sum());
    assert_eq!(tap.count(1, "duplicate-segments-received"), timeouts.iter().sum());
    timeouts
}

#[test]
fn a_timeout_that_was_too_short_adapts_only_if_it_is_kept() {
    // Sent at 0 s and 1 s, and at 3 s the acknowledgement and the timer come at once; that of the second is no measurement
    // either. What is sent once under the doubled timer is one.
    assert_eq!(spurious(true), [1, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(spurious(false), [1; 8]);
}

#[test]
fn a_lost_segment_is_repeated_at_the_third_duplicate() {
    let mut tap = Tap::connected(&TcpConfig { initial_window: 8, ..plain() }, MS * 50);
    let mut data = 0;
    tap.lose = Box::new(move |seen| {
        data += usize::from(seen.length > 0);
        seen.length > 0 && data == 3
    });
    tap.send(0, 20_000).unwrap();
    tap.run_for(SECOND * 10);
    let lost = tap.seen[2].header.sequence;
    let again: Vec<_> = tap
        .seen
        .iter()
        .filter(|seen| seen.header.sequence == lost && seen.length > 0)
        .map(|seen| seen.at)
        .collect();
    assert_eq!(again, [Duration::ZERO, MS * 100]);
    let counters = ["fast-retransmits", "timeouts", "retransmitted-segments"].map(|name| tap.count(0, name));
    assert_eq!((counters, tap.received[1].len()), ([1, 0, 1], 20_000));
    // Without it the timer does so, from the first unacknowledged byte on.
    let config = TcpConfig { initial_window: 8, fast_retransmit: false, ..plain() };
    let mut tap = Tap::connected(&config, MS * 50);
    let mut data = 0;
    tap.lose = Box::new(move |seen| {
        data += usize::from(seen.length > 0);
        seen.length > 0 && data == 3
    });
    tap.send(0, 8000).unwrap();
    tap.run_for(SECOND * 10);
    let again: Vec<_> = tap.data(0).into_iter().skip(8).collect();
    // Acknowledgements came at 100 ms, and start the timer anew.
    assert_eq!(again, [(MS * 1100, 1000)], "what the receiver has kept is not sent again");
    assert_eq!(tap.received[1].len(), 8000);
}

#[test]
fn after_a_timeout_everything_is_sent_again_from_the_first_unacknowledged_byte() {
    let mut tap = Tap::connected(&TcpConfig { initial_window: 4, ..plain() }, MS * 50);
    tap.lose = Box::new(|seen| seen.length > 0 && seen.at < MS);
    tap.send(0, 4000).unwrap();
    tap.run_for(SECOND * 10);
    let sent: Vec<_> = tap.data(0).into_iter().map(|(at, _)| at).collect();
    let [first, second, third] = [SECOND, MS * 1100, MS * 1200];
    assert_eq!(
        sent,
        [Duration::ZERO, Duration::ZERO, Duration::ZERO, Duration::ZERO, first, second, second, third]
    );
    assert_eq!(tap.received[1].len(), 4000);
}

#[test]
fn small_segments_wait_while_data_is_outstanding_if_so_chosen() {
    for (nagle, expected) in [
        (0, vec![(0, 100), (0, 200), (0, 50)]),
        (1000, vec![(0, 100), (100, 250)]),
        (200, vec![(0, 100), (0, 200), (100, 50)]),
    ] {
        let mut tap = Tap::connected(&TcpConfig { nagle, initial_window: 10, ..plain() }, MS * 50);
        for length in [100, 200, 50] {
            tap.send(0, length).unwrap();
        }
        tap.run_for(SECOND);
        let data: Vec<_> =
            tap.data(0).into_iter().map(|(at, length)| (at.as_nanos() / 1_000_000, length)).collect();
        assert_eq!(data, expected, "{nagle}");
    }
}

#[test]
fn a_message_of_any_size_is_taken_while_less_than_a_window_waits() {
    let mut tap = Tap::connected(&TcpConfig { window: 8 << 10, initial_window: 10, ..plain() }, MS * 50);
    assert_eq!(tap.send(0, 8191), Ok(()));
    assert_eq!(tap.send(0, 20 << 10), Ok(()));
    assert_eq!(tap.send(0, 1), Err(SendError::Full));
    tap.run_for(SECOND * 5);
    assert_eq!(tap.events[0], [Event::Writable]);
    assert_eq!(tap.received[1].len(), 8191 + (20 << 10));
}

#[test]
fn what_the_window_leaves_is_not_sent_in_crumbs() {
    // Of a window of 8192 bytes, 8 segments; the 192 bytes beside them wait although there is more to send.
    let mut tap = Tap::connected(&TcpConfig { window: 8 << 10, initial_window: 20, ..plain() }, MS * 50);
    tap.send(0, 50_500).unwrap();
    tap.run_for(SECOND * 5);
    let lengths: Vec<_> = tap.data(0).into_iter().map(|(_, length)| length).collect();
    assert_eq!(lengths, [&[1000; 50][..], &[500]].concat());
}

#[test]
fn a_slow_reader_announces_no_crumbs() {
    let mut tap = Tap::connected(&TcpConfig { window: 8 << 10, initial_window: 20, ..plain() }, MS);
    tap.reads[1] = false;
    tap.send(0, 30_000).unwrap();
    tap.run_for(MS * 500);
    // It has no way to read less than everything; so the receiver itself is asked.
    let receiver = &mut tap.ends[1].receiver;
    assert_eq!(receiver.readable(), 8000);
    assert_eq!(receiver.announce(), 192, "what was announced once stays so");
    let text = |place| Text { place, data: &[7; 192], push: true, fin: false };
    assert!(receiver.accept(tap.now, text(8001)));
    assert_eq!(receiver.announce(), 0);
}

#[test]
fn a_closed_window_is_probed_and_opens_though_its_announcement_is_lost() {
    let mut tap = Tap::connected(&TcpConfig { window: 4000, initial_window: 20, ..plain() }, MS * 5);
    tap.reads[1] = false;
    tap.send(0, 6000).unwrap();
    tap.run_for(SECOND * 100);
    let probes: Vec<_> = tap.data(0).into_iter().skip(4).collect();
    let seconds = [1, 3, 7, 15, 31, 63].map(|s| (MS * 10 + Duration::from_nanos(1) + SECOND * s, 1));
    assert_eq!(probes, seconds);
    assert!(tap.events[0].is_empty());
    tap.lose = Box::new(|seen| seen.from == 1 && seen.at < SECOND * 110);
    assert_eq!(tap.read(1), 4000);
    tap.reads[1] = true;
    tap.run_for(SECOND * 200);
    assert_eq!(tap.received[1].len(), 6000);
    assert_eq!(tap.count(0, "window-probes"), 7);
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
