//! The congestion window, and what is repeated when.

use super::*;

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
