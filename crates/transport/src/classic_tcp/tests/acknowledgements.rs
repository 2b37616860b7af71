//! When what was received is acknowledged.

use super::*;

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
