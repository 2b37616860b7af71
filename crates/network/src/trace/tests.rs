use std::collections::VecDeque;

use proptest::prelude::*;
use trunkline_core::{Duration, Packet, PacketId, Port, Seed, Time};
use trunkline_testkit::values::values;

use super::*;
use crate::Impairments;
use crate::medium::{Change, Medium, MediumCounters, Outcome};
use crate::queue;

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

/// A link with this trace, without overhead, in both directions.
fn link(trace: &str, opportunity: &str) -> Box<dyn Medium> {
    let values = values(KIND.parameters, &given(trace, opportunity));
    let port = |place: &str| PortConfig {
        place: place.to_owned(),
        values: &values,
        queue: fifo("1000 packets"),
        impairments: Impairments::default(),
    };
    (KIND.build)(&Values::default(), vec![port("link.t/a-b"), port("link.t/b-a")], Seed::new(1, 0))
}

fn given<'t>(trace: &'t str, opportunity: &'t str) -> [(&'static str, &'t str); 4] {
    [("file", trace), ("opportunity", opportunity), ("overhead", "0 B"), ("mtu", "1504 B")]
}

fn fifo(limit: &str) -> Box<dyn queue::Queue> {
    let kind = queue::find("fifo").unwrap();
    (kind.build)(&values(kind.parameters, &[("limit", limit)]), Seed::new(1, 0).stream("queue"))
}

fn packet(id: u64, size: u64) -> Packet {
    Packet { id: PacketId(id), size: Bytes(size), ..Packet::default() }
}

fn arrivals(out: &Outcome) -> Vec<(u64, Time)> {
    out.deliveries.iter().map(|delivery| (delivery.packet.id.0, delivery.at)).collect()
}

#[test]
fn an_opportunity_takes_several_packets_or_a_part_of_one() {
    let (mut link, mut out) = (link("5\n20\n20\n30", "1000 B"), Outcome::default());
    for (id, size) in [(0, 400), (1, 1400), (2, 100), (3, 1000)] {
        link.offer(ms(1), Port(0), packet(id, size), &mut out);
    }
    assert_eq!((link.next_event(), out.deliveries.len()), (Some(ms(5)), 0));
    link.advance(ms(100), &mut out);
    // 600 B of packet 1 leave at 5 ms, 800 at 20 ms with all of packet 2 and of packet 3.
    assert_eq!(arrivals(&out), [(0, ms(5)), (1, ms(20)), (2, ms(20)), (3, ms(20))]);
    assert_eq!(out.deliveries[1].packet.enqueued, ms(1));
    assert_eq!(link.next_event(), None);
}

#[test]
fn what_finds_nothing_waiting_is_wasted_also_at_the_moment_of_an_arrival() {
    let (mut link, mut out) = (link("10\n15", "1000 B"), Outcome::default());
    link.offer(ms(10), Port(0), packet(0, 300), &mut out);
    link.offer(ms(15), Port(0), packet(1, 300), &mut out);
    assert_eq!(arrivals(&out), [(0, ms(15))]);
    // Another round begins at 15 ms, and another at 30 ms; and so on for as long as one likes.
    link.offer(ms(15 * 1_000_000_000 + 11), Port(0), packet(2, 300), &mut out);
    link.advance(ms(15 * 1_000_000_000 + 20), &mut out);
    assert_eq!(arrivals(&out)[1..], [(1, ms(25)), (2, ms(15 * 1_000_000_001))]);
}

#[test]
fn the_line_is_busy_for_its_share_of_the_time_since_the_moment_before() {
    let (mut link, mut out) = (link("10\n40\n40", "1000 B"), Outcome::default());
    link.offer(ms(0), Port(0), packet(0, 1500), &mut out);
    link.advance(ms(10), &mut out);
    // All of 10 ms, and a quarter of the 30 ms from there to 40 ms.
    assert_eq!(link.counters(Port(0)).busy.total(), Duration::from_micros(17_500));
    link.offer(ms(11), Port(0), packet(1, 1500), &mut out);
    link.advance(ms(40), &mut out);
    assert_eq!(link.counters(Port(0)).busy.total(), Duration::from_millis(40));
}

#[test]
fn another_trace_takes_over_behind_what_has_begun_to_leave() {
    let (mut link, mut out) = (link("10\n20", "1000 B"), Outcome::default());
    for id in 0..3 {
        link.offer(ms(1), Port(0), packet(id, 1100), &mut out);
    }
    link.advance(ms(10), &mut out);
    let values = values(KIND.parameters, &given("1", "1000 B"));
    let change = Change { values: &values, queue: None, impairments: Impairments::default() };
    assert_eq!(link.change(ms(12), Port(0), change, &mut out), Ok(()));
    link.advance(ms(100), &mut out);
    assert_eq!(arrivals(&out), [(0, ms(20)), (1, ms(22)), (2, ms(23))]);
    assert_eq!(link.counters(Port(1)), MediumCounters::default());
}

/// mahimahi's emulation (`link_queue.cc`), told again with whole milliseconds and a FIFO without a limit: every packet's
/// departure.
fn mahimahi(schedule: &[u64], opportunity: u64, offers: &[(u64, u64)]) -> Vec<u64> {
    let (mut departures, mut waiting, mut in_transit) = (Vec::new(), VecDeque::new(), 0);
    let mut offers = offers.iter().peekable();
    for round in 0.. {
        for at in schedule.iter().map(|at| round * schedule[schedule.len() - 1] + at) {
            while let Some((_, size)) = offers.next_if(|(offered, _)| *offered < at) {
                waiting.push_back(*size);
            }
            let mut left = opportunity;
            while left > 0 {
                if in_transit == 0 {
                    let Some(next) = waiting.pop_front() else { break };
                    in_transit = next;
                }
                let sent = left.min(in_transit);
                left -= sent;
                in_transit -= sent;
                if in_transit == 0 {
                    departures.push(at);
                }
            }
        }
        if offers.peek().is_none() && waiting.is_empty() && in_transit == 0 {
            break;
        }
    }
    departures
}

proptest! {
    #[test]
    fn packets_leave_when_they_leave_mahimahi(
        mut schedule in prop::collection::vec(0u64..60, 1..20),
        opportunity in prop_oneof![Just(1504u64), 1u64..3000],
        mut offers in prop::collection::vec((0u64..400, 1u64..1504), 1..40),
    ) {
        schedule.sort_unstable();
        prop_assume!(schedule[schedule.len() - 1] > 0);
        offers.sort_by_key(|(at, _)| *at);
        let trace: String = schedule.iter().map(|at| format!("{at}\n")).collect();
        let (mut link, mut out) = (link(&trace, &format!("{opportunity} B")), Outcome::default());
        for (id, (at, size)) in (0..).zip(&offers) {
            link.offer(ms(*at), Port(0), packet(id, *size), &mut out);
        }
        link.advance(ms(10_000_000), &mut out);
        prop_assert_eq!(&out.fates.0, &[]);
        let expected = (0..).zip(mahimahi(&schedule, opportunity, &offers)).map(|(id, at)| (id, ms(at)));
        prop_assert_eq!(arrivals(&out), expected.collect::<Vec<_>>());
        let whole_periods = out.deliveries.last().map_or(Duration::ZERO, |last| last.at.since(Time::ZERO));
        prop_assert!(link.counters(Port(0)).busy.total() <= whole_periods);
    }
}
