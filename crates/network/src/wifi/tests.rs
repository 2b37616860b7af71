use trunkline_core::schema::{Limit, Parameter};
use trunkline_core::{Amount, Bytes, Destination, Duration, Packet, PacketId, Port, Seed, Time};
use trunkline_testkit::values::values;

use super::*;
use crate::fate::{DropCause, Fate};
use crate::impairment::Impairments;
use crate::medium::{Figure, Medium, Outcome, PortConfig};
use crate::queue::Fifo;

/// What a test gives to a table.
type Given<'g> = &'g [(&'g str, &'g str)];

/// A cell of so many stations, with keys of the cell and of each station.
fn cell(
    count: usize,
    shared: Given,
    station: impl Fn(usize) -> Vec<(&'static str, &'static str)>,
) -> WifiCell {
    let table = |parameters: &[Parameter], given: Given| values(parameters, given);
    let stations: Vec<_> = (0..count).map(|port| table(KIND.parameters, &station(port))).collect();
    let ports = stations.iter().enumerate().map(|(port, values)| PortConfig {
        place: format!("link.cell/{port}"),
        values,
        queue: Box::new(Fifo::new(Limit::Packets(50))),
        impairments: Impairments::default(),
    });
    WifiCell::new(&table(KIND.shared, shared), ports.collect(), Seed::new(1, 0))
}

fn alike(count: usize, shared: Given) -> WifiCell {
    cell(count, shared, |_| Vec::new())
}

fn packet(id: u64, to: u16, size: u64) -> Packet {
    Packet { id: PacketId(id), size: Bytes(size), to: Destination::Port(Port(to)), ..Packet::default() }
}

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_micros(n)
}

fn arrivals(out: &Outcome) -> Vec<(u64, u16, Time)> {
    out.deliveries.iter().map(|d| (d.packet.id.0, d.to.0, d.at)).collect()
}

fn drops(out: &Outcome) -> Vec<(u64, DropCause)> {
    let dropped = out.fates.0.iter().filter_map(|fate| match fate {
        Fate::Dropped { packet, cause, .. } => Some((packet.id.0, *cause)),
        Fate::Marked { .. } => None,
    });
    dropped.collect()
}

fn finish(cell: &mut WifiCell, out: &mut Outcome) {
    while let Some(next) = cell.next_event() {
        cell.advance(next, out);
    }
}

fn count(cell: &WifiCell, station: Option<u16>, name: &str) -> u64 {
    let figures = cell.figures(Duration::from_secs(1));
    let found = figures.iter().find(|f| f.name == name && f.station == station.map(Port));
    match found {
        Some(Figure { amount: Some(Amount::Count(n)), .. }) => *n,
        other => panic!("{name}: {other:?}"),
    }
}

/// Keeps packets of that size waiting at every station but the first, to the first, and says how many of each arrived
/// until then.
fn saturate(cell: &mut WifiCell, stations: u16, size: u64, until: Time) -> Vec<u64> {
    let (mut out, mut received, mut id) = (Outcome::default(), vec![0; usize::from(stations)], 0);
    let mut offer = |cell: &mut WifiCell, now, from, out: &mut Outcome| {
        id += 1;
        cell.offer(now, Port(from), packet(id, 0, size), out);
    };
    for from in (1..stations).flat_map(|from| [from; 3]) {
        offer(cell, Time::ZERO, from, &mut out);
    }
    while let Some(now) = cell.next_event().filter(|&next| next <= until) {
        cell.advance(now, &mut out);
        let mut next: Vec<u16> = Vec::new();
        for delivery in out.deliveries.drain(..) {
            received[usize::from(delivery.packet.entered.0)] += 1;
            next.push(delivery.packet.entered.0);
        }
        for fate in out.fates.0.drain(..) {
            if let Fate::Dropped { packet, .. } = fate {
                next.push(packet.entered.0);
            }
        }
        for from in next {
            offer(cell, now, from, &mut out);
        }
    }
    received
}

