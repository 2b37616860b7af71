use proptest::prelude::*;
use trunkline_core::schema::Limit;
use trunkline_core::{Amount, FlowId, PacketId, Ratio};
use trunkline_testkit::values::values;

use super::*;
use crate::fate::{DropCause, Fate};
use crate::impairment::Impairments;
use crate::medium::PortConfig;
use crate::queue::Fifo;

type Given<'g> = &'g [(&'g str, &'g str)];

/// 53 Mbit/s, where a cell takes 8 us, on both lines, but for what is given.
fn link(given: Given) -> AtmLink {
    let given = [given, &[("line", "53 Mbit/s"), ("rate", "53 Mbit/s")]].concat();
    let values = values(KIND.parameters, &given);
    let config = |place: &str| {
        AtmConfig::from(PortConfig {
            place: place.to_owned(),
            values: &values,
            queue: Box::new(Fifo::new(Limit::Packets(100_000))),
            impairments: Impairments::default(),
        })
    };
    AtmLink::new([config("link.atm/a-b"), config("link.atm/b-a")], Seed::new(1, 0))
}

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_micros(n)
}

fn packet(id: u64, flow: u32, size: u64) -> Packet {
    Packet { id: PacketId(id), flow: FlowId(flow), size: Bytes(size), ..Packet::default() }
}

/// A packet of so many full cells, with LLC/SNAP and trailer.
fn of_cells(id: u64, flow: u32, cells: u64) -> Packet {
    packet(id, flow, 48 * cells - 16)
}

fn finish(link: &mut AtmLink, out: &mut Outcome) {
    while let Some(next) = link.next_event() {
        link.advance(next, out);
    }
}

/// What becomes of these packets, offered at these microseconds.
fn run(given: Given, packets: impl IntoIterator<Item = (u64, Packet)>) -> (AtmLink, Outcome) {
    let (mut link, mut out) = (link(given), Outcome::default());
    for (at, packet) in packets {
        link.offer(us(at), Port(0), packet, &mut out);
    }
    finish(&mut link, &mut out);
    (link, out)
}

fn arrivals(out: &Outcome) -> Vec<(u64, Time)> {
    out.deliveries.iter().map(|delivery| (delivery.packet.id.0, delivery.at)).collect()
}

fn drops(out: &Outcome) -> Vec<(u64, DropCause)> {
    let dropped = out.fates.0.iter().filter_map(|fate| match fate {
        Fate::Dropped { packet, cause, .. } => Some((packet.id.0, *cause)),
        Fate::Marked { .. } => None,
    });
    dropped.collect()
}

fn amount(link: &AtmLink, name: &str) -> Amount {
    let figures = link.figures(Duration::from_secs(1));
    let found = figures.iter().find(|figure| figure.name == name && figure.station == Some(Port(0)));
    found.expect("a figure of that name").amount.expect("something to measure")
}

fn count(link: &AtmLink, name: &str) -> u64 {
    match amount(link, name) {
        Amount::Count(count) => count,
        other => panic!("{name} is {other:?}"),
    }
}

fn time(micros: u64) -> Amount {
    Amount::Time(Duration::from_micros(micros))
}

#[test]
fn a_packet_is_cut_into_cells_and_crosses_both_lines() {
    // The last of three cells leaves at 16 us, is through the first line at 24 and through the second at 32.
    let (link, out) = run(&[("delay", "100 us")], [(1000, of_cells(1, 0, 3))]);
    assert_eq!(arrivals(&out), [(1, us(1132))]);
    assert_eq!(out.deliveries[0].to, Port(1));
    assert_eq!(link.counters(Port(0)).transmitted, Bytes(159));
    assert_eq!(link.counters(Port(0)).busy.total(), Duration::from_micros(24));
    let [mean, most] = ["mean", "max"].map(|name| amount(&link, &format!("cell-transfer-delay-{name}")));
    assert_eq!((mean, most, amount(&link, "cell-delay-variation")), (time(116), time(116), time(0)));
}

#[test]
fn figures_of_no_cells_are_missing() {
    let missing = |link: &AtmLink, port| -> Vec<&str> {
        let figures = link.figures(Duration::from_secs(1)).into_iter();
        let of_port = figures.filter(|figure| figure.station == Some(Port(port)));
        of_port.filter(|figure| figure.amount.is_none()).map(|figure| figure.name).collect()
    };
    let of_all =
        ["cell-loss-ratio", "cell-transfer-delay-mean", "cell-transfer-delay-max", "cell-delay-variation"];
    let observed = of_all.map(|name| format!("observed-{name}"));
    let interarrival =
        ["mean", "standard-deviation"].map(|name| format!("observed-cell-interarrival-{name}"));
    let observed: Vec<&str> = observed.iter().chain(&interarrival).map(String::as_str).collect();
    let (link, _) = run(&[], [(0, of_cells(1, 0, 3))]);
    assert_eq!(missing(&link, 1), [of_all.as_slice(), &observed].concat(), "nothing was sent from there");
    // One cell has no interarrival time, two have one, and one time has no standard deviation.
    let given: Given = &[("observe", "0")];
    let without = |cells| missing(&run(given, [(0, of_cells(1, 0, cells))]).0, 0);
    assert_eq!(without(1), interarrival);
    assert_eq!(without(2), interarrival[1..]);
    assert!(without(3).is_empty());
}

