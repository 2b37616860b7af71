//! What becomes of a frame on the air: at which rate it goes, whether noise spoils it, and where its packet comes out.

use trunkline_core::{Bytes, Destination, Packet, Port, Rate, Time};

use super::{HUB, WifiCell};
use crate::fate::DropCause;
use crate::medium::{Delivery, Outcome};
use crate::wifi::phy;
use crate::wifi::station::{Frame, Receiver};

impl WifiCell {
    /// The rate of a frame, and how many steps that is below the best for its receiver.
    pub(super) fn rate(&self, from: Port, frame: &Frame) -> (Rate, u64) {
        let station = &self.stations[usize::from(from.0)];
        let (best, wanted) = match frame.to {
            Receiver::All => {
                let basic = self.phy.basic_rate;
                return (basic, step_down(station.rate, |rate, _| rate > basic).1);
            }
            Receiver::Station(to) => {
                let receiver = &self.stations[usize::from(to.0)];
                let adaptation = if self.has_hub && from == HUB { &receiver.down } else { &station.up };
                (station.rate.min(receiver.rate), adaptation.steps)
            }
            Receiver::Absent => (station.rate, station.up.steps),
        };
        step_down(best, |_, steps| steps < wanted)
    }

    /// Whether noise spoils a frame on its way to a station.
    pub(super) fn spoilt(&mut self, from: Port, to: Port, frame: &Frame) -> bool {
        let gain = libm::pow(self.step_gain, self.rate(from, frame).1 as f64);
        let spared = [from, to].map(|port| self.stations[usize::from(port.0)].spared(frame.size, gain));
        let air = self.station(from);
        let spared = spared[0] * spared[1];
        let spoilt = spared < 1.0 && air.noise.chance(1.0 - spared);
        air.air.errors += u64::from(spoilt);
        spoilt
    }

    /// Gives a packet to the station that has received it: to an access point that is to pass it on, or at its
    /// destination.
    pub(super) fn hand_over(&mut self, now: Time, end: Time, to: Port, packet: Packet, out: &mut Outcome) {
        let is_relayed = self.has_hub && packet.entered != HUB;
        match packet.to {
            _ if !is_relayed || to != HUB => self.deliver(now, end, to, packet, out),
            Destination::Port(HUB) => self.deliver(now, end, to, packet, out),
            Destination::Port(_) => {
                // The sender's transmission counts now, however long the packet waits here.
                out.carried.push(Packet { bytes: Vec::new(), ..packet });
                self.relayed = Some((end, Packet { on_line: Bytes::ZERO, ..packet }));
            }
            Destination::Everyone => {
                if self.stations.len() > 2 {
                    self.station(packet.entered).counters.copied += 1;
                    self.relayed = Some((end, packet.clone()));
                }
                self.deliver(now, end, to, packet, out);
            }
            Destination::Nobody => {
                self.station(packet.entered).lose(now, packet, DropCause::NoStation, &mut out.fates);
            }
        }
    }

    /// Delivers what is for everybody to those whom noise spares.
    pub(super) fn broadcast(
        &mut self,
        now: Time,
        end: Time,
        from: Port,
        (packet, frame): (Packet, &Frame),
        out: &mut Outcome,
    ) {
        let origin = packet.entered;
        let mut receivers =
            (0..self.stations.len() as u16).map(Port).filter(|&to| to != from && to != origin);
        // The last one gets the packet itself.
        let Some(last) = receivers.next_back() else { return };
        for to in receivers {
            self.station(origin).counters.copied += 1;
            self.reach(now, end, (from, to), (packet.clone(), frame), out);
        }
        self.reach(now, end, (from, last), (packet, frame), out);
    }

    /// Delivers what is for everybody to one of them, if noise spares it there.
    fn reach(
        &mut self,
        now: Time,
        end: Time,
        (from, to): (Port, Port),
        (packet, frame): (Packet, &Frame),
        out: &mut Outcome,
    ) {
        if self.spoilt(from, to, frame) {
            self.station(packet.entered).lose(now, packet, DropCause::FrameError, &mut out.fates);
        } else {
            self.deliver(now, end, to, packet, out);
        }
    }

    /// Lets a packet out at its destination, unless its sender's impairments are against it.
    fn deliver(&mut self, now: Time, end: Time, to: Port, mut packet: Packet, out: &mut Outcome) {
        let origin = self.station(packet.entered);
        let passage = origin.stage.pass(end, &mut packet);
        if passage.lost {
            return origin.lose(now, packet, DropCause::LinkLoss, &mut out.fates);
        }
        let counters = &mut origin.counters;
        counters.delivered += 1;
        counters.duplicated += u64::from(passage.duplicated);
        counters.corrupted += u64::from(passage.corrupted);
        counters.reordered += u64::from(passage.overtakes);
        let delivery = Delivery { at: passage.arrival, to, packet };
        if passage.duplicated {
            out.deliveries.push(delivery.clone());
        }
        out.deliveries.push(delivery);
    }
}

/// Goes to lower rates as long as that is wanted, and says how many steps it took.
fn step_down(best: Rate, goes_on: impl Fn(Rate, u64) -> bool) -> (Rate, u64) {
    let (mut rate, mut steps) = (best, 0);
    while goes_on(rate, steps)
        && let Some(lower) = phy::below(rate)
    {
        (rate, steps) = (lower, steps + 1);
    }
    (rate, steps)
}