/// Bianchi's fixed point ("Performance analysis of the IEEE 802.11 distributed coordination function", 2000), with the
/// retry limit of Wu et al. (2002): the probability that a station transmits in a slot.
fn transmission_probability(stations: i32) -> f64 {
    let windows = [16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let tau: f64 = (low + high) / 2.0;
        let p = 1.0 - libm::pow(1.0 - tau, f64::from(stations - 1));
        let (mut attempts, mut slots, mut weight) = (0.0, 0.0, 1.0);
        for window in windows {
            attempts += weight;
            slots += weight * (window + 1.0) / 2.0;
            weight *= p;
        }
        if attempts / slots > tau { low = tau } else { high = tau }
    }
    low
}

/// Packets per second by that model, for transmissions that take so many microseconds with all that follows.
fn bianchi(stations: i32, exchange: f64, slot: f64) -> f64 {
    let tau = transmission_probability(stations);
    let idle = libm::pow(1.0 - tau, f64::from(stations));
    let success = f64::from(stations) * tau * libm::pow(1.0 - tau, f64::from(stations - 1));
    success / (idle * slot + (1.0 - idle) * exchange) * 1e6
}

/// 1500 bytes at 54 Mbit/s: 258 us of frame, 10 of SIFS, 34 of acknowledgement and 28 of DIFS.
const EXCHANGE: f64 = 258.0 + 10.0 + 34.0 + 28.0;

#[test]
fn a_packet_on_an_idle_channel_begins_with_the_next_slot() {
    let (mut cell, mut out) = (alike(3, &[]), Outcome::default());
    cell.offer(us(100), Port(1), packet(0, 2, 1500), &mut out);
    assert_eq!(cell.next_event(), Some(us(108)), "slots of 9 us");
    finish(&mut cell, &mut out);
    assert_eq!(arrivals(&out), [(0, 2, us(108 + 258))]);
    // The channel was last used until 410 us; slots begin 28 us later, and the backoff after that is long over.
    cell.offer(us(5000), Port(1), packet(1, 0, 40), &mut out);
    let slot = (5000 - 438) / 9 + 1;
    finish(&mut cell, &mut out);
    assert_eq!(arrivals(&out)[1], (1, 0, us(438 + slot * 9 + 20 + 4 * 4 + 6)));
    assert_eq!(cell.next_event(), None, "nobody has anything to send");
    assert_eq!(cell.counters(Port(1)).busy.total(), Duration::from_micros(258 + 42));
    assert_eq!(cell.counters(Port(1)).transmitted, Bytes(1540 + 2 + 82));
}

#[test]
fn a_station_alone_sends_by_the_closed_form() {
    // 6 Mbit/s: 515 symbols of 4 us for 12,358 bits; the acknowledgement takes 24 us more than at 24 Mbit/s.
    let slow = 20.0 + 515.0 * 4.0 + 6.0 + 10.0 + 50.0 + 28.0;
    for (rate, slot, exchange) in [("54 Mbit/s", "9 us", EXCHANGE), ("6 Mbit/s", "20 us", slow)] {
        let micros = slot.trim_end_matches(" us").parse::<f64>().unwrap();
        let mut cell = cell(2, &[("slot", slot)], |_| vec![("rate", rate)]);
        let received = saturate(&mut cell, 2, 1500, us(20_000_000))[1] as f64 / 20.0;
        // DIFS is two slots longer than SIFS; on average 7.5 slots follow.
        let expected = 1e6 / (exchange + 2.0 * (micros - 9.0) + 7.5 * micros);
        assert!((received / expected - 1.0).abs() < 0.004, "{rate}: {received} instead of {expected}");
    }
}

