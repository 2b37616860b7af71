//! Changing a link while it runs. What it does otherwise is tested beside its kinds.

use trunkline_core::{PacketId, Stream};
use trunkline_testkit::values::{share, values};

use super::*;
use crate::Loss;
use crate::medium::{self, MediumKind};
use crate::queue;

type Given<'t> = &'t [(&'t str, &'t str)];

fn serial() -> &'static MediumKind {
    medium::find("serial").unwrap()
}

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

fn stream() -> Stream {
    Seed::new(1, 0).stream("queue")
}

fn fifo(limit: &str) -> Box<dyn Queue> {
    let kind = queue::find("fifo").unwrap();
    (kind.build)(&values(kind.parameters, &[("limit", limit)]), stream())
}

/// A link of 8 Mbit/s, at which a byte takes a microsecond, and 100 ms.
fn link(impairments: &Impairments) -> Box<dyn Medium> {
    let values = values(serial().parameters, FIRST);
    let port = |place: &str| PortConfig {
        place: place.to_owned(),
        values: &values,
        queue: fifo("100 packets"),
        impairments: impairments.clone(),
    };
    (serial().build)(&Values::default(), vec![port("link.t/a-b"), port("link.t/b-a")], Seed::new(1, 0))
}

const FIRST: Given<'_> = &[("rate", "8 Mbit/s"), ("delay", "100 ms")];

fn change(
    link: &mut dyn Medium,
    at: Time,
    given: Given<'_>,
    queue: Option<Box<dyn Queue>>,
    impairments: Impairments,
) -> Outcome {
    let (values, mut out) = (values(serial().parameters, given), Outcome::default());
    link.change(at, Port(0), Change { values: &values, queue, impairments }, &mut out).unwrap();
    out
}

fn packet(id: u64, size: u64) -> Packet {
    Packet { id: PacketId(id), size: Bytes(size), bytes: vec![0; 8], ..Packet::default() }
}

/// Offers so many packets of 1000 B at once.
fn burst(link: &mut dyn Medium, at: Time, ids: core::ops::Range<u64>) -> Outcome {
    let mut out = Outcome::default();
    for id in ids {
        link.offer(at, Port(0), packet(id, 1000), &mut out);
    }
    out
}

fn finish(link: &mut dyn Medium, out: &mut Outcome) {
    while let Some(next) = link.next_event() {
        link.advance(next, out);
    }
}

fn arrivals(out: &Outcome) -> Vec<(u64, Time)> {
    out.deliveries.iter().map(|delivery| (delivery.packet.id.0, delivery.at)).collect()
}

#[test]
fn another_rate_holds_for_what_waits_and_not_for_what_is_on_the_line() {
    let mut link = link(&Impairments::default());
    let mut out = burst(&mut *link, ms(0), 0..3);
    let changed =
        change(&mut *link, ms(1), &[("rate", "4 Mbit/s"), ("delay", "100 ms")], None, Impairments::default());
    // Packet 1 was begun at 1 ms, before the change at 1 ms.
    assert_eq!(arrivals(&changed), [(1, ms(102))]);
    out.deliveries.extend(changed.deliveries);
    finish(&mut *link, &mut out);
    assert_eq!(arrivals(&out), [(0, ms(101)), (1, ms(102)), (2, ms(104))]);
    let counters = link.counters(Port(0));
    assert_eq!((counters.delivered, counters.sojourn_total), (3, Duration::from_millis(1 + 2)));
}

#[test]
fn a_shorter_delay_lets_nobody_overtake() {
    let mut link = link(&Impairments::default());
    let mut out = burst(&mut *link, ms(0), 0..1);
    let none =
        change(&mut *link, ms(1), &[("rate", "8 Mbit/s"), ("delay", "10 ms")], None, Impairments::default());
    assert!(none.deliveries.is_empty());
    for (id, at) in [(1, 2), (2, 95)] {
        link.offer(ms(at), Port(0), packet(id, 1000), &mut out);
    }
    assert_eq!(arrivals(&out), [(0, ms(101)), (1, ms(101)), (2, ms(106))]);
    assert_eq!(link.counters(Port(0)).reordered, 0);
}

#[test]
fn a_delay_changed_before_anything_was_sent_holds_at_once() {
    let mut link = link(&Impairments::default());
    change(&mut *link, ms(0), &[("rate", "8 Mbit/s"), ("delay", "10 ms")], None, Impairments::default());
    assert_eq!(arrivals(&burst(&mut *link, ms(0), 0..1)), [(0, ms(11))]);
}

