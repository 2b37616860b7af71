//! Captures at both ends: the same packets are found by what identifies them, whatever NAT has made of their addresses.

use std::collections::BTreeMap;

use trunkline_core::Time;

use super::super::ImportError;
use super::super::description::Learned;
use super::super::estimate::{self, Clocks};
use super::log::{Flow, Kept, Log};
use super::skew;
use crate::{Observations, ObservedFlow, Packet, Way};

/// A packet that was seen at both ends: its places in both logs.
type Pair = (usize, usize);

/// The key of a packet, and its place in its log.
type Identified = (u64, u32);

pub(super) fn learn(names: [&str; 2], logs: &[Log; 2], clocks: Clocks) -> Result<Learned, ImportError> {
    let matching = Matching::of(logs);
    if matching.pairs.is_empty() {
        return Err(ImportError::new(
            "have no packet in common: they must be captures of the same traffic at the same time, at the two ends of a path",
        ));
    }
    let ways = matching.ways(logs);
    let mut observations = observations(logs, &matching, &ways);
    let drift = if clocks == Clocks::Apart { skew::remove(&mut observations) } else { None };
    let from = format!("the captures `{}` and `{}`", names[0], names[1]);
    let mut learned = estimate::describe(from, &observations, clocks);
    let matched = matching.pairs.len();
    learned.remarks.insert(
        0,
        format!(
            "{matched} packets are in both captures ({} and {} in each); forward is from the end of the first.",
            logs[0].packets.len(),
            logs[1].packets.len()
        ),
    );
    if let Some(drift) = drift {
        learned
            .remarks
            .push(format!("The second clock drifts by {:.1} ppm; delays are without it.", drift * 1e6));
    }
    if matching.ambiguous > 0 {
        learned.remarks.push(format!(
            "{} packets look like others and do not count: neither as arrived nor as lost.",
            matching.ambiguous
        ));
    }
    if matching.duplicates > 0 {
        learned.remarks.push(format!("{} packets arrived twice.", matching.duplicates));
    }
    Ok(learned)
}

struct Matching {
    pairs: Vec<Pair>,
    /// By place in each log.
    is_matched: [Vec<bool>; 2],
    is_ambiguous: [Vec<bool>; 2],
    /// The flow of the second log that each of the first is.
    partners: BTreeMap<u32, u32>,
    ambiguous: u64,
    duplicates: u64,
}

impl Matching {
    fn of(logs: &[Log; 2]) -> Matching {
        let sorted = [0, 1].map(|log: usize| {
            let mut keys: Vec<Identified> = logs[log]
                .packets
                .iter()
                .enumerate()
                .map(|(place, packet)| (packet.key, place as u32))
                .collect();
            keys.sort_unstable();
            keys
        });
        let partners = partners(logs, &sorted);
        let mut matching = Matching {
            pairs: Vec::new(),
            is_matched: [0, 1].map(|log: usize| vec![false; logs[log].packets.len()]),
            is_ambiguous: [0, 1].map(|log: usize| vec![false; logs[log].packets.len()]),
            partners,
            ambiguous: 0,
            duplicates: 0,
        };
        for (first, second) in common(&sorted) {
            matching.take(logs, first, second);
        }
        matching
    }

    /// Packets with one key.
    fn take(&mut self, logs: &[Log; 2], first: &[Identified], second: &[Identified]) {
        let by_flow = |log: usize, of: &[Identified]| {
            let mut by_flow: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            for (_, place) in of {
                let place = *place as usize;
                by_flow.entry(logs[log].packets[place].flow).or_default().push(place);
            }
            by_flow
        };
        let theirs = by_flow(1, second);
        for (own, here) in by_flow(0, first) {
            let partner = self.partners.get(&own);
            let Some(there) = partner.and_then(|partner| theirs.get(partner)) else { continue };
            match (here.len(), there.len()) {
                (a, b) if a == b => here.iter().zip(there).for_each(|(a, b)| self.pair(*a, *b)),
                (1, more) => {
                    self.pair(here[0], there[0]);
                    self.duplicates += more as u64 - 1;
                    there.iter().for_each(|place| self.is_matched[1][*place] = true);
                }
                (more, 1) => {
                    // A copy at the first end, if it is the receiver; or one of several that look the same was lost.
                    self.ambiguous += more as u64;
                    here.iter().for_each(|place| self.is_ambiguous[0][*place] = true);
                    self.is_ambiguous[1][there[0]] = true;
                }
                (a, b) => {
                    self.ambiguous += (a + b) as u64;
                    here.iter().for_each(|place| self.is_ambiguous[0][*place] = true);
                    there.iter().for_each(|place| self.is_ambiguous[1][*place] = true);
                }
            }
        }
    }

    fn pair(&mut self, first: usize, second: usize) {
        self.pairs.push((first, second));
        self.is_matched[0][first] = true;
        self.is_matched[1][second] = true;
    }