#[test]
fn saturated_stations_get_what_bianchi_found() {
    for stations in [1, 2, 3, 5, 10, 20] {
        let mut cell = alike(stations + 1, &[]);
        let received = saturate(&mut cell, stations as u16 + 1, 1500, us(10_000_000));
        let measured = received.iter().sum::<u64>() as f64 / 10.0;
        let expected = bianchi(stations as i32, EXCHANGE, 9.0);
        // His stations count a busy period as a slot of their backoff; those of the standard do not.
        assert!(
            (measured / expected - 1.0).abs() < 0.02,
            "{stations} stations: {measured} instead of {expected}"
        );
        let (squares, sum) = (received.iter().map(|n| n * n).sum::<u64>(), received.iter().sum::<u64>());
        let jain = (sum * sum) as f64 / (stations as u64 * squares) as f64;
        assert!(jain > 0.99, "{stations} stations: {received:?}");
    }
}

#[test]
fn a_slow_station_slows_all_others_down() {
    // Heusse et al., "Performance anomaly of 802.11b", 2003: equal chances are not equal time.
    let mut cell = cell(4, &[], |port| if port == 3 { vec![("rate", "6 Mbit/s")] } else { Vec::new() });
    let received = saturate(&mut cell, 4, 1500, us(20_000_000));
    let mean = received.iter().sum::<u64>() as f64 / 3.0;
    assert!(received[1..].iter().all(|&n| (n as f64 / mean - 1.0).abs() < 0.05), "{received:?}");
    let share = |port| cell.counters(Port(port)).busy.total().as_secs_f64() / 20.0;
    assert!(share(3) > 0.65 && share(1) < 0.1, "{} and {}", share(3), share(1));
}

#[test]
fn those_that_begin_together_collide_and_try_again() {
    let (mut cell, mut out) = (alike(3, &[]), Outcome::default());
    for from in [1, 2] {
        cell.offer(us(100), Port(from), packet(from.into(), 0, 1500), &mut out);
    }
    cell.advance(us(108), &mut out);
    assert!(out.deliveries.is_empty());
    assert_eq!((count(&cell, None, "collisions"), count(&cell, Some(1), "collided")), (1, 1));
    finish(&mut cell, &mut out);
    assert_eq!(out.deliveries.len(), 2, "{:?}", drops(&out));
    let again = count(&cell, Some(1), "retries") + count(&cell, Some(2), "retries");
    assert!(again >= 2 && again == count(&cell, None, "collisions") * 2, "{again}");
}

#[test]
fn what_nobody_acknowledges_is_given_up() {
    let (mut cell, mut out) = (alike(2, &[("retry-limit", "4")]), Outcome::default());
    let absent = Packet { to: Destination::Nobody, ..packet(0, 0, 100) };
    cell.offer(us(0), Port(1), absent, &mut out);
    cell.offer(us(0), Port(1), packet(1, 0, 100), &mut out);
    finish(&mut cell, &mut out);
    assert_eq!(drops(&out), [(0, DropCause::NoStation)]);
    assert_eq!((count(&cell, Some(1), "transmissions"), count(&cell, Some(1), "retries")), (5, 3));
    assert_eq!(arrivals(&out).len(), 1, "the next one goes on");
}

#[test]
fn noise_spoils_frames_by_its_share_or_by_their_size() {
    let spoilt = |station: Vec<(&'static str, &'static str)>, size| {
        let mut cell = cell(2, &[], |port| if port == 1 { station.clone() } else { Vec::new() });
        saturate(&mut cell, 2, size, us(5_000_000));
        count(&cell, Some(1), "spoilt") as f64 / count(&cell, Some(1), "transmissions") as f64
    };
    assert!((spoilt(vec![("frame-errors", "10 %")], 100) - 0.1).abs() < 0.01);
    assert!((spoilt(vec![("frame-errors", "10 %")], 1500) - 0.1).abs() < 0.01);
    // 1 - (1 - 1e-5)^(8 x 1542).
    assert!((spoilt(vec![("bit-errors", "0.00001")], 1500) - 0.116).abs() < 0.01);
    assert_eq!(spoilt(Vec::new(), 1500), 0.0);
}