#[test]
fn what_waits_goes_over_to_another_queue_as_far_as_there_is_room() {
    let mut link = link(&Impairments::default());
    let mut out = burst(&mut *link, ms(0), 0..6);
    let changed = change(&mut *link, ms(0), FIRST, Some(fifo("3 packets")), Impairments::default());
    let dropped = changed.fates.0.iter().map(|fate| match fate {
        Fate::Dropped { at, packet, cause } => (packet.id.0, *at, *cause),
        other => panic!("{other:?}"),
    });
    assert_eq!(
        dropped.collect::<Vec<_>>(),
        [(4, ms(0), DropCause::QueueFull), (5, ms(0), DropCause::QueueFull)]
    );
    finish(&mut *link, &mut out);
    assert_eq!(arrivals(&out), [(0, ms(101)), (1, ms(102)), (2, ms(103)), (3, ms(104))]);
    let counters = link.counters(Port(0));
    assert_eq!((counters.offered, counters.delivered, counters.dropped.iter().sum::<u64>()), (6, 4, 2));
    assert_eq!(
        counters.sojourn_total,
        Duration::from_millis(1 + 2 + 3),
        "since they came, not since the change"
    );
}

#[test]
fn every_queue_takes_over_from_every_other() {
    for (from, to) in queue::KINDS.iter().flat_map(|from| queue::KINDS.iter().map(move |to| (from, to))) {
        let build = |kind: &queue::QueueKind| (kind.build)(&values(kind.parameters, &[]), stream());
        let mut link = link(&Impairments::default());
        change(&mut *link, ms(0), FIRST, Some(build(from)), Impairments::default());
        let mut out = burst(&mut *link, ms(0), 0..9);
        let changed = change(&mut *link, ms(2), FIRST, Some(build(to)), Impairments::default());
        out.deliveries.extend(changed.deliveries);
        finish(&mut *link, &mut out);
        assert_eq!(out.deliveries.len(), 9, "{} to {}", from.name, to.name);
    }
}

#[test]
fn impairments_change_and_their_streams_go_on() {
    let lossy =
        |percent: f64| Impairments { loss: Loss::Bernoulli(share(percent)), ..Impairments::default() };
    let lost_of = |change_at: Option<u64>| {
        let mut link = link(&lossy(0.5));
        let mut lost = Vec::new();
        for id in 0..200 {
            if change_at == Some(id) {
                change(&mut *link, ms(10 * id), FIRST, None, lossy(0.5));
            }
            let out = burst(&mut *link, ms(10 * id), id..id + 1);
            lost.extend(out.fates.0.iter().map(|_| id));
        }
        lost
    };
    assert_eq!(lost_of(Some(100)), lost_of(None), "the same as before changes nothing");
    let mut link = link(&lossy(0.5));
    change(&mut *link, ms(0), FIRST, None, lossy(1.0));
    assert_eq!(burst(&mut *link, ms(1), 0..5).deliveries.len(), 0);
    change(&mut *link, ms(20), FIRST, None, Impairments::default());
    let mut out = burst(&mut *link, ms(30), 10..13);
    finish(&mut *link, &mut out);
    assert_eq!(arrivals(&out), [(10, ms(131)), (11, ms(132)), (12, ms(133))]);
}

#[test]
fn a_bucket_keeps_the_tokens_that_are_there() {
    let shaped = |rate| [FIRST, &[("shape-rate", rate), ("shape-burst", "1000 B")][..]].concat();
    let mut link = link(&Impairments::default());
    change(&mut *link, ms(0), &shaped("80 kbit/s"), None, Impairments::default());
    assert_eq!(arrivals(&burst(&mut *link, ms(0), 0..1)), [(0, ms(101))]);
    // 100 of 1000 B have come at 10 ms; the other 900 come ten times as fast.
    change(&mut *link, ms(10), &shaped("800 kbit/s"), None, Impairments::default());
    assert_eq!(arrivals(&burst(&mut *link, ms(10), 1..2)), [(1, ms(120))]);
    change(&mut *link, ms(200), FIRST, None, Impairments::default());
    assert_eq!(arrivals(&burst(&mut *link, ms(200), 2..3)), [(2, ms(301))]);
}

#[test]
fn a_medium_that_cannot_change_says_so() {
    let kind = medium::find("wifi").unwrap();
    let own = values(kind.parameters, &[]);
    let port = |place: &str| PortConfig {
        place: place.to_owned(),
        values: &own,
        queue: fifo("9 packets"),
        impairments: Impairments::default(),
    };
    let mut cell =
        (kind.build)(&values(kind.shared, &[]), vec![port("link.t/a"), port("link.t/b")], Seed::new(1, 0));
    let change = Change { values: &own, queue: None, impairments: Impairments::default() };
    assert_eq!(cell.change(ms(0), Port(0), change, &mut Outcome::default()), Err(Fixed));
}
