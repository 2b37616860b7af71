//! The stations, the frames on their way to the switch, and what the switch does with them.

use core::cmp::Reverse;
use core::mem;
use std::collections::BinaryHeap;

use trunkline_core::schema::Values;
use trunkline_core::{Bytes, Destination, Duration, Packet, PacketId, Port, Rate, Seed, Time};

use super::earliest::Earliest;
use super::switch::{self, Frame, Output};
use super::{CUT_THROUGH, PREAMBLE_AND_HEADER};
use crate::fate::{DropCause, Fate, Fates};
use crate::impairment::Stage;
use crate::medium::{Delivery, Figure, Medium, MediumCounters, Outcome, PortConfig};
use crate::queue::{Backlog, Counted, Dequeued};
use crate::serial::serialiser::Serialiser;

/// A switched Ethernet.
///
/// When a frame begins to leave its station, the time at which the switch can pass it on is decided; when it begins to
/// leave the switch, its delivery is handed out.
#[derive(Debug)]
pub struct EthernetLan {
    cuts_through: bool,
    latency: Duration,
    stations: Vec<Station>,
    outputs: Vec<Output>,
    /// The highest of all lines' rates.
    fastest: Rate,
    /// When the switch's lines, and then the stations', can begin with their next frames.
    lines: Earliest,
    /// Frames on their way to the switch: when it passes them on, a number for those of equal times, and the slot.
    arrivals: BinaryHeap<Reverse<(Time, u64, u32)>>,
    next_number: u64,
    slots: Vec<Frame>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Station {
    queue: Counted,
    line: Serialiser,
    rate: Rate,
    delay: Duration,
    mtu: Bytes,
    overhead: Bytes,
    stage: Stage,
    /// Without what `queue` counts.
    counters: MediumCounters,
}

impl EthernetLan {
    /// The network of these stations.
    ///
    /// # Panics
    /// If the values are not those of this medium's parameters: a mistake in the program, never in a file.
    pub fn new(shared: &Values, ports: Vec<PortConfig<'_>>, seed: Seed) -> EthernetLan {
        let outputs: Vec<Output> = ports.iter().map(|port| Output::new(port.values)).collect();
        let stations: Vec<Station> = ports.into_iter().map(|port| Station::new(port, seed)).collect();
        EthernetLan {
            cuts_through: shared.text("switching") == CUT_THROUGH,
            latency: shared.duration("switch-latency"),
            fastest: stations.iter().map(|station| station.rate).max().unwrap_or(Rate::ZERO),
            lines: Earliest::new(2 * stations.len()),
            stations,
            outputs,
            arrivals: BinaryHeap::new(),
            next_number: 0,
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// When something happens next.
    fn due(&self) -> Time {
        self.lines.time().min(self.arrival())
    }

    /// When the switch next passes a frame on.
    fn arrival(&self) -> Time {
        self.arrivals.peek().map_or(Time::MAX, |Reverse((at, ..))| *at)
    }

    /// Sets when a station's line can begin with its next frame.
    fn set_station(&mut self, index: usize, wake: Time) {
        self.lines.set(self.stations.len() + index, wake);
    }

    /// Lets a station transmit what its queue hands out.
    fn serve(&mut self, now: Time, index: usize, out: &mut Outcome) {
        let station = &mut self.stations[index];
        let wake = match station.queue.dequeue(now, &mut out.fates) {
            Dequeued::Packet(packet) => {
                self.send(now, index, packet, out);
                self.stations[index].line.free()
            }
            Dequeued::Empty => Time::MAX,
            // A queue that breaks its word must not stop time.
            Dequeued::NotBefore(time) => time.max(now + Duration::from_nanos(1)),
        };
        let is_empty = self.stations[index].queue.waiting().packets == 0;
        self.set_station(index, if is_empty { Time::MAX } else { wake });
    }

    fn send(&mut self, now: Time, index: usize, mut packet: Packet, out: &mut Outcome) {
        let onward = match packet.to {
            Destination::Port(to) => self.stations.get(usize::from(to.0)).map_or(self.fastest, |to| to.rate),
            Destination::Everyone | Destination::Nobody => self.fastest,
        };
        let station = &mut self.stations[index];
        let (end, busy) = switch::transmit(&mut station.line, now, &packet, station.overhead);
        packet.on_line = switch::on_line(&packet, station.overhead);
        station.counters.transmitted += packet.on_line;
        station.counters.busy.add(now + busy, busy);
        station.counters.busy.carries(packet.id, 1.0);
        let known = if self.cuts_through && onward <= station.rate {
            end.min(now + station.rate.time_for(PREAMBLE_AND_HEADER))
        } else {
            end
        };
        // Frames of a station come one after the other however early each is passed on.
        let passage = station.stage.pass(known + station.delay + self.latency, &mut packet);
        if passage.lost {
            station.lose(now, packet, DropCause::LinkLoss, &mut out.fates);
            return;
        }
        self.keep(
            passage.arrival,
            Frame {
                packet,
                corrupted: passage.corrupted,
                duplicated: passage.duplicated,
                overtakes: passage.overtakes,
                unclaimed: false,
            },
        );
    }

    /// Keeps a frame until the switch passes it on.
    fn keep(&mut self, at: Time, frame: Frame) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = frame;
                slot
            }
            None => {
                self.slots.push(frame);
                (self.slots.len() - 1) as u32
            }
        };
        self.arrivals.push(Reverse((at, self.next_number, slot)));
        self.next_number += 1;
    }