#[test]
fn errors_belong_to_both_ends_of_a_frame() {
    let far = |port| if port == 0 { vec![("frame-errors", "100 %")] } else { Vec::new() };
    let (mut cell, mut out) = (cell(3, &[], far), Outcome::default());
    cell.offer(us(0), Port(1), packet(0, 0, 100), &mut out);
    cell.offer(us(0), Port(1), packet(1, 2, 100), &mut out);
    finish(&mut cell, &mut out);
    assert_eq!(drops(&out), [(0, DropCause::RetryLimit)]);
    assert_eq!(arrivals(&out)[0].0, 1);
}

#[test]
fn failures_lower_the_rate_and_successes_raise_it() {
    let shared = [("fallback-after", "2"), ("recover-after", "5"), ("step-gain", "1000000000")];
    let noisy = |port| if port == 1 { vec![("frame-errors", "100 %")] } else { Vec::new() };
    let mut cell = cell(2, &shared, noisy);
    let received = saturate(&mut cell, 2, 1500, us(2_000_000))[1];
    // Two in vain at 54 Mbit/s, then five at 48, and so on.
    let spoilt = count(&cell, Some(1), "spoilt");
    assert!(
        received > 1000 && (spoilt as f64 / received as f64 - 0.4).abs() < 0.01,
        "{spoilt} and {received}"
    );
}

#[test]
fn what_is_for_everybody_goes_once_at_the_basic_rate() {
    let (mut cell, mut out) = (alike(4, &[]), Outcome::default());
    let everyone = |id| Packet { to: Destination::Everyone, ..packet(id, 0, 200) };
    cell.offer(us(0), Port(2), everyone(0), &mut out);
    finish(&mut cell, &mut out);
    // 242 bytes and 22 bits: 82 symbols at 24 bits.
    let at = us(9 + 20 + 82 * 4 + 6);
    assert_eq!(arrivals(&out), [(0, 0, at), (0, 1, at), (0, 3, at)]);
    let counters = cell.counters(Port(2));
    assert_eq!((counters.offered, counters.copied, counters.delivered), (1, 2, 3));
    out = Outcome::default();
    for from in [0, 1] {
        cell.offer(us(9000), Port(from), everyone(1 + u64::from(from)), &mut out);
    }
    finish(&mut cell, &mut out);
    assert_eq!(drops(&out), [(1, DropCause::Collision), (2, DropCause::Collision)]);
    assert!(out.deliveries.is_empty());
}

#[test]
fn noise_spares_some_receivers_of_a_frame_for_everybody() {
    let far = |port| if port == 1 { vec![("frame-errors", "100 %")] } else { Vec::new() };
    // Eight steps below, nothing is gained.
    let (mut cell, mut out) = (cell(3, &[("step-gain", "1")], far), Outcome::default());
    cell.offer(us(0), Port(0), Packet { to: Destination::Everyone, ..packet(0, 0, 200) }, &mut out);
    finish(&mut cell, &mut out);
    assert_eq!(drops(&out), [(0, DropCause::FrameError)]);
    assert_eq!(arrivals(&out).iter().map(|arrival| arrival.1).collect::<Vec<_>>(), [2]);
}

const HUB: Given = &[("mode", "access-point")];

#[test]
fn through_an_access_point_a_packet_crosses_the_channel_twice() {
    let (mut cell, mut out) = (alike(3, HUB), Outcome::default());
    cell.offer(us(0), Port(1), packet(0, 2, 1500), &mut out);
    cell.offer(us(0), Port(1), packet(1, 0, 1500), &mut out);
    finish(&mut cell, &mut out);
    let mut arrived = arrivals(&out);
    arrived.sort_unstable();
    assert_eq!((arrived[0].1, arrived[1].1), (2, 0));
    assert!(arrived[0].2 >= us(9 + 258 + 44 + 28 + 258), "{arrived:?}");
    assert_eq!((count(&cell, Some(0), "transmissions"), count(&cell, Some(1), "transmissions")), (1, 2));
    let (hub, origin) = (cell.counters(Port(0)), cell.counters(Port(1)));
    assert_eq!((hub.offered, hub.delivered, hub.dequeued), (0, 0, 1));
    assert_eq!((origin.offered, origin.delivered, origin.dequeued), (2, 2, 2));
}

