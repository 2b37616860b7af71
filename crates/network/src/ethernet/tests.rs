use trunkline_core::schema::Limit;
use trunkline_core::{Amount, Bytes, Destination, Duration, Packet, PacketId, Port, Seed, Time};
use trunkline_testkit::values::values;

use super::*;
use crate::fate::{DropCause, Fate};
use crate::impairment::Impairments;
use crate::medium::{Medium, Outcome, PortConfig};
use crate::queue::Fifo;

/// What a test gives to a table.
type Given<'g> = &'g [(&'g str, &'g str)];

/// So many stations at 8 Mbit/s without delays, where a byte takes a microsecond, but for what is given.
fn lan(
    count: usize,
    shared: Given,
    station: impl Fn(usize) -> Vec<(&'static str, &'static str)>,
) -> EthernetLan {
    let given = |port| [station(port), vec![("rate", "8 Mbit/s"), ("delay", "0 us")]].concat();
    let stations: Vec<_> = (0..count).map(|port| values(KIND.parameters, &given(port))).collect();
    let ports = stations.iter().enumerate().map(|(port, values)| PortConfig {
        place: format!("link.lan/{port}"),
        values,
        queue: Box::new(Fifo::new(Limit::Packets(1000))),
        impairments: Impairments::default(),
    });
    let shared = [shared, &[("switch-latency", "0 us")]].concat();
    EthernetLan::new(&values(KIND.shared, &shared), ports.collect(), Seed::new(1, 0))
}

fn plain(count: usize) -> EthernetLan {
    lan(count, &[], |_| Vec::new())
}

fn packet(id: u64, to: u16, size: u64) -> Packet {
    Packet { id: PacketId(id), size: Bytes(size), to: Destination::Port(Port(to)), ..Packet::default() }
}

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_micros(n)
}

/// What arrived: packet, station, microsecond.
fn arrivals(out: &Outcome) -> Vec<(u64, u16, u64)> {
    let arrived = out.deliveries.iter().map(|d| (d.packet.id.0, d.to.0, d.at.as_nanos() / 1000));
    arrived.collect()
}

fn drops(out: &Outcome) -> Vec<(u64, DropCause)> {
    let dropped = out.fates.0.iter().filter_map(|fate| match fate {
        Fate::Dropped { packet, cause, .. } => Some((packet.id.0, *cause)),
        Fate::Marked { .. } => None,
    });
    dropped.collect()
}

fn finish(lan: &mut EthernetLan, out: &mut Outcome) {
    while let Some(next) = lan.next_event() {
        lan.advance(next, out);
    }
}

#[test]
fn a_frame_is_stored_before_it_is_forwarded() {
    let station = |port| if port == 2 { vec![("delay", "100 us")] } else { vec![("delay", "10 us")] };
    let (mut lan, mut out) = (lan(3, &[("switch-latency", "7 us")], station), Outcome::default());
    lan.offer(us(50), Port(0), packet(0, 2, 1000), &mut out);
    finish(&mut lan, &mut out);
    // 1000 B and 26 of framing; the gap of 12 comes behind it.
    assert_eq!(arrivals(&out), [(0, 2, 50 + 1026 + 10 + 7 + 1026 + 100)]);
    assert_eq!(lan.counters(Port(0)).transmitted, Bytes(1038));
    assert_eq!(lan.counters(Port(0)).busy.total(), Duration::from_micros(1038));
    assert_eq!(lan.next_event(), None);
}

#[test]
fn a_small_packet_is_padded() {
    let (mut lan, mut out) = (plain(2), Outcome::default());
    lan.offer(us(0), Port(0), packet(0, 1, 28), &mut out);
    finish(&mut lan, &mut out);
    // Preamble and 64 bytes, twice.
    assert_eq!(arrivals(&out), [(0, 1, 2 * 72)]);
    assert_eq!(lan.counters(Port(0)).transmitted, Bytes(84));
}

#[test]
fn a_switch_that_cuts_through_has_seen_the_header() {
    let cut = &[("switching", "cut-through")];
    let (mut equal, mut out) = (lan(2, cut, |_| Vec::new()), Outcome::default());
    equal.offer(us(0), Port(0), packet(0, 1, 1000), &mut out);
    finish(&mut equal, &mut out);
    assert_eq!(arrivals(&out), [(0, 1, 22 + 1026)]);

    // Onto a faster line it would run dry.
    let faster = |port| if port == 1 { vec![("rate", "80 Mbit/s")] } else { Vec::new() };
    let (mut faster, mut out) = (lan(3, cut, faster), Outcome::default());
    faster.offer(us(0), Port(0), packet(0, 1, 974), &mut out);
    faster.offer(us(0), Port(2), packet(1, 0, 974), &mut out);
    faster.offer(us(0), Port(1), packet(2, 2, 974), &mut out);
    finish(&mut faster, &mut out);
    let mut arrived = arrivals(&out);
    arrived.sort_unstable();
    assert_eq!(arrived, [(0, 1, 1000 + 100), (1, 0, 22 + 1000), (2, 2, 2 + 1000)]);
}

