//! Packet accounting of media: no packet is lost without a word, none is invented, and none is altered in silence.

use std::collections::BTreeMap;

use trunkline_core::{Destination, Packet, PacketId, Port, Time};
use trunkline_network::bucket::LEAST_URGENT;
use trunkline_network::{
    Backlog, Change, Delivery, DropCause, Fate, Fixed, MarkCause, Medium, MediumCounters, Outcome,
};

/// A medium that is checked at every call.
///
/// It is itself a [`Medium`], to be driven in the other's place, and panics where the contract is broken:
/// - `offered + copied = delivered + dropped + waiting` by the medium's own counters and by what it handed out, per port;
/// - every packet was offered, comes out once (duplicates that are counted apart) or is dropped once, and one for everyone
///   once per station;
/// - it comes out where it was to;
/// - its bytes are those offered, or one bit of them differs and it is counted as corrupted;
/// - no packet arrives before it was offered, and no fate is dated before that or after the call;
/// - `next_event` is later than the call.
pub struct Accounted {
    medium: Box<dyn Medium>,
    packets: BTreeMap<PacketId, Account>,
    ports: BTreeMap<Port, MediumCounters>,
    now: Time,
}

struct Account {
    packet: Packet,
    from: Port,
    at: Time,
    /// Where it came out.
    delivered: Vec<Port>,
    /// How often it was dropped: more than once only if it is for everyone.
    dropped: u64,
}

impl Account {
    fn is_settled(&self) -> bool {
        !self.delivered.is_empty() || self.dropped > 0
    }
}

impl Accounted {
    /// Checks a medium from now on; it must not have been offered anything.
    pub fn new(medium: Box<dyn Medium>) -> Accounted {
        Accounted { medium, packets: BTreeMap::new(), ports: BTreeMap::new(), now: Time::ZERO }
    }

    /// Lets the medium finish all it has, and checks that nothing waits any more.
    pub fn finish(&mut self, out: &mut Outcome) {
        while let Some(next) = self.medium.next_event() {
            self.advance(next, out);
        }
        for (id, account) in &self.packets {
            assert!(account.is_settled(), "packet {} was never delivered nor dropped", id.0);
        }
        for (&port, expected) in &self.ports {
            assert_eq!(self.medium.counters(port).copied, expected.copied, "port {}: copied", port.0);
        }
    }

    fn call(&mut self, now: Time, out: &mut Outcome, act: impl FnOnce(&mut dyn Medium, &mut Outcome)) {
        assert!(now >= self.now, "the test drove time backwards, from {} to {now}", self.now);
        self.now = now;
        let (deliveries, fates) = (out.deliveries.len(), out.fates.0.len());
        act(&mut *self.medium, out);
        for delivery in &out.deliveries[deliveries..] {
            self.delivered(delivery);
        }
        for fate in &out.fates.0[fates..] {
            self.fate(fate);
        }
        for (&port, expected) in &self.ports {
            let counted = self.medium.counters(port);
            let ours = [expected.offered, expected.delivered, expected.duplicated, expected.corrupted];
            let its = [counted.offered, counted.delivered, counted.duplicated, counted.corrupted];
            assert_eq!(its, ours, "port {}: offered, delivered, duplicated, corrupted", port.0);
            assert_eq!(counted.dropped, expected.dropped, "port {}: dropped {:?}", port.0, DropCause::ALL);
            assert_eq!(counted.marked, expected.marked, "port {}: marked {:?}", port.0, MarkCause::ALL);
        }
        if let Some(next) = self.medium.next_event() {
            assert!(
                next > now,
                "next_event is {} ns, which is not later than {} ns",
                next.as_nanos(),
                now.as_nanos()
            );
        }
    }

    fn delivered(&mut self, delivery: &Delivery) {
        let Delivery { at, to, packet } = delivery;
        let id = packet.id.0;
        let Some(account) = self.packets.get_mut(&packet.id) else { panic!("packet {id} was never offered") };
        assert_ne!(*to, account.from, "packet {id} came back to port {}", to.0);
        assert!(*at >= account.at, "packet {id} arrived before it was offered");
        let flipped = bits_changed(&account.packet, packet);
        assert!(flipped <= 1, "packet {id} was altered in {flipped} bits");
        let port = self.ports.entry(account.from).or_default();
        if account.delivered.contains(to) {
            port.duplicated += 1;
            return;
        }
        let is_for_all = account.packet.to == Destination::Everyone;
        assert!(is_for_all || account.dropped == 0, "packet {id} was delivered after it was dropped");
        assert!(
            is_for_all || account.packet.to == Destination::Port(*to),
            "packet {id} for {:?} came to port {}",
            account.packet.to,
            to.0
        );
        port.copied += u64::from(account.is_settled());
        port.delivered += 1;
        port.corrupted += u64::from(flipped);
        account.delivered.push(*to);
    }

    fn fate(&mut self, fate: &Fate) {
        match fate {
            Fate::Dropped { at, packet, cause } => {
                let id = packet.id.0;
                let Some(account) = self.packets.get_mut(&packet.id) else {
                    panic!("packet {id} was never offered")
                };
                let is_for_all = account.packet.to == Destination::Everyone;
                assert!(is_for_all || !account.is_settled(), "packet {id} was dropped after its end");
                assert!(
                    *at >= account.at && *at <= self.now,
                    "packet {id} was dropped at {at}, not between its offer and now"
                );
                let port = self.ports.entry(account.from).or_default();
                port.copied += u64::from(account.is_settled());
                port.dropped[cause.index()] += 1;
                account.dropped += 1;
            }
            Fate::Marked { at, id, flow, cause } => {
                let Some(account) = self.packets.get(id) else { panic!("packet {} was never offered", id.0) };
                assert_eq!(account.packet.flow, *flow, "packet {} was marked as another flow's", id.0);
                assert!(*at >= account.at && *at <= self.now, "packet {} was marked at {at}", id.0);
                self.ports.entry(account.from).or_default().marked[cause.index()] += 1;
            }
        }
    }
}

