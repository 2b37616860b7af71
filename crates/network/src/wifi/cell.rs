//! The channel of a cell: who transmits when, and what becomes of it.

mod reception;

use core::cmp::Reverse;
use core::mem;
use std::collections::BinaryHeap;

use trunkline_core::schema::Values;
use trunkline_core::{Amount, Destination, Duration, Packet, PacketId, Port, Seed, Time};

use super::phy::{self, Phy};
use super::station::{Air, Fallback, Frame, Receiver, Station};
use super::strangers::Strangers;
use super::{ACCESS_POINT, EQUAL};
use crate::busy::BusyTime;
use crate::fate::{DropCause, Fate};
use crate::medium::{Figure, Medium, MediumCounters, Outcome, PortConfig};
use crate::queue::{Backlog, Dequeued};

/// The port of the access point, in a cell that has one.
const HUB: Port = Port(0);
/// With more strangers than this nobody would ever send anything.
const MOST_OCCUPIED: f64 = 0.99;

/// A Wi-Fi cell.
///
/// Slots of the backoff are numbered through, and only idle ones count: a station that has drawn a backoff knows the
/// number of the slot in which it ends, and whatever keeps the channel busy just moves the slots that are left. So a
/// transmission is two or three events however many stations wait for however many slots, and there are none while
/// nobody has anything to send.
///
/// A station that finds the channel idle begins with the next slot. It draws a backoff before a transmission if it found
/// the channel busy, and after every transmission whether it has more to send or not (section 10.3.4.3).
#[derive(Debug)]
pub struct WifiCell {
    phy: Phy,
    has_hub: bool,
    retry_limit: u64,
    fallback: Fallback,
    step_gain: f64,
    stations: Vec<Station>,
    /// Stations with a frame, by the slot in which their backoff ends.
    contenders: BinaryHeap<Reverse<(u64, u16)>>,
    /// Those that transmit, or have transmitted last.
    senders: Vec<u16>,
    strangers: Option<Strangers>,
    /// The number of the next slot to begin at `idle_from`.
    slot: u64,
    /// When the first slot since the channel was last busy begins, or will begin.
    idle_from: Time,
    /// Before this time the channel is busy.
    busy_until: Time,
    /// Frames are on the air, or their acknowledgement, or the silence in place of it.
    transmitting: bool,
    /// A packet on the air to the access point and when it will be there.
    relayed: Option<(Time, Packet)>,
    /// The first of the stations' own.
    wake: Time,
    /// How long the cell has used the channel, acknowledgements and silences in their place included.
    used: BusyTime,
    collisions: u64,
}

impl WifiCell {
    /// The cell of these stations.
    ///
    /// # Panics
    /// If the values are not those of this medium's parameters: a mistake in the program, never in a file.
    pub fn new(shared: &Values, ports: Vec<PortConfig<'_>>, seed: Seed) -> WifiCell {
        let phy = Phy::from(shared);
        let occupied = shared.ratio("occupied").value().min(MOST_OCCUPIED);
        // Strangers belong to the cell, whose name all places begin with: `link.cell/a`.
        let cell = ports.first().map_or("", |port| port.place.rsplit_once('/').map_or("", |(cell, _)| cell));
        let strangers = seed.stream(&format!("{cell}/strangers"));
        WifiCell {
            phy,
            has_hub: shared.text("mode") == ACCESS_POINT,
            retry_limit: shared.integer("retry-limit"),
            fallback: Fallback {
                after: shared.integer("fallback-after"),
                recover: shared.integer("recover-after"),
            },
            step_gain: shared.number("step-gain"),
            stations: ports.into_iter().map(|config| Station::new(config, seed)).collect(),
            contenders: BinaryHeap::new(),
            senders: Vec::new(),
            strangers: Strangers::new(
                occupied,
                shared.duration("occupied-for"),
                shared.text("occupied-lengths") == EQUAL,
                strangers,
            ),
            slot: 0,
            idle_from: Time::ZERO,
            busy_until: Time::ZERO,
            transmitting: false,
            relayed: None,
            wake: Time::MAX,
            used: BusyTime::default(),
            collisions: 0,
        }
    }
}