#[test]
fn a_line_is_filled_with_frames_back_to_back() {
    // 1 Gbit/s carries 81,274 frames of 1500 B a second (1538 B with all framing).
    let (mut lan, mut out) = (lan(2, &[], |_| vec![("rate", "1 Gbit/s")]), Outcome::default());
    for id in 0..1000 {
        lan.offer(us(0), Port(0), packet(id, 1, 1500), &mut out);
    }
    finish(&mut lan, &mut out);
    assert_eq!(out.deliveries.len(), 1000);
    let last = out.deliveries[999].at.as_nanos();
    // All but the last with their gaps, and that one once more to the station.
    assert_eq!(last, (1538 * 999 + 1526 + 1526) * 8);
}

#[test]
fn stations_that_send_to_one_share_its_line() {
    let (mut lan, mut out) = (lan(5, &[], |_| vec![("switch-buffer", "3 packets")]), Outcome::default());
    for from in 1..5 {
        for id in 0..10 {
            lan.offer(us(0), Port(from), packet(u64::from(from) * 100 + id, 0, 1000), &mut out);
        }
    }
    finish(&mut lan, &mut out);
    let arrived = arrivals(&out);
    // A frame for each frame's time from the first on, and the full buffer at the end.
    assert_eq!(arrived.len(), 10 + 3);
    assert!(arrived.windows(2).all(|pair| pair[1].2 - pair[0].2 == 1038), "{arrived:?}");
    let dropped = drops(&out);
    assert!(dropped.len() == 27 && dropped.iter().all(|(_, cause)| *cause == DropCause::SwitchFull));
    for port in (1..5).map(Port) {
        let counters = lan.counters(port);
        assert_eq!(counters.offered, counters.delivered + counters.dropped[DropCause::SwitchFull.index()]);
    }
    let figures = lan.figures(Duration::from_millis(26));
    let of = |name: &str| {
        figures.iter().find(|f| f.name == name && f.station == Some(Port(0))).unwrap().amount.unwrap()
    };
    assert_eq!(of("switch-dropped"), Amount::Count(27));
    assert_eq!(of("switch-backlog-max"), Amount::Bytes(Bytes(3000)));
    assert!(
        matches!(of("switch-utilisation"), Amount::Share(share) if (share.value() - 13.0 * 1038.0 / 26_000.0).abs() < 1e-9)
    );
    // The first of four goes at once, the others wait for it; from then on three are before each that gets in.
    assert!(
        matches!(of("switch-sojourn-max"), Amount::Time(time) if time == Duration::from_micros(3 * 1038))
    );
}

#[test]
fn different_destinations_do_not_disturb_each_other() {
    let (mut lan, mut out) = (plain(4), Outcome::default());
    lan.offer(us(0), Port(0), packet(0, 1, 1000), &mut out);
    lan.offer(us(0), Port(2), packet(1, 3, 1000), &mut out);
    lan.offer(us(0), Port(1), packet(2, 0, 1000), &mut out);
    finish(&mut lan, &mut out);
    let mut arrived = arrivals(&out);
    arrived.sort_unstable();
    assert_eq!(arrived, [(0, 1, 2052), (1, 3, 2052), (2, 0, 2052)]);
}

#[test]
fn what_is_for_everybody_goes_to_all_others() {
    let (mut lan, mut out) = (plain(4), Outcome::default());
    lan.offer(us(0), Port(2), Packet { to: Destination::Everyone, ..packet(0, 0, 1000) }, &mut out);
    finish(&mut lan, &mut out);
    assert_eq!(arrivals(&out), [(0, 0, 2052), (0, 1, 2052), (0, 3, 2052)]);
    let counters = lan.counters(Port(2));
    assert_eq!((counters.offered, counters.copied, counters.delivered), (1, 2, 3));
}

#[test]
fn what_is_for_nobody_takes_time_on_every_line() {
    let (mut lan, mut out) = (plain(3), Outcome::default());
    lan.offer(us(0), Port(1), Packet { to: Destination::Nobody, ..packet(0, 0, 1000) }, &mut out);
    lan.offer(us(0), Port(2), packet(1, 0, 1000), &mut out);
    lan.offer(us(0), Port(2), packet(2, 2, 1000), &mut out);
    finish(&mut lan, &mut out);
    assert_eq!(arrivals(&out), [(1, 0, 2052 + 1038)], "behind the flooded frame");
    assert_eq!(drops(&out), [(0, DropCause::NoStation), (2, DropCause::NoStation)]);
}
