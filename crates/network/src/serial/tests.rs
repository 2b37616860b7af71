use trunkline_core::schema::Limit;
use trunkline_core::{Amount, Packet, PacketId, Port, Time};

use super::*;
use crate::bucket::{Excess, TokenBucket};
use crate::fate::{DropCause, Fate, Fates};
use crate::medium::{Figure, Medium, MediumCounters, Outcome};
use crate::queue::{Backlog, Dequeued, Fifo};

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

/// 8 Mbit/s: a byte takes a microsecond, a kilobyte a millisecond.
fn config(queue: Box<dyn Queue>) -> SerialConfig {
    SerialConfig {
        place: "link.test/a-b".into(),
        rate: Rate::from_bits_per_second(8_000_000),
        delay: Duration::from_millis(100),
        mtu: Bytes(1500),
        overhead: Bytes::ZERO,
        shaper: None,
        policer: None,
        queue,
        impairments: Impairments::default(),
    }
}

fn fifo(packets: u64) -> Box<dyn Queue> {
    Box::new(Fifo::new(Limit::Packets(packets)))
}

fn link(there: SerialConfig) -> SerialLink {
    SerialLink::new([there, config(fifo(100))], Seed::new(1, 0))
}

fn packet(id: u64, size: u64) -> Packet {
    Packet { id: PacketId(id), size: Bytes(size), bytes: vec![0; size as usize], ..Packet::default() }
}

fn arrivals(out: &Outcome) -> Vec<(u64, Time)> {
    out.deliveries.iter().map(|delivery| (delivery.packet.id.0, delivery.at)).collect()
}

fn drops(out: &Outcome) -> Vec<(u64, Time, DropCause)> {
    let dropped = out.fates.0.iter().map(|fate| match fate {
        Fate::Dropped { at, packet, cause } => (packet.id.0, *at, *cause),
        other => panic!("{other:?}"),
    });
    dropped.collect()
}

#[test]
fn on_an_idle_line_a_packet_takes_its_transmission_and_the_delay() {
    let (mut link, mut out) = (link(config(fifo(1))), Outcome::default());
    link.offer(ms(5), Port(0), packet(1, 1000), &mut out);
    assert_eq!(arrivals(&out), [(1, ms(106))]);
    assert_eq!(out.deliveries[0].to, Port(1));
    assert_eq!(link.next_event(), None, "nothing waits, so nobody needs to call");
}

#[test]
fn a_busy_line_lets_packets_wait_and_transmits_back_to_back() {
    let (mut link, mut out) = (link(config(fifo(100))), Outcome::default());
    for id in 0..4 {
        link.offer(ms(0), Port(0), packet(id, 1000), &mut out);
    }
    assert_eq!(arrivals(&out), [(0, ms(101))]);
    assert_eq!(link.next_event(), Some(ms(1)));
    link.advance(ms(2), &mut out);
    assert_eq!(arrivals(&out), [(0, ms(101)), (1, ms(102)), (2, ms(103))]);
    assert_eq!(link.next_event(), Some(ms(3)));
    link.advance(ms(50), &mut out);
    assert_eq!(arrivals(&out)[3], (3, ms(104)), "a late call changes nothing");
    assert_eq!(out.deliveries[3].packet.enqueued, ms(0));
    let counters = link.counters(Port(0));
    assert_eq!((counters.offered, counters.delivered, counters.dequeued), (4, 4, 4));
    assert_eq!(counters.busy.total(), Duration::from_millis(4));
    assert_eq!(counters.sojourn_total, Duration::from_millis(1 + 2 + 3));
    assert_eq!(counters.sojourns.longest(), Duration::from_millis(3));
    assert_eq!((counters.backlog_packets_max, counters.backlog_max), (3, Bytes(3000)));
    assert_eq!(link.counters(Port(1)), MediumCounters::default());
}

#[test]
fn overhead_takes_time_on_the_line_and_no_room_in_the_queue() {
    let there =
        SerialConfig { overhead: Bytes(38), ..config(Box::new(Fifo::new(Limit::Bytes(Bytes(1000))))) };
    let (mut link, mut out) = (link(there), Outcome::default());
    link.offer(ms(0), Port(0), packet(0, 1000), &mut out);
    link.offer(ms(0), Port(0), packet(1, 1000), &mut out);
    assert_eq!(arrivals(&out)[0].1, ms(101) + Duration::from_micros(38));
    assert!(drops(&out).is_empty());
    assert_eq!(link.counters(Port(0)).transmitted, Bytes(1038));
}