#[test]
fn the_lines_of_the_host_and_of_the_switch_have_a_utilisation_each() {
    // Cells take 80 us on the host's line and 8 us on the switch's: 1000 of them fill 80 and 8 % of 100 ms.
    let (mut link, mut out) = (link(&[("line", "5.3 Mbit/s")]), Outcome::default());
    let over = Duration::from_millis(100);
    let shares = |link: &AtmLink| {
        let figures = link.figures(over);
        let line = figures.iter().filter(|figure| figure.name == "host-line-utilisation");
        let line: Vec<_> = line.filter_map(|figure| Some((figure.station, figure.amount?))).collect();
        (line, link.counters(Port(0)).busy.share(over).value())
    };
    let near = |(line, switch): (Vec<(Option<Port>, Amount)>, f64), expected: [f64; 3]| {
        let share = |amount| if let Amount::Share(share) = amount { share.value() } else { f64::NAN };
        let found = [share(line[0].1), share(line[1].1), switch];
        assert!(
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9),
            "{found:?}"
        );
        assert_eq!((line.len(), line[0].0, line[1].0), (2, Some(Port(0)), Some(Port(1))));
    };
    for id in 0..100 {
        link.offer(us(0), Port(0), of_cells(id, 0, 10), &mut out);
    }
    finish(&mut link, &mut out);
    near(shares(&link), [0.8, 0.0, 0.08]);
    // Neither counts what leaves after the measured time.
    link.end_measurement(us(100_000));
    link.offer(us(100_000), Port(0), of_cells(100, 0, 10), &mut out);
    finish(&mut link, &mut out);
    near(shares(&link), [0.8, 0.0, 0.08]);
    // Discarded cells are on the host's line only.
    let packets = (0..10).map(|id| (1000 * id, of_cells(id, 0, 10)));
    let (link, _) = run(&[("pcr", "1 Mbit/s")], packets);
    let sent = link.counters(Port(0)).transmitted.count() / 53;
    assert!(sent < 100, "{sent}");
    near(shares(&link), [100.0 * 8e-6 / 0.1, 0.0, sent as f64 * 8e-6 / 0.1]);
}

#[test]
fn a_voice_unit_of_80_bytes_takes_three_cells() {
    // 80 + 8 UDP + 20 IP; with 8 LLC/SNAP and 8 trailer 124 B. A cell more from 129 B of packet on.
    for (size, cells) in [(32, 1), (33, 2), (108, 3), (128, 3), (129, 4), (9180, 192)] {
        let (link, _) = run(&[], [(0, packet(1, 0, size))]);
        assert_eq!(count(&link, "cells"), cells, "{size} B");
    }
}

#[test]
fn cells_of_the_studys_card_carry_48_of_53_bytes_exactly() {
    // 194.58 KB/s of cells carry 176.22 KB/s: 1000 packets of 191 full cells each, back to back for 51 s.
    let packets = (0..1000).map(|id| (0, of_cells(id, 0, 191)));
    let (link, out) = run(&[("shape-pcr", "1594 kbit/s")], packets);
    assert_eq!(count(&link, "cells"), 191_000);
    let last = 190_999 * 424_000_000_000u128 / 1_594_000;
    assert_eq!(out.deliveries[999].at, Time::from_nanos(last as u64 + 16_000));
    let payload = 191_000.0 * 48.0 / 1024.0;
    let rate = payload / (last as f64 / 1e9);
    assert!((rate - 176.22).abs() < 0.01, "{rate} KB/s");
}

#[test]
fn the_queue_hands_out_a_packet_when_its_first_cell_may_leave() {
    // 5.3 Mbit/s: a cell every 80 us.
    let (mut link, mut out) = (link(&[("shape-pcr", "5.3 Mbit/s")]), Outcome::default());
    link.offer(us(0), Port(0), of_cells(1, 0, 2), &mut out);
    link.offer(us(0), Port(0), of_cells(2, 0, 1), &mut out);
    assert_eq!((arrivals(&out), link.next_event()), (vec![(1, us(96))], Some(us(160))));
    finish(&mut link, &mut out);
    assert_eq!(arrivals(&out)[1], (2, us(176)));
    assert_eq!(link.counters(Port(0)).sojourn_total, Duration::from_micros(160));
}