    /// Puts the frame that is due into the buffers of the lines on which it is to go out.
    fn pass_on(&mut self, now: Time, out: &mut Outcome) {
        let Some(Reverse((_, _, slot))) = self.arrivals.pop() else { return };
        self.free.push(slot);
        let frame = mem::take(&mut self.slots[slot as usize]);
        let (from, ports) = (frame.packet.entered, self.outputs.len() as u16);
        let mut others = (0..ports).map(Port).filter(|&to| to != from);
        match frame.packet.to {
            Destination::Port(to) if to != from && to.0 < ports => self.put(now, to, frame, out),
            // A switch sends nothing back.
            Destination::Port(to) if to == from => self.discard(now, frame, DropCause::NoStation, out),
            Destination::Port(_) | Destination::Nobody => {
                let size = frame.packet.size;
                for to in others {
                    let packet = Packet { size, ..Packet::default() };
                    self.put(now, to, Frame { packet, unclaimed: true, ..Frame::default() }, out);
                }
                self.discard(now, frame, DropCause::NoStation, out);
            }
            Destination::Everyone => {
                let Some(last) = others.next_back() else { return };
                for to in others {
                    self.station(from).counters.copied += 1;
                    self.put(now, to, frame.clone(), out);
                }
                self.put(now, last, frame, out);
            }
        }
    }

    /// Puts a frame into the buffer of one line.
    fn put(&mut self, now: Time, to: Port, frame: Frame, out: &mut Outcome) {
        let index = usize::from(to.0);
        match self.outputs[index].enqueue(now, frame) {
            Ok(()) => self.lines.set(index, self.outputs[index].wake(now)),
            Err(frame) if frame.unclaimed => {}
            Err(frame) => self.discard(now, frame, DropCause::SwitchFull, out),
        }
    }

    fn discard(&mut self, now: Time, frame: Frame, cause: DropCause, out: &mut Outcome) {
        self.station(frame.packet.entered).lose(now, frame.packet, cause, &mut out.fates);
    }

    /// Lets a line of the switch transmit.
    fn forward(&mut self, now: Time, index: usize, out: &mut Outcome) {
        let Some((at, frame)) = self.outputs[index].transmit(now) else { return };
        self.lines.set(index, self.outputs[index].wake(now));
        if frame.unclaimed {
            return;
        }
        let Frame { packet, corrupted, duplicated, overtakes, .. } = frame;
        let counters = &mut self.station(packet.entered).counters;
        counters.delivered += 1;
        counters.corrupted += u64::from(corrupted);
        counters.duplicated += u64::from(duplicated);
        counters.reordered += u64::from(overtakes);
        let to = Port(index as u16);
        if duplicated {
            out.deliveries.push(Delivery { at, to, packet: packet.clone() });
        }
        out.deliveries.push(Delivery { at, to, packet });
    }

