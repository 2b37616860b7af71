//! A capture at one end: round trips of TCP by acknowledgements and time stamps, losses by what was sent again; of RTP the
//! differences of its timestamps. Of all conversations those with one peer count: the one with most packets.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use trunkline_core::Time;

use super::super::ImportError;
use super::super::description::Learned;
use super::super::estimate::{self, Clocks};
use super::log::{Kept, KeptTcp, Log};
use crate::{Observations, ObservedFlow, Packet, Way};

/// Packets of a flow from which something can be learned.
const MIN_PACKETS: usize = 20;

pub(super) fn learn(name: &str, log: &Log) -> Result<Learned, ImportError> {
    let (near, far, share) = peer(log);
    let between = |id: u32, from: IpAddr, to: IpAddr| {
        let addresses = log.flows[id as usize].addresses;
        addresses.from.0 == from && addresses.to.0 == to
    };
    let mut out = BTreeMap::new();
    let mut inn = BTreeMap::new();
    for packet in &log.packets {
        let ports = |from: u16, to: u16| (log.flows[packet.flow as usize].addresses.protocol, from, to);
        let addresses = log.flows[packet.flow as usize].addresses;
        if between(packet.flow, near, far) {
            out.entry(ports(addresses.from.1, addresses.to.1)).or_insert_with(Vec::new).push(*packet);
        } else if between(packet.flow, far, near) {
            inn.entry(ports(addresses.to.1, addresses.from.1)).or_insert_with(Vec::new).push(*packet);
        }
    }
    let mut flows = Vec::new();
    let mut is_rtp = false;
    for (ports, sent) in &out {
        let answers = inn.get(ports).map(Vec::as_slice).unwrap_or_default();
        flows.extend(uploaded(sent, answers));
    }
    for (ports, arrived) in &inn {
        let sent = out.get(ports).map(Vec::as_slice).unwrap_or_default();
        flows.extend(downloaded(arrived, sent));
    }
    if flows.is_empty() {
        let rtp = inn.values().chain(out.values()).find_map(|packets| by_rtp(packets));
        is_rtp = rtp.is_some();
        flows.extend(rtp);
    }
    if flows.is_empty() {
        return Err(ImportError::new(format!(
            "has {} packets between {near} and {far}, but no TCP data that is acknowledged and no RTP: one end of other traffic \
             shows neither delays nor losses; capture at both ends, and name both files",
            out.values().chain(inn.values()).map(Vec::len).sum::<usize>()
        )));
    }
    for (flow, index) in flows.iter_mut().zip(0..) {
        flow.name = format!("flow {index}");
    }
    let clocks = if is_rtp { Clocks::Relative } else { Clocks::RoundTrip };
    let observations = Observations { flows, clock_error: None };
    let mut learned = estimate::describe(format!("the capture `{name}`"), &observations, clocks);
    learned.remarks.insert(
        0,
        format!("Captured at {near}; the other end is {far}, with {share} of the {} packets. Forward is from {near}.", log.packets.len()),
    );
    learned.remarks.push(if is_rtp {
        "RTP: delays are relative to the sender's timestamps, so that a sender that is late counts as jitter.".to_owned()
    } else {
        "One end: delays are round trips, so that a queue of either direction counts for the data's; losses are what was sent \
         again, so that spurious retransmissions count too."
            .to_owned()
    });
    Ok(learned)
}

/// The host of the capture, its peer with most packets, and their packets.
fn peer(log: &Log) -> (IpAddr, IpAddr, usize) {
    let mut packets: BTreeMap<(IpAddr, IpAddr), usize> = BTreeMap::new();
    for packet in &log.packets {
        let addresses = log.flows[packet.flow as usize].addresses;
        let (a, b) = (addresses.from.0, addresses.to.0);
        *packets.entry((a.min(b), a.max(b))).or_default() += 1;
    }
    let most = packets.iter().max_by_key(|(_, count)| **count);
    let ((a, b), share) =
        most.map_or(((IpAddr::from([0, 0, 0, 0]), IpAddr::from([0, 0, 0, 0])), 0), |(p, n)| (*p, *n));
    if is_near(log, a, b) { (a, b, share) } else { (b, a, share) }
}