#[test]
fn at_equal_times_the_departure_comes_before_the_arrival() {
    let (mut link, mut out) = (link(config(fifo(1))), Outcome::default());
    link.offer(ms(0), Port(0), packet(0, 1000), &mut out);
    link.offer(ms(0), Port(0), packet(1, 1000), &mut out);
    link.offer(ms(0), Port(0), packet(2, 1000), &mut out);
    assert_eq!(drops(&out), [(2, ms(0), DropCause::QueueFull)]);
    // The line becomes free at 1 ms; packet 1 leaves the queue and makes room for packet 3.
    link.offer(ms(1), Port(0), packet(3, 1000), &mut out);
    link.advance(ms(10), &mut out);
    assert_eq!(arrivals(&out), [(0, ms(101)), (1, ms(102)), (3, ms(103))]);
}

#[test]
fn a_packet_above_the_mtu_is_dropped_with_its_cause() {
    let (mut link, mut out) = (link(config(fifo(1))), Outcome::default());
    link.offer(ms(3), Port(0), packet(0, 1501), &mut out);
    link.offer(ms(3), Port(0), packet(1, 1500), &mut out);
    assert_eq!(drops(&out), [(0, ms(3), DropCause::TooLarge)]);
    assert_eq!(out.deliveries.len(), 1);
}

#[test]
fn directions_share_nothing_and_events_stand_in_the_order_of_time() {
    let slow = SerialConfig { rate: Rate::from_bits_per_second(800_000), ..config(fifo(100)) };
    let (mut link, mut out) = (link(slow), Outcome::default());
    for id in 0..3 {
        link.offer(ms(0), Port(0), packet(id, 1000), &mut out);
        link.offer(ms(0), Port(1), packet(10 + id, 1000), &mut out);
    }
    out.deliveries.clear();
    link.advance(ms(100), &mut out);
    assert_eq!(arrivals(&out), [(11, ms(102)), (12, ms(103)), (1, ms(120)), (2, ms(130))]);
}

/// Lets packets go at whole multiples of 10 ms only: the simplest shaper.
struct Gate(Fifo);

impl Queue for Gate {
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        self.0.enqueue(now, packet, fates);
    }
    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Dequeued {
        let period = Duration::from_millis(10).as_nanos();
        let open = Time::from_nanos(now.as_nanos().next_multiple_of(period));
        if open > now && self.backlog().packets > 0 {
            return Dequeued::NotBefore(open);
        }
        self.0.dequeue(now, fates)
    }
    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
}

#[test]
fn a_shaper_may_hold_packets_back_from_an_idle_line() {
    let (mut link, mut out) =
        (link(config(Box::new(Gate(Fifo::new(Limit::Packets(9)))))), Outcome::default());
    link.offer(ms(2), Port(0), packet(0, 1000), &mut out);
    assert_eq!(link.next_event(), Some(ms(10)));
    link.offer(ms(3), Port(0), packet(1, 1000), &mut out);
    assert_eq!((link.next_event(), out.deliveries.len()), (Some(ms(10)), 0));
    link.advance(ms(15), &mut out);
    // At 11 ms the line was free and the gate shut.
    assert_eq!(arrivals(&out), [(0, ms(111))]);
    assert_eq!(link.next_event(), Some(ms(20)));
    link.advance(ms(20), &mut out);
    assert_eq!(arrivals(&out)[1], (1, ms(121)));
    assert_eq!(link.next_event(), None);
}

#[test]
fn packets_that_end_within_a_nanosecond_do_not_stop_time() {
    let fast = SerialConfig { rate: Rate::from_bits_per_second(1_000_000_000_000), ..config(fifo(100)) };
    let (mut link, mut out) = (link(fast), Outcome::default());
    for id in 0..100 {
        link.offer(ms(1), Port(0), packet(id, 1), &mut out);
        assert!(link.next_event().is_none_or(|next| next > ms(1)));
    }
    link.advance(ms(2), &mut out);
    // 800 bits at 1 bit per picosecond.
    assert_eq!(arrivals(&out).last(), Some(&(99, ms(101) + Duration::from_nanos(1))));
}