    /// The direction of each flow of the first log.
    fn ways(&self, logs: &[Log; 2]) -> BTreeMap<u32, Way> {
        // The second end's clock minus the first's at the quickest packet: larger for packets from the first end by a round trip.
        let mut quickest: BTreeMap<u32, i64> = BTreeMap::new();
        for &(first, second) in &self.pairs {
            let (a, b) = (&logs[0].packets[first], &logs[1].packets[second]);
            let difference = b.at - a.at;
            quickest
                .entry(a.flow)
                .and_modify(|least| *least = (*least).min(difference))
                .or_insert(difference);
        }
        let by_addresses: BTreeMap<_, u32> =
            logs[0].flows.iter().enumerate().map(|(id, flow)| (flow.addresses, id as u32)).collect();
        quickest
            .iter()
            .map(|(id, own)| {
                let flow = &logs[0].flows[*id as usize];
                let reverse =
                    by_addresses.get(&flow.addresses.reversed()).and_then(|reverse| quickest.get(reverse));
                let partner = self.partners.get(id).map(|partner| &logs[1].flows[*partner as usize]);
                let is_forward = said(flow, partner).unwrap_or_else(|| match reverse {
                    Some(reverse) => own > reverse,
                    None => partner.is_none_or(|partner| flow.ttl >= partner.ttl),
                });
                (*id, if is_forward { Way::Forward } else { Way::Backward })
            })
            .collect()
    }
}

/// True if the captures report that a flow leaves the first end, false if they report the other one.
fn said(flow: &Flow, partner: Option<&Flow>) -> Option<bool> {
    let by_first = match (flow.outbound, flow.inbound) {
        (0, 0) => None,
        (out, inn) => Some(out >= inn),
    };
    by_first.or_else(|| match partner.map(|partner| (partner.outbound, partner.inbound)) {
        None | Some((0, 0)) => None,
        Some((out, inn)) => Some(inn >= out),
    })
}

/// The packets of each key that both logs have.
fn common(sorted: &[Vec<Identified>; 2]) -> impl Iterator<Item = (&[Identified], &[Identified])> {
    let groups = |log: usize| sorted[log].chunk_by(|a, b| a.0 == b.0);
    let mut second = groups(1).peekable();
    groups(0).filter_map(move |first| {
        while second.next_if(|group| group[0].0 < first[0].0).is_some() {}
        let group = second.next_if(|group| group[0].0 == first[0].0)?;
        Some((first, group))
    })
}

/// The flow of the second log with most packets of each flow of the first.
fn partners(logs: &[Log; 2], sorted: &[Vec<Identified>; 2]) -> BTreeMap<u32, u32> {
    let mut votes: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for (first, second) in common(sorted) {
        // Packets that look the same in several flows do not vote.
        if let ([(_, a)], [(_, b)]) = (first, second) {
            let flows = (logs[0].packets[*a as usize].flow, logs[1].packets[*b as usize].flow);
            *votes.entry(flows).or_default() += 1;
        }
    }
    let mut best: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
    for ((first, second), count) in votes {
        let entry = best.entry(first).or_insert((count, second));
        if count > entry.0 {
            *entry = (count, second);
        }
    }
    best.into_iter().map(|(first, (_, second))| (first, second)).collect()
}

fn observations(logs: &[Log; 2], matching: &Matching, ways: &BTreeMap<u32, Way>) -> Observations {
    // Of each flow, the sender's packets from the first to the last that arrived.
    let mut flows: BTreeMap<u32, (ObservedFlow, Option<(i64, i64)>)> = BTreeMap::new();
    // Starts that are farther apart are damage.
    let offset = i64::try_from(logs[1].start - logs[0].start).ok();
    let offset = offset.filter(|offset| offset.unsigned_abs() < 1 << 60).unwrap_or_default();
    // Both times as if the second log began with the first: only the sum of both directions is free of it.
    let (mut second_of, mut first_of) = (BTreeMap::new(), BTreeMap::new());
    for &(first, second) in &matching.pairs {
        second_of.insert(first, second);
        first_of.insert(second, first);
    }
    let sender = |way: Way| usize::from(way == Way::Backward);
    let at = |log: usize, packet: &Kept| packet.at + if log == 1 { offset } else { 0 };
    let earliest = logs[0].packets[0].at.min(at(1, &logs[1].packets[0]));
    let by_partner: BTreeMap<u32, u32> =
        matching.partners.iter().map(|(first, second)| (*second, *first)).collect();
    for &(first, second) in &matching.pairs {
        let id = logs[0].packets[first].flow;
        let Some(way) = ways.get(&id).copied() else { continue };
        let sent = if way == Way::Forward {
            at(0, &logs[0].packets[first])
        } else {
            at(1, &logs[1].packets[second])
        };
        let name = format!("flow {id}");
        let (_, span) = flows.entry(id).or_insert((ObservedFlow { name, way, packets: Vec::new() }, None));
        *span = Some(span.map_or((sent, sent), |(from, to)| (from.min(sent), to.max(sent))));
    }
    for way in Way::ALL {
        let log = sender(way);
        for (place, packet) in logs[log].packets.iter().enumerate() {
            let id = if log == 0 { Some(packet.flow) } else { by_partner.get(&packet.flow).copied() };
            let Some((flow, Some((from, to)))) = id.and_then(|id| flows.get_mut(&id)) else { continue };
            let sent = at(log, packet);
            if flow.way != way || matching.is_ambiguous[log][place] || !(*from..=*to).contains(&sent) {
                continue;
            }
            let other = if log == 0 { second_of.get(&place) } else { first_of.get(&place) };
            let delay = other.map(|other| at(1 - log, &logs[1 - log].packets[*other]) - sent);
            let sent = Time::from_nanos((sent - earliest).max(0) as u64);
            flow.packets.push(Packet { sent, bytes: packet.bytes, delay });
        }
    }
    let flows = flows.into_values().map(|(flow, _)| flow).filter(|flow| !flow.packets.is_empty());
    Observations { flows: flows.collect(), clock_error: None }
}