impl Medium for Accounted {
    fn offer(&mut self, at: Time, from: Port, packet: Packet, out: &mut Outcome) {
        let account = Account { packet: packet.clone(), from, at, delivered: Vec::new(), dropped: 0 };
        let id = packet.id;
        assert!(self.packets.insert(id, account).is_none(), "the test offered packet {} twice", id.0);
        self.ports.entry(from).or_default().offered += 1;
        self.call(at, out, |medium, out| medium.offer(at, from, packet, out));
    }

    fn advance(&mut self, to: Time, out: &mut Outcome) {
        self.call(to, out, |medium, out| medium.advance(to, out));
    }

    fn next_event(&self) -> Option<Time> {
        self.medium.next_event()
    }

    fn counters(&self, from: Port) -> MediumCounters {
        self.medium.counters(from)
    }

    fn backlog(&self, from: Port) -> Backlog {
        self.medium.backlog(from)
    }

    fn end_measurement(&mut self, at: Time) {
        self.medium.end_measurement(at);
    }

    fn change(&mut self, at: Time, from: Port, change: Change<'_>, out: &mut Outcome) -> Result<(), Fixed> {
        let mut changed = Ok(());
        self.call(at, out, |medium, out| changed = medium.change(at, from, change, out));
        changed
    }
}

/// In how many bits the bytes differ; everything else that a medium must keep has to be the same.
fn bits_changed(offered: &Packet, arrived: &Packet) -> u32 {
    let id = offered.id.0;
    // A policer may tag it.
    let priority = if arrived.priority == LEAST_URGENT { LEAST_URGENT } else { offered.priority };
    assert_eq!(priority, arrived.priority, "packet {id} was given another priority");
    let kept = |p: &Packet| (p.flow, p.size, p.backward, p.hop, p.from, p.bytes.len());
    assert_eq!(kept(offered), kept(arrived), "packet {id} was altered outside its bytes");
    offered.bytes.iter().zip(&arrived.bytes).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers at once, except that it does something wrong to packet 1.
    struct Faulty {
        wrong: fn(Packet, &mut Outcome),
        counters: MediumCounters,
    }

    impl Medium for Faulty {
        fn offer(&mut self, at: Time, _: Port, packet: Packet, out: &mut Outcome) {
            self.counters.offered += 1;
            self.counters.delivered += 1;
            if packet.id == PacketId(1) {
                (self.wrong)(packet, out);
            } else {
                out.deliveries.push(Delivery { at, to: Port(1), packet });
            }
        }
        fn advance(&mut self, _: Time, _: &mut Outcome) {}
        fn next_event(&self) -> Option<Time> {
            None
        }
        fn counters(&self, _: Port) -> MediumCounters {
            self.counters.clone()
        }
        fn backlog(&self, _: Port) -> Backlog {
            Backlog::default()
        }
        fn end_measurement(&mut self, _: Time) {}
    }

    fn drive(wrong: fn(Packet, &mut Outcome)) {
        let mut medium = Accounted::new(Box::new(Faulty { wrong, counters: MediumCounters::default() }));
        let mut out = Outcome::default();
        for id in 0..3 {
            let to = Destination::Port(Port(1));
            let packet = Packet { id: PacketId(id), to, bytes: vec![0; 8], ..Packet::default() };
            medium.offer(Time::from_nanos(id + 10), Port(0), packet, &mut out);
        }
        medium.finish(&mut out);
    }

    fn deliver(packet: Packet, out: &mut Outcome) {
        out.deliveries.push(Delivery { at: Time::from_nanos(50), to: Port(1), packet });
    }

    #[test]
    fn a_faultless_medium_passes() {
        drive(deliver);
    }

    #[test]
    #[should_panic(expected = "offered, delivered, duplicated, corrupted")]
    fn a_packet_that_vanishes_is_missed() {
        drive(|_, _| {});
    }

    #[test]
    #[should_panic(expected = "was never offered")]
    fn an_invented_packet_is_refused() {
        drive(|packet, out| deliver(Packet { id: PacketId(99), ..packet }, out));
    }

    #[test]
    #[should_panic(expected = "came to port 2")]
    fn a_packet_that_comes_out_elsewhere_is_refused() {
        drive(|packet, out| out.deliveries.push(Delivery { at: Time::from_nanos(50), to: Port(2), packet }));
    }

    #[test]
    #[should_panic(expected = "altered in 2 bits")]
    fn altered_bytes_are_noticed() {
        drive(|packet, out| deliver(Packet { bytes: vec![0, 0, 0, 5, 0, 0, 0, 0], ..packet }, out));
    }

    #[test]
    #[should_panic(expected = "offered, delivered, duplicated, corrupted")]
    fn a_flipped_bit_must_be_counted() {
        drive(|packet, out| deliver(Packet { bytes: vec![0, 0, 0, 4, 0, 0, 0, 0], ..packet }, out));
    }

    #[test]
    #[should_panic(expected = "before it was offered")]
    fn an_arrival_in_the_past_is_refused() {
        drive(|packet, out| out.deliveries.push(Delivery { at: Time::ZERO, to: Port(1), packet }));
    }
}