#[test]
fn cells_of_different_channels_take_turns() {
    let offers = [(0, of_cells(1, 0, 10)), (0, of_cells(2, 1, 10)), (8, of_cells(3, 2, 1))];
    let (_, bundle) = run(&[], offers.clone());
    assert_eq!(arrivals(&bundle), [(1, us(88)), (2, us(168)), (3, us(176))]);
    // The single cell comes when the second channel begins, and waits for that cell and one of the first channel.
    let (link, per_flow) = run(&[("vc", "flow")], offers);
    assert_eq!(arrivals(&per_flow), [(3, us(40)), (1, us(168)), (2, us(176))]);
    assert_eq!(link.counters(Port(0)).dequeued, 3);
    assert_eq!(link.counters(Port(0)).sojourn_total, Duration::from_micros(24));
}

#[test]
fn each_channel_has_its_own_shaper_and_its_own_limit() {
    let given: Given = &[("vc", "flow"), ("shape-pcr", "5.3 Mbit/s"), ("vc-limit", "1 packets")];
    let packets = [(1, 0), (2, 0), (3, 0), (4, 1)].map(|(id, flow)| (0, of_cells(id, flow, 2)));
    let (link, out) = run(given, packets);
    // The third packet of the first flow finds the second one waiting.
    assert_eq!(drops(&out), [(3, DropCause::QueueFull)]);
    assert_eq!(arrivals(&out), [(1, us(96)), (4, us(104)), (2, us(256))]);
    assert_eq!(link.counters(Port(0)).backlog_packets_max, 2, "one of each flow: the line was busy");
}

#[test]
fn a_lost_last_cell_takes_the_next_packet_with_it() {
    // Cells 80 us apart conform.
    let given: Given = &[("pcr", "5.3 Mbit/s"), ("cdvt", "0 us")];
    let (link, out) =
        run(given, [(0, of_cells(1, 0, 2)), (1000, of_cells(2, 0, 1)), (2000, of_cells(3, 0, 1))]);
    assert_eq!(drops(&out), [(1, DropCause::Policed), (2, DropCause::Misassembled)]);
    assert_eq!(arrivals(&out), [(3, us(2016))]);
    assert_eq!((count(&link, "cells-nonconforming"), count(&link, "cells-lost")), (1, 1));
    assert_eq!(amount(&link, "cell-loss-ratio"), Amount::Share(Ratio::new(0.25).unwrap()));
}

#[test]
fn a_packet_of_which_nothing_arrived_takes_none_with_it() {
    // The second packet follows at once, and its only cell does not conform.
    let given: Given = &[("pcr", "5.3 Mbit/s"), ("cdvt", "0 us")];
    let (_, out) = run(given, [(0, of_cells(1, 0, 1)), (0, of_cells(2, 0, 1)), (100, of_cells(3, 0, 1))]);
    assert_eq!(drops(&out), [(2, DropCause::Policed)]);
    assert_eq!(arrivals(&out), [(1, us(16)), (3, us(116))]);
}

#[test]
fn policing_passes_tags_or_discards() {
    let packets = || (0..20).map(|id| (0, of_cells(id, 0, 1)));
    let lost = |policing, more: Given| {
        let given = [&[("pcr", "5.3 Mbit/s"), ("cdvt", "0 us"), ("policing", policing)], more].concat();
        let (link, _) = run(&given, packets());
        assert_eq!(count(&link, "cells-nonconforming"), 18, "one cell in ten conforms");
        (count(&link, "cells-tagged"), count(&link, "cells-lost"))
    };
    assert_eq!(lost("pass", &[]), (0, 0));
    assert_eq!(lost("tag", &[]), (18, 0));
    assert_eq!(lost("discard", &[]), (0, 18));
    // An output line of half the rate: tagged cells that come while two wait are lost, those that conform never.
    let slow: Given = &[("rate", "26.5 Mbit/s"), ("buffer", "8"), ("clp-threshold", "2")];
    let given = [&[("pcr", "5.3 Mbit/s"), ("cdvt", "0 us"), ("policing", "tag")], slow].concat();
    let (link, out) = run(&given, packets());
    assert!(arrivals(&out).iter().any(|&(id, _)| id == 10), "the cell that conforms");
    assert_eq!(count(&link, "cell-backlog-max"), 2);
    assert!(drops(&out).iter().all(|&(id, cause)| id % 10 != 0 && cause == DropCause::CellLost));
}