impl Medium for WifiCell {
    /// # Panics
    /// If the cell has no port `from`: a mistake in the driver.
    fn offer(&mut self, at: Time, from: Port, mut packet: Packet, out: &mut Outcome) {
        self.advance(at, out);
        // Nobody was there to notice them.
        while !self.transmitting && self.strangers_from() <= at {
            self.give_way();
        }
        packet.entered = from;
        let station = self.station(from);
        station.counters.offered += 1;
        if packet.size > station.mtu {
            station.lose(at, packet, DropCause::TooLarge, &mut out.fates);
            return;
        }
        self.enqueue(at, from, packet, out);
    }

    fn advance(&mut self, to: Time, out: &mut Outcome) {
        loop {
            let now = self.due();
            if now > to || now == Time::MAX {
                return;
            }
            if self.wake == now {
                self.ask_again(now, out);
            } else if let Some((_, packet)) = self.relayed.take_if(|(at, _)| *at == now) {
                self.enqueue(now, HUB, packet, out);
            } else if self.transmitting {
                self.conclude(now, out);
            } else if self.access() == now {
                self.transmit(now, out);
            } else {
                self.give_way();
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        let next = self.due();
        (next != Time::MAX).then_some(next)
    }

    fn counters(&self, from: Port) -> MediumCounters {
        self.stations.get(usize::from(from.0)).map(Station::counters).unwrap_or_default()
    }

    fn backlog(&self, from: Port) -> Backlog {
        self.stations.get(usize::from(from.0)).map(Station::waiting).unwrap_or_default()
    }

    fn under_way(&self, from: Port, at: Time) -> Option<(PacketId, f64)> {
        self.stations[usize::from(from.0)].counters.busy.under_way(at)
    }

    fn end_measurement(&mut self, at: Time) {
        self.used.end(at);
        self.stations.iter_mut().for_each(|station| station.counters.busy.end(at));
    }

    fn figures(&self, over: Duration) -> Vec<Figure> {
        let share = |busy: BusyTime| Amount::Share(busy.share(over));
        let mut figures = vec![
            Figure { station: None, name: "channel-use", amount: Some(share(self.used)) },
            Figure { station: None, name: "collisions", amount: Some(Amount::Count(self.collisions)) },
        ];
        for (port, station) in (0..).map(Port).zip(&self.stations) {
            let Air { transmissions, retries, collisions, errors } = station.air;
            let amounts = [
                ("airtime", share(station.counters.busy)),
                ("transmissions", Amount::Count(transmissions)),
                ("retries", Amount::Count(retries)),
                ("collided", Amount::Count(collisions)),
                ("spoilt", Amount::Count(errors)),
            ];
            let figure = |(name, amount)| Figure { station: Some(port), name, amount: Some(amount) };
            figures.extend(amounts.map(figure));
        }
        figures
    }
}

impl WifiCell {
    fn station(&mut self, port: Port) -> &mut Station {
        &mut self.stations[usize::from(port.0)]
    }

    /// When something happens next.
    fn due(&self) -> Time {
        let channel = match (&self.relayed, self.transmitting) {
            (Some((at, _)), _) => *at,
            (None, true) => self.busy_until,
            (None, false) if self.contenders.is_empty() => Time::MAX,
            (None, false) => self.access().min(self.strangers_from()),
        };
        channel.min(self.wake)
    }

    /// When the first backoff ends if nothing comes between.
    fn access(&self) -> Time {
        let first = self.contenders.peek();
        first.map_or(Time::MAX, |Reverse((slot, _))| self.idle_from + self.phy.slot * (slot - self.slot))
    }

    fn strangers_from(&self) -> Time {
        self.strangers.as_ref().map_or(Time::MAX, Strangers::next)
    }

    /// Lets strangers have the idle channel.
    fn give_way(&mut self) {
        let from = self.strangers_from();
        self.slot += self.slots_until(from);
        self.rest(from);
    }

    /// The slots that have passed at `now` of the channel's idle time.
    fn slots_until(&self, now: Time) -> u64 {
        now.since(self.idle_from).as_nanos() / self.phy.slot.as_nanos()
    }

    /// Sets when the channel that the cell leaves at `from` is idle again.
    fn rest(&mut self, from: Time) {
        self.busy_until = self.strangers.as_mut().map_or(from, |strangers| strangers.occupy(from));
        self.idle_from = self.busy_until + self.phy.difs();
    }

    /// Gives a packet to a station's queue, and to the station if it has none.
    fn enqueue(&mut self, now: Time, at: Port, packet: Packet, out: &mut Outcome) {
        let (id, origin, before) = (packet.id, packet.entered, out.fates.0.len());
        self.station(at).enqueue(now, packet, &mut out.fates);
        self.count(before, out, |marked| if marked == id { origin } else { at });
        if self.station(at).frame.is_none() && self.fetch(now, at, out) {
            self.begin(now, at);
        }
        self.station(at).note_backlog();
    }

    /// Asks the queues that said "not before" this time.
    fn ask_again(&mut self, now: Time, out: &mut Outcome) {
        for port in 0..self.stations.len() {
            let at = Port(port as u16);
            if self.stations[port].wake == now && self.fetch(now, at, out) {
                self.begin(now, at);
            }
        }
        self.wake = self.stations.iter().map(|station| station.wake).min().unwrap_or(Time::MAX);
    }

    /// Lets a station without a frame take the next packet from its queue; false if there is none.
    fn fetch(&mut self, now: Time, port: Port, out: &mut Outcome) -> bool {
        let before = out.fates.0.len();
        let next = self.station(port).dequeue(now, &mut out.fates);
        let Dequeued::Packet(mut packet) = next else {
            self.count(before, out, |_| port);
            self.wake = self.wake.min(self.station(port).wake);
            return false;
        };
        let (id, origin) = (packet.id, packet.entered);
        self.count(before, out, |marked| if marked == id { origin } else { port });
        let to = self.receiver(port, &packet);
        let station = self.station(port);
        let size = station.on_air(&packet);
        // The access point's transmission is not the sender's.
        if packet.entered == port {
            packet.on_line = size;
        }
        station.frame = Some(Frame { packet, size, to, transmissions: 0, settled: false });
        true
    }

    /// Lets a station that had nothing to send until now contend for the channel.
    fn begin(&mut self, now: Time, port: Port) {
        if now >= self.busy_until {
            let next = self.slot + if now < self.idle_from { 0 } else { self.slots_until(now) + 1 };
            let station = self.station(port);
            station.backoff = station.backoff.max(next);
        } else if self.station(port).backoff <= self.slot {
            self.back_off(port, 0);
        }
        self.contend(port);
    }

    /// Who is to acknowledge what a station sends.
    fn receiver(&self, from: Port, packet: &Packet) -> Receiver {
        if self.has_hub && from != HUB {
            return Receiver::Station(HUB);
        }
        match packet.to {
            Destination::Everyone => Receiver::All,
            Destination::Port(to) if to != packet.entered && usize::from(to.0) < self.stations.len() => {
                Receiver::Station(to)
            }
            Destination::Port(_) | Destination::Nobody => Receiver::Absent,
        }
    }

    /// Draws a station's backoff, which begins with the channel's next idle slot.
    fn back_off(&mut self, port: Port, failures: u64) {
        let (slot, window) = (self.slot, self.phy.window(failures));
        let station = self.station(port);
        station.backoff = slot + station.backoffs.below(window);
    }

    fn contend(&mut self, port: Port) {
        let slot = self.station(port).backoff;
        self.contenders.push(Reverse((slot, port.0)));
    }

    /// Lets those transmit whose backoff has ended.
    fn transmit(&mut self, now: Time, out: &mut Outcome) {
        let Some(&Reverse((first, _))) = self.contenders.peek() else { return };
        self.slot = first;
        let mut senders = mem::take(&mut self.senders);
        senders.clear();
        while let Some(&Reverse((slot, port))) = self.contenders.peek()
            && slot == first
        {
            self.contenders.pop();
            senders.push(port);
        }
        let collision = senders.len() > 1;
        self.busy_until = now;
        for &port in &senders {
            let end = self.send(now, Port(port), collision, out);
            self.busy_until = self.busy_until.max(end);
        }
        self.senders = senders;
        self.transmitting = true;
        self.used.add(self.busy_until, self.busy_until.since(now));
        self.collisions += u64::from(collision);
    }

    /// Lets a station transmit its frame, and returns when the channel is idle again as far as it goes.
    fn send(&mut self, now: Time, from: Port, collision: bool, out: &mut Outcome) -> Time {
        let Some(mut frame) = self.station(from).frame.take() else { return now };
        let rate = self.rate(from, &frame).0;
        let airtime = self.phy.airtime(frame.size, rate);
        let end = now + airtime;
        let station = self.station(from);
        station.counters.transmitted += frame.size;
        station.counters.busy.add(end, airtime);
        station.counters.busy.carries(frame.packet.id, 1.0);
        station.air.transmissions += 1;
        if frame.transmissions == 0 {
            station.note_sojourn(now.since(frame.packet.enqueued));
        }
        station.air.retries += u64::from(frame.transmissions > 0);
        station.air.collisions += u64::from(collision);
        frame.transmissions += 1;
        match frame.to {
            Receiver::All => {
                let packet = mem::take(&mut frame.packet);
                frame.settled = true;
                if collision {
                    let origin = self.station(packet.entered);
                    origin.lose(now, packet, DropCause::Collision, &mut out.fates);
                } else {
                    self.broadcast(now, end, from, (packet, &frame), out);
                }
            }
            Receiver::Station(to) if !collision && !self.spoilt(from, to, &frame) => {
                frame.settled = true;
                self.hand_over(now, end, to, mem::take(&mut frame.packet), out);
            }
            Receiver::Station(_) | Receiver::Absent => {}
        }
        let acknowledged = frame.to != Receiver::All || collision;
        self.station(from).frame = Some(frame);
        if acknowledged { end + self.phy.acknowledgement(rate) } else { end }
    }

    /// Ends a transmission: the senders learn what came of it, and draw their next backoff.
    fn conclude(&mut self, now: Time, out: &mut Outcome) {
        self.transmitting = false;
        self.rest(now);
        let senders = mem::take(&mut self.senders);
        for &port in &senders {
            self.settle(now, Port(port), out);
        }
        self.senders = senders;
    }

    fn settle(&mut self, now: Time, port: Port, out: &mut Outcome) {
        let Some(frame) = self.station(port).frame.take() else { return };
        self.adapt(port, &frame);
        if !frame.settled && frame.transmissions < self.retry_limit {
            self.back_off(port, frame.transmissions);
            self.station(port).frame = Some(frame);
            self.contend(port);
            return;
        }
        if !frame.settled {
            let cause = match frame.to {
                Receiver::Absent => DropCause::NoStation,
                Receiver::Station(_) | Receiver::All => DropCause::RetryLimit,
            };
            self.station(frame.packet.entered).lose(now, frame.packet, cause, &mut out.fates);
        }
        self.back_off(port, 0);
        if self.fetch(now, port, out) {
            self.contend(port);
        }
    }

    /// Lets a station choose its rate by what came of its last transmission.
    fn adapt(&mut self, port: Port, frame: &Frame) {
        let Receiver::Station(to) = frame.to else { return };
        let (fallback, lower) = (self.fallback, phy::below(self.rate(port, frame).0).is_some());
        let adaptation = match self.has_hub && port == HUB {
            true => &mut self.station(to).down,
            false => &mut self.station(port).up,
        };
        if frame.settled {
            adaptation.succeeded(fallback);
        } else {
            adaptation.failed(fallback, lower);
        }
    }

    /// Counts what a queue did, with the packets' origins: whose a marked packet was says `owner`.
    fn count(&mut self, from: usize, out: &Outcome, owner: impl Fn(PacketId) -> Port) {
        for fate in &out.fates.0[from..] {
            match fate {
                Fate::Dropped { packet, cause, .. } => {
                    self.station(packet.entered).counters.dropped[cause.index()] += 1;
                }
                Fate::Marked { id, cause, .. } => {
                    self.station(owner(*id)).counters.marked[cause.index()] += 1;
                }
            }
        }
    }
}