    fn station(&mut self, port: Port) -> &mut Station {
        &mut self.stations[usize::from(port.0)]
    }
}

impl Medium for EthernetLan {
    /// # Panics
    /// If there is no port `from`: a mistake in the driver.
    fn offer(&mut self, at: Time, from: Port, mut packet: Packet, out: &mut Outcome) {
        self.advance(at, out);
        packet.entered = from;
        let station = self.station(from);
        station.counters.offered += 1;
        if packet.size > station.mtu {
            station.lose(at, packet, DropCause::TooLarge, &mut out.fates);
            return;
        }
        station.queue.enqueue(at, packet, &mut out.fates);
        let waiting = station.queue.waiting();
        let wake = if waiting.packets > 0 { station.line.free().max(at) } else { Time::MAX };
        self.set_station(usize::from(from.0), wake);
        self.advance(at, out);
        // What goes out at once has not waited.
        let station = self.station(from);
        let waiting = station.queue.waiting();
        station.counters.backlog_max = station.counters.backlog_max.max(waiting.bytes);
        station.counters.backlog_packets_max = station.counters.backlog_packets_max.max(waiting.packets);
    }

    fn advance(&mut self, to: Time, out: &mut Outcome) {
        loop {
            let now = self.due();
            if now > to || now == Time::MAX {
                return;
            }
            // Departures come before arrivals.
            if self.lines.time() > now {
                self.pass_on(now, out);
                continue;
            }
            let (index, outputs) = (self.lines.index(), self.outputs.len());
            if index < outputs {
                self.forward(now, index, out);
            } else {
                self.serve(now, index - outputs, out);
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

    fn behind_the_line(&self, visit: &mut dyn FnMut(&Packet)) {
        let passing = self.arrivals.iter().map(|Reverse((.., slot))| &self.slots[*slot as usize].packet);
        passing.chain(self.outputs.iter().flat_map(Output::waiting)).for_each(visit);
    }

    fn under_way(&self, from: Port, at: Time) -> Option<(PacketId, f64)> {
        self.stations[usize::from(from.0)].counters.busy.under_way(at)
    }

    fn end_measurement(&mut self, at: Time) {
        self.stations.iter_mut().for_each(|station| station.counters.busy.end(at));
        self.outputs.iter_mut().for_each(|output| output.end_measurement(at));
    }

    fn figures(&self, over: Duration) -> Vec<Figure> {
        let ports = (0..).map(Port).zip(&self.outputs);
        let figures = ports.flat_map(|(port, output)| {
            output.figures(over).map(|(name, amount)| Figure { station: Some(port), name, amount })
        });
        figures.collect()
    }
}

impl Station {
    fn new(config: PortConfig<'_>, seed: Seed) -> Station {
        let values = config.values;
        Station {
            stage: Stage::new(&config.impairments, &config.place, seed),
            queue: Counted::new(config.queue),
            line: Serialiser::new(values.rate("rate")),
            rate: values.rate("rate"),
            delay: values.duration("delay"),
            mtu: values.bytes("mtu"),
            overhead: values.bytes("overhead"),
            counters: MediumCounters::default(),
        }
    }

    fn lose(&mut self, at: Time, packet: Packet, cause: DropCause, fates: &mut Fates) {
        self.counters.dropped[cause.index()] += 1;
        fates.0.push(Fate::Dropped { at, packet, cause });
    }

    fn counters(&self) -> MediumCounters {
        self.counters.clone().with_queue(self.queue.counters())
    }

    fn waiting(&self) -> Backlog {
        self.queue.waiting()
    }
}