#[test]
fn the_buffer_holds_as_many_cells_as_it_says() {
    // A tenth of the rate: of 12 cells at once, one is transmitted and 5 wait when the seventh comes.
    let packets = (0..7).map(|id| (0, of_cells(id, 0, 1)));
    let (link, out) = run(&[("rate", "5.3 Mbit/s"), ("buffer", "5")], packets);
    assert_eq!(drops(&out), [(6, DropCause::CellLost)]);
    assert_eq!(count(&link, "cell-backlog-max"), 5);
    // Sent at 40, behind the line at 48; transmitted from 8 + 5 * 80 us on.
    assert_eq!(amount(&link, "cell-transfer-delay-max"), time(8 + 5 * 80 + 80 - 40));
    assert_eq!(amount(&link, "cell-delay-variation"), time(5 * 80 - 40));
}

#[test]
fn what_belongs_together_is_better_discarded_together() {
    // Twice as much as the output line carries, in packets of 100 cells on average.
    let delivered = |discard: Given| {
        let given = [&[("rate", "26.5 Mbit/s"), ("buffer", "512")], discard].concat();
        let packets = (0..1600).map(|id| (800 * id, of_cells(id, 0, 60 + 37 * id % 81)));
        run(&given, packets.collect::<Vec<_>>()).1.deliveries.len()
    };
    let plain = delivered(&[]);
    let partial = delivered(&[("ppd", "true")]);
    let early = delivered(&[("ppd", "true"), ("epd", "256")]);
    // Half of them fit.
    assert!(plain < 20 && partial > 500 && early > 790, "{plain}, {partial}, {early} of 1600");
}

#[test]
fn interarrival_is_that_of_the_observed_members_cells() {
    // Voice in two cells every 10 ms, of member 1; something else in between.
    let packets = (0..101)
        .flat_map(|n| [(10_000 * n, of_cells(2 * n, 1, 2)), (10_000 * n + 3000, of_cells(2 * n + 1, 0, 7))]);
    let (link, _) = run(&[("observe", "1")], packets);
    assert_eq!(count(&link, "observed-cells"), 202);
    assert_eq!(count(&link, "cells"), 202 + 707);
    // 101 gaps of 8 us and 100 of 9992.
    let mean = (101.0 * 8.0 + 100.0 * 9992.0) / 201.0;
    let variance = (101.0 * (8.0 - mean) * (8.0 - mean) + 100.0 * (9992.0 - mean) * (9992.0 - mean)) / 200.0;
    for (name, expected) in [("mean", mean), ("standard-deviation", libm::sqrt(variance))] {
        let Amount::Time(found) = amount(&link, &format!("observed-cell-interarrival-{name}")) else {
            panic!()
        };
        assert!(
            (found.as_secs_f64() * 1e6 - expected).abs() < 0.002,
            "{name} {found} instead of {expected} us"
        );
    }
}

#[test]
fn a_source_that_keeps_its_contract_is_never_policed() {
    // Voice in a channel with just enough for it: 3 cells every 10 ms, in a burst at the rate of the line.
    let given: Given = &[("scr", "127.2 kbit/s"), ("mbs", "3"), ("cdvt", "0 us")];
    let (link, out) = run(given, (0..1000).map(|n| (10_000 * n, packet(n, 0, 108))));
    assert_eq!((out.deliveries.len(), count(&link, "cells-nonconforming")), (1000, 0));
    // A thousandth less is not enough.
    let given: Given = &[("scr", "127.1 kbit/s"), ("mbs", "3"), ("cdvt", "0 us")];
    let (link, _) = run(given, (0..1000).map(|n| (10_000 * n, packet(n, 0, 108))));
    assert!(count(&link, "cells-nonconforming") > 0);
}

proptest! {
    #[test]
    fn a_source_shaped_by_its_contract_is_never_policed(
        per_flow: bool,
        pcr in 100_000u64..60_000_000,
        share in prop::option::of(1u64..10),
        mbs in 1u64..100,
        offers in prop::collection::vec((0u64..20_000, 40u64..3000, 0u32..4), 1..60),
    ) {
        let rate = |bits: u64| format!("{bits} bit/s");
        let (peak, sustained, mbs) = (rate(pcr), share.map(|share| rate(pcr / share)), mbs.to_string());
        let mut given = vec![("shape-pcr", peak.as_str()), ("pcr", &peak), ("cdvt", "0 us")];
        given.extend(per_flow.then_some(("vc", "flow")));
        if let Some(sustained) = &sustained {
            given.extend([("shape-scr", sustained.as_str()), ("scr", sustained), ("shape-mbs", &mbs), ("mbs", &mbs)]);
        }
        let mut now = 0;
        let packets = offers.iter().zip(0..).map(|(&(gap, size, flow), id)| {
            now += gap;
            (now, packet(id, flow, size))
        });
        let (link, out) = run(&given, packets.collect::<Vec<_>>());
        prop_assert_eq!(count(&link, "cells-nonconforming"), 0);
        prop_assert_eq!(out.deliveries.len(), offers.len());
    }
}