/// True if the capture is that of `a`: by the file's directions, or because answers to the data of `a` take longer than those to the data of
/// `b`.
fn is_near(log: &Log, a: IpAddr, b: IpAddr) -> bool {
    let mut votes = (0_u64, 0_u64);
    for flow in &log.flows {
        let (from, to) = (flow.addresses.from.0, flow.addresses.to.0);
        let (out, inn) = (u64::from(flow.outbound), u64::from(flow.inbound));
        votes.1 += if (from, to) == (a, b) {
            inn
        } else if (from, to) == (b, a) {
            out
        } else {
            0
        };
        votes.0 += if (from, to) == (a, b) {
            out
        } else if (from, to) == (b, a) {
            inn
        } else {
            0
        };
    }
    if votes != (0, 0) {
        return votes.0 > votes.1;
    }
    let quickest = |from: IpAddr, to: IpAddr| {
        let mut least = i64::MAX;
        let mut waiting: BTreeMap<(u16, u16), (u32, i64)> = BTreeMap::new();
        for packet in &log.packets {
            let addresses = log.flows[packet.flow as usize].addresses;
            let Some(tcp) = packet.tcp else { continue };
            if (addresses.from.0, addresses.to.0) == (from, to) && tcp.length > 0 {
                let ports = (addresses.from.1, addresses.to.1);
                waiting.insert(ports, (tcp.sequence.wrapping_add(tcp.length), packet.at));
            } else if (addresses.from.0, addresses.to.0) == (to, from) {
                let ports = (addresses.to.1, addresses.from.1);
                if let (Some(ack), Some((end, at))) = (tcp.acknowledged, waiting.get(&ports).copied())
                    && ack == end
                {
                    least = least.min(packet.at - at);
                    waiting.remove(&ports);
                }
            }
        }
        least
    };
    let (of_a, of_b) = (quickest(a, b), quickest(b, a));
    // Without answers to either, the one that sends is there.
    if of_a == i64::MAX && of_b == i64::MAX {
        false
    } else {
        of_b == i64::MAX || (of_a != i64::MAX && of_a > of_b)
    }
}

/// A sequence number without wrapping, near `highest`.
fn unwrapped(sequence: u32, highest: i64) -> i64 {
    highest + i64::from(sequence.wrapping_sub(highest as u32) as i32)
}

fn flow(way: Way, mut packets: Vec<Packet>) -> Option<ObservedFlow> {
    packets.sort_by_key(|packet| packet.sent);
    let arrived = packets.iter().filter(|packet| packet.delay.is_some()).count();
    (arrived >= MIN_PACKETS).then(|| ObservedFlow { name: String::new(), way, packets })
}

fn time(at: i64) -> Time {
    Time::from_nanos(at.max(0) as u64)
}

/// Data that this host sent, until it was acknowledged.
fn uploaded(sent: &[Kept], answers: &[Kept]) -> Option<ObservedFlow> {
    struct Waiting {
        end: i64,
        at: i64,
        bytes: u32,
        again: bool,
    }
    let mut events: Vec<(&Kept, KeptTcp, bool)> = Vec::new();
    events.extend(sent.iter().filter_map(|packet| Some((packet, packet.tcp?, true))));
    events.extend(answers.iter().filter_map(|packet| Some((packet, packet.tcp?, false))));
    events.sort_by_key(|(packet, _, _)| packet.at);
    let mut highest: Option<i64> = None;
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    let mut packets = Vec::new();
    for (packet, tcp, is_sent) in events {
        if is_sent {
            if tcp.length == 0 {
                continue;
            }
            let start = unwrapped(tcp.sequence, highest.unwrap_or_else(|| i64::from(tcp.sequence)));
            let end = start + i64::from(tcp.length);
            if highest.is_some_and(|highest| start < highest) {
                // Sent again: what was sent first is lost.
                let first = waiting.partition_point(|waiting| waiting.end <= start);
                for lost in waiting.iter_mut().skip(first).take_while(|lost| lost.end <= end) {
                    if !lost.again {
                        packets.push(Packet { sent: time(lost.at), bytes: lost.bytes, delay: None });
                    }
                    lost.again = true;
                }
            } else {
                waiting.push_back(Waiting { end, at: packet.at, bytes: packet.bytes, again: false });
            }
            highest = Some(highest.unwrap_or(end).max(end));
        } else if let (Some(ack), Some(highest)) = (tcp.acknowledged, highest) {
            let ack = unwrapped(ack, highest);
            let covered = waiting.partition_point(|waiting| waiting.end <= ack);
            // An acknowledgement that waited for a repair says nothing of the packets behind it.
            let is_repair = waiting.iter().take(covered).any(|waiting| waiting.again);
            for waiting in waiting.drain(..covered) {
                if !is_repair {
                    let delay = Some(packet.at - waiting.at);
                    packets.push(Packet { sent: time(waiting.at), bytes: waiting.bytes, delay });
                }
            }
        }
    }
    flow(Way::Forward, packets)
}