/// Contending for the channel is waiting.
#[test]
fn a_sojourn_lasts_until_the_first_transmission() {
    let (mut cell, mut out) = (alike(2, &[]), Outcome::default());
    for id in 0..3 {
        cell.offer(us(0), Port(0), packet(id, 1, 1500), &mut out);
    }
    finish(&mut cell, &mut out);
    let arrived: Vec<Time> = arrivals(&out).into_iter().map(|(_, _, at)| at).collect();
    let counted = cell.counters(Port(0));
    let airtime = counted.busy.total() / 3;
    let started = arrived.iter().fold(Duration::ZERO, |sum, at| sum + (at.since(us(0)) - airtime));
    assert_eq!((counted.dequeued, counted.sojourn_total), (3, started));
}

#[test]
fn what_overflows_at_the_access_point_is_its_senders_loss() {
    // Two send to each other: the access point gets a third of the channel and is to carry half of the load.
    let (mut cell, mut out) = (alike(3, HUB), Outcome::default());
    for id in 0..2000 {
        cell.offer(us(id * 350), Port(1 + (id % 2) as u16), packet(id, 2 - (id % 2) as u16, 1500), &mut out);
    }
    finish(&mut cell, &mut out);
    let full = |port| cell.counters(Port(port)).dropped[DropCause::QueueFull.index()];
    assert_eq!(full(0), 0);
    for port in [1, 2] {
        let counters = cell.counters(Port(port));
        assert_eq!(counters.offered, counters.delivered + counters.dropped.iter().sum::<u64>());
        assert!(full(port) > 100, "{counters:?}");
    }
}

#[test]
fn an_access_point_repeats_what_is_for_everybody_and_keeps_what_is_for_nobody() {
    let (mut cell, mut out) = (alike(4, HUB), Outcome::default());
    cell.offer(us(0), Port(2), Packet { to: Destination::Everyone, ..packet(0, 0, 200) }, &mut out);
    cell.offer(us(0), Port(2), Packet { to: Destination::Nobody, ..packet(1, 0, 200) }, &mut out);
    finish(&mut cell, &mut out);
    let mut stations: Vec<u16> = arrivals(&out).iter().map(|arrival| arrival.1).collect();
    stations.sort_unstable();
    assert_eq!(stations, [0, 1, 3], "all but the sender");
    assert_eq!(drops(&out), [(1, DropCause::NoStation)]);
    assert_eq!(count(&cell, Some(0), "transmissions"), 1);
}

#[test]
fn strangers_take_their_share_of_the_channel() {
    for (share, left) in [("20 %", 0.8), ("60 %", 0.4)] {
        let mut cell = alike(2, &[("occupied", share), ("occupied-for", "10 ms")]);
        let received = saturate(&mut cell, 2, 1500, us(60_000_000))[1] as f64 / 60.0;
        let expected = left * bianchi(1, EXCHANGE, 9.0);
        assert!((received / expected - 1.0).abs() < 0.04, "{share}: {received} instead of {expected}");
    }
}

#[test]
fn strangers_cost_no_events_while_nobody_sends() {
    let (mut cell, mut out) = (alike(2, &[("occupied", "100 %")]), Outcome::default());
    cell.advance(us(1_000_000), &mut out);
    assert_eq!(cell.next_event(), None);
    cell.offer(us(1_000_000), Port(1), packet(0, 0, 100), &mut out);
    finish(&mut cell, &mut out);
    assert_eq!(out.deliveries.len(), 1, "99 % is the most");
}