#[test]
fn a_shaped_packet_leaves_when_there_are_tokens_for_it() {
    // 80 kbit/s: 1000 B in 100 ms; the bucket holds two packets.
    let shaper = Some(TokenBucket::new(Rate::from_bits_per_second(80_000), Bytes(2000)).into());
    let (mut link, mut out) = (link(SerialConfig { shaper, ..config(fifo(100)) }), Outcome::default());
    for id in 0..4 {
        link.offer(ms(0), Port(0), packet(id, 1000), &mut out);
    }
    link.advance(ms(1000), &mut out);
    assert_eq!(arrivals(&out), [(0, ms(101)), (1, ms(102)), (2, ms(201)), (3, ms(301))]);
    let waits = [98, 99].map(Duration::from_millis);
    let [mean, most] = [(waits[0] + waits[1]) / 4, waits[1]].map(Amount::Time);
    let figure = |name, amount| Figure { station: Some(Port(0)), name, amount: Some(amount) };
    assert_eq!(
        link.figures(Duration::from_secs(1)),
        [figure("shaper-wait-mean", mean), figure("shaper-wait-max", most)]
    );
}

#[test]
fn policed_packets_take_their_time_and_end_there() {
    // Two packets of 1000 B at once, and one each 100 ms.
    let bucket = || TokenBucket::new(Rate::from_bits_per_second(80_000), Bytes(2000));
    let run = |peak: Option<TokenBucket>, excess| {
        let policer = Some(Policer::new(bucket(), peak, excess));
        let (mut link, mut out) = (link(SerialConfig { policer, ..config(fifo(100)) }), Outcome::default());
        for id in 0..5 {
            link.offer(ms(0), Port(0), packet(id, 1000), &mut out);
        }
        link.advance(ms(100), &mut out);
        link.offer(ms(100), Port(0), packet(5, 1000), &mut out);
        let urgent = out.deliveries.iter().filter(|delivery| delivery.packet.priority == 0).count();
        let counts =
            link.figures(Duration::from_secs(1)).iter().map(|figure| figure.amount).collect::<Vec<_>>();
        (urgent, arrivals(&out).iter().map(|&(id, _)| id).collect::<Vec<_>>(), drops(&out), counts)
    };
    let count = |counts: [u64; 4]| counts.map(|count| Some(Amount::Count(count))).to_vec();
    let policed =
        |ids: &[(u64, u64)]| ids.iter().map(|&(id, at)| (id, ms(at), DropCause::Policed)).collect::<Vec<_>>();
    let discarded = (3, vec![0, 1, 5], policed(&[(2, 2), (3, 3), (4, 4)]), count([3, 0, 0, 3]));
    assert_eq!(run(None, Excess::Discard), discarded);
    assert_eq!(run(None, Excess::Pass), (6, (0..6).collect(), vec![], count([3, 3, 0, 0])));
    assert_eq!(run(None, Excess::Tag), (3, (0..6).collect(), vec![], count([3, 0, 3, 0])));
    // A peak rate with a bucket for three: one packet is between the two.
    let peak = Some(TokenBucket::new(Rate::from_bits_per_second(160_000), Bytes(3000)));
    assert_eq!(
        run(peak, Excess::Tag),
        (3, vec![0, 1, 2, 5], policed(&[(3, 3), (4, 4)]), count([3, 0, 1, 2]))
    );
}

/// A large packet is followed by a small one that finds as many tokens as have come during its own transmission.
#[test]
fn packets_are_policed_when_they_have_left_the_line() {
    // 500 B/ms behind a line of 1000 B/ms.
    for size in [100, 700, 1500] {
        let bucket = TokenBucket::new(Rate::from_bits_per_second(4_000_000), Bytes(1500));
        let policer = Some(Policer::new(bucket, None, Excess::Discard));
        let (mut link, mut out) = (link(SerialConfig { policer, ..config(fifo(100)) }), Outcome::default());
        // At 1.5 ms the first one takes all tokens.
        link.offer(ms(0), Port(0), packet(0, 1500), &mut out);
        link.offer(ms(0), Port(0), packet(1, size), &mut out);
        // By then, tokens for the third one have come.
        let later = Duration::from_micros(1500 + 3 * size);
        link.advance(Time::ZERO + later, &mut out);
        link.offer(Time::ZERO + later, Port(0), packet(2, size), &mut out);
        let ids: Vec<u64> = arrivals(&out).iter().map(|&(id, _)| id).collect();
        assert_eq!(ids, [0, 2], "{size} B");
    }
}

#[test]
fn at_equal_times_the_first_direction_comes_first() {
    let (mut link, mut out) = (link(config(fifo(100))), Outcome::default());
    for (id, port) in [(10, 1), (0, 0), (11, 1), (1, 0)] {
        link.offer(ms(0), Port(port), packet(id, 1000), &mut out);
    }
    out.deliveries.clear();
    link.advance(ms(1), &mut out);
    assert_eq!(arrivals(&out), [(1, ms(102)), (11, ms(102))]);
}