/// Data that arrived here: sent when the packet left whose time stamp it echoes.
fn downloaded(arrived: &[Kept], sent: &[Kept]) -> Option<ObservedFlow> {
    let mut left: BTreeMap<u32, i64> = BTreeMap::new();
    for packet in sent {
        if let Some((value, _)) = packet.tcp.and_then(|tcp| tcp.timestamps) {
            left.insert(value, packet.at);
        }
    }
    let mut highest: Option<i64> = None;
    // Holes by their start: when they were found, and the sending of the packet behind.
    let mut holes: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let mut packets = Vec::new();
    let mut smallest = i64::MAX;
    for packet in arrived {
        let Some(tcp) = packet.tcp.filter(|tcp| tcp.length > 0) else { continue };
        let Some(at) =
            tcp.timestamps.and_then(|(_, echo)| left.get(&echo)).copied().filter(|at| *at <= packet.at)
        else {
            continue;
        };
        let start = unwrapped(tcp.sequence, highest.unwrap_or_else(|| i64::from(tcp.sequence)));
        let end = start + i64::from(tcp.length);
        let delay = packet.at - at;
        match highest {
            Some(highest) if start < highest => {
                // Late by less than half a round trip, it was overtaken; otherwise it was lost and sent again.
                if let Some((found, sent_behind)) = holes.remove(&start) {
                    let is_lost = packet.at - found > smallest / 2;
                    let delay = if is_lost { None } else { Some(packet.at - sent_behind) };
                    packets.push(Packet { sent: time(sent_behind), bytes: packet.bytes, delay });
                    // The line has transmitted the repair too.
                    if is_lost {
                        packets.push(Packet {
                            sent: time(at),
                            bytes: packet.bytes,
                            delay: Some(packet.at - at),
                        });
                    }
                } else {
                    // Sent again in other pieces, or once too often.
                    packets.push(Packet { sent: time(at), bytes: packet.bytes, delay: Some(delay) });
                }
            }
            _ => {
                if let Some(highest) = highest
                    && start > highest
                    && holes.len() < 1 << 16
                {
                    let mut hole = highest;
                    while hole < start && holes.len() < 1 << 16 {
                        holes.insert(hole, (packet.at, at));
                        hole += i64::from(tcp.length.max(1));
                    }
                }
                smallest = smallest.min(delay);
                packets.push(Packet { sent: time(at), bytes: packet.bytes, delay: Some(delay) });
            }
        }
        highest = Some(highest.unwrap_or(end).max(end));
    }
    flow(Way::Backward, packets)
}

/// A stream of RTP at its receiver.
fn by_rtp(packets: &[Kept]) -> Option<ObservedFlow> {
    let stream: Vec<(&Kept, u16, u32, u8)> = packets
        .iter()
        .filter_map(|packet| {
            packet.rtp.map(|(sequence, timestamp, kind)| (packet, sequence, timestamp, kind))
        })
        .collect();
    let &(first, first_sequence, first_timestamp, kind) = stream.first()?;
    let (mut highest, mut timestamp) = (i64::from(first_sequence), i64::from(first_timestamp));
    let mut by_sequence: BTreeMap<i64, (i64, i64, u32)> = BTreeMap::new();
    for (packet, sequence, stamp, _) in &stream {
        let number = highest + i64::from(sequence.wrapping_sub(highest as u16) as i16);
        let stamp = timestamp + i64::from(stamp.wrapping_sub(timestamp as u32) as i32);
        by_sequence.entry(number).or_insert((stamp, packet.at, packet.bytes));
        if number > highest {
            (highest, timestamp) = (number, stamp);
        }
    }
    let (start, end) = (*by_sequence.keys().next()?, highest);
    // Numbers of a stream grow by one; anything else only looks like RTP.
    if stream.len() < MIN_PACKETS || (end - start) as u64 > 2 * stream.len() as u64 {
        return None;
    }
    let (from, to) = (by_sequence.get(&start)?, by_sequence.get(&end)?);
    let ticks = (to.0 - from.0) as f64 * 1e9 / (to.1 - from.1).max(1) as f64;
    let rate = clock_rate(kind, ticks)?;
    let sent = |stamp: i64| ((stamp - from.0) as f64 * 1e9 / rate) as i64;
    let spacing = (sent(to.0) as f64) / (end - start).max(1) as f64;
    let observed = (start..=end).map(|number| match by_sequence.get(&number) {
        Some((stamp, at, bytes)) => {
            let sent = sent(*stamp);
            Packet { sent: time(sent), bytes: *bytes, delay: Some(*at - first.at - sent) }
        }
        None => {
            Packet { sent: time(((number - start) as f64 * spacing) as i64), bytes: first.bytes, delay: None }
        }
    });
    flow(Way::Backward, observed.collect())
}

/// Ticks of RTP's clock in a second: that of the payload type (RFC 3551), or the known one nearest to what was measured.
fn clock_rate(kind: u8, measured: f64) -> Option<f64> {
    const RATES: [f64; 9] =
        [8_000.0, 11_025.0, 16_000.0, 22_050.0, 32_000.0, 44_100.0, 48_000.0, 90_000.0, 96_000.0];
    match kind {
        0 | 3..=5 | 7..=9 | 12 | 13 | 15 | 18 => Some(8_000.0),
        6 => Some(16_000.0),
        10 | 11 => Some(44_100.0),
        14 | 25..=34 => Some(90_000.0),
        _ => RATES.into_iter().find(|rate| (rate / measured - 1.0).abs() < 0.01),
    }
}
