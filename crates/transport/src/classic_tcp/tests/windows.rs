//! What is sent together, and what the receive window does.

use super::*;

#[test]
fn the_segment_that_empties_the_buffer_is_pushed_and_no_other() {
    let mut tap = Tap::connected(&TcpConfig { initial_window: 10, ..plain() }, MS);
    tap.send(0, 2500).unwrap();
    tap.run_for(SECOND);
    let flags: Vec<_> = tap.seen.iter().filter(|seen| seen.from == 0).map(|seen| seen.header.flags).collect();
    assert_eq!(flags, [ACK, ACK, ACK | PSH]);
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
fn a_chosen_limit_is_what_a_window_must_hold_to_be_used() {
    // A segment and 2000 B fit the window: less than half of it, and not worth a segment by itself.
    let sent = |nagle| {
        let mut tap = Tap::connected(&TcpConfig { nagle, window: 4312 + 2000, ..fddi() }, MS * 5);
        for _ in 0..3 {
            tap.send(0, 4000).ok();
        }
        tap.run_for(MS * 2);
        tap.data(0)
    };
    let first = (Duration::ZERO, 4000);
    assert_eq!(sent(0)[..1], [first]);
    assert_eq!(sent(2000), [first, (Duration::ZERO, 2312)]);
}

#[test]
fn reading_opens_the_window_by_itself_only_if_that_is_told() {
    let answered_at = |window_updates| {
        let config = TcpConfig { window: 8 << 10, window_updates, ..fddi() };
        let mut tap = Tap::connected(&config, MS * 5);
        tap.send(0, 4200).unwrap();
        tap.run_for(SECOND);
        tap.acknowledgements(1)
    };
    assert_eq!(answered_at(true), [MS * 5]);
    assert_eq!(answered_at(false), [MS * 55]);
}

#[test]
fn who_was_told_of_too_little_is_told_when_there_is_more() {
    let config = TcpConfig { window: 8 << 10, window_updates: false, ..fddi() };
    let mut tap = Tap::connected(&config, MS * 5);
    tap.reads[1] = false;
    tap.send(0, 20_000).unwrap();
    tap.run_for(MS * 200);
    // Of the second segment the window holds 3880 bytes, less than half of the largest.
    assert_eq!(tap.data(0), [(Duration::ZERO, 4312)]);
    assert_eq!((tap.read(1), tap.acknowledgements(1).last()), (4312, Some(&(MS * 200))));
    tap.run_for(MS * 5);
    assert_eq!(tap.data(0).len(), 2);
}
