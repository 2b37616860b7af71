//! Flows by their five-tuple, numbered densely as queues want it.

use core::hash::{Hash as _, Hasher};
use core::net::IpAddr;

use trunkline_core::{FlowId, Time};

use super::{FlowCounters, FlowDirection, FlowKey};

/// How many flows have a number of their own at a time. Beyond that the longest silent of a few gives its number away.
pub(super) const MOST: usize = 1024;
const BUCKETS: usize = 2 * MOST;
/// How many candidates for giving their number away are looked at.
const CANDIDATES: usize = 8;
const NONE: u32 = u32::MAX;

/// The flows of a link. Makes its memory once.
#[derive(Debug)]
pub struct Flows {
    /// The first flow of each hash value.
    buckets: Box<[u32]>,
    /// By number; that of packets without a five-tuple is 0.
    flows: Vec<Flow>,
    /// The flow of the last packet: the next is likely to be of the same.
    last: u32,
    /// Where the search for silent ones goes on.
    hand: u32,
    /// How many have given their number away.
    forgotten: u64,
}

#[derive(Debug)]
struct Flow {
    key: Option<FlowKey>,
    /// The next flow of the same hash value.
    next: u32,
    seen: Time,
    directions: [FlowDirection; 2],
}

impl Default for Flows {
    /// No flow yet.
    fn default() -> Flows {
        let mut flows = Vec::with_capacity(MOST);
        flows.push(Flow { key: None, next: NONE, seen: Time::ZERO, directions: Default::default() });
        Flows { buckets: vec![NONE; BUCKETS].into(), flows, last: 0, hand: 1, forgotten: 0 }
    }
}

impl Flows {
    /// The flow of a packet, and whether the packet goes against the direction of the flow's first.
    #[inline]
    pub fn classify(&mut self, now: Time, key: Option<&FlowKey>) -> (FlowId, bool) {
        let Some(key) = key else { return (FlowId(0), false) };
        if let Some(backward) = self.flows[self.last as usize].goes(key) {
            self.flows[self.last as usize].seen = now;
            return (FlowId(self.last), backward);
        }
        let bucket = bucket(key);
        let mut place = self.buckets[bucket];
        while place != NONE {
            let flow = &mut self.flows[place as usize];
            if let Some(backward) = flow.goes(key) {
                flow.seen = now;
                self.last = place;
                return (FlowId(place), backward);
            }
            place = flow.next;
        }
        let place = self.vacant();
        self.flows[place as usize] =
            Flow { key: Some(*key), next: self.buckets[bucket], seen: now, directions: Default::default() };
        self.buckets[bucket] = place;
        self.last = place;
        (FlowId(place), false)
    }

    /// What is counted for one direction of a flow.
    #[inline]
    pub(super) fn direction(&mut self, flow: FlowId, backward: bool) -> Option<&mut FlowDirection> {
        let flow = self.flows.get_mut(flow.0 as usize)?;
        Some(&mut flow.directions[usize::from(backward)])
    }

    /// All of them.
    pub(super) fn counters(&self) -> Vec<FlowCounters> {
        let counters = |(number, flow): (u32, &Flow)| FlowCounters {
            flow: FlowId(number),
            key: flow.key,
            directions: flow.directions,
        };
        (0..).zip(&self.flows).map(counters).collect()
    }

    /// How many flows have given their number away.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// A number for a new flow: an unused one, or else that of a flow that has been silent for long.
    fn vacant(&mut self) -> u32 {
        if self.flows.len() < MOST {
            self.flows.push(Flow { key: None, next: NONE, seen: Time::ZERO, directions: Default::default() });
            return (self.flows.len() - 1) as u32;
        }
        let candidates = (0..CANDIDATES as u32).map(|n| 1 + (self.hand + n - 1) % (MOST as u32 - 1));
        let silent = candidates.min_by_key(|&place| self.flows[place as usize].seen).unwrap_or(1);
        self.hand = 1 + (self.hand - 1 + CANDIDATES as u32) % (MOST as u32 - 1);
        self.forget(silent);
        self.forgotten += 1;
        silent
    }

    /// Takes a flow out of its bucket.
    fn forget(&mut self, place: u32) {
        let Some(key) = self.flows[place as usize].key else { return };
        let next = self.flows[place as usize].next;
        let bucket = bucket(&key);
        if self.buckets[bucket] == place {
            self.buckets[bucket] = next;
            return;
        }
        let mut before = self.buckets[bucket];
        while before != NONE {
            let flow = &mut self.flows[before as usize];
            if flow.next == place {
                flow.next = next;
                return;
            }
            before = flow.next;
        }
    }
}

impl Flow {
    /// Whether a packet is of this flow, and then whether it goes backward.
    #[inline]
    fn goes(&self, key: &FlowKey) -> Option<bool> {
        let own = self.key.as_ref()?;
        if own.protocol != key.protocol {
            return None;
        }
        if own.ports == key.ports && own.addresses == key.addresses {
            return Some(false);
        }
        let reverse = own.ports == [key.ports[1], key.ports[0]]
            && own.addresses == [key.addresses[1], key.addresses[0]];
        reverse.then_some(true)
    }
}

/// The same for both directions.
#[inline]
fn bucket(key: &FlowKey) -> usize {
    let end = |end: usize| {
        let mut hash = Mixer(u64::from(key.ports[end]));
        match key.addresses[end] {
            IpAddr::V4(address) => hash.write_u32(address.to_bits()),
            IpAddr::V6(address) => address.octets().hash(&mut hash),
        }
        hash.finish()
    };
    let mut hash = Mixer(end(0).wrapping_add(end(1)));
    hash.write_u8(key.protocol);
    // The high half of the product: below the number of buckets.
    ((u128::from(hash.finish()) * BUCKETS as u128) >> 64) as usize
}

/// Multiplies and folds. The same for every run; who builds collisions on his own machine slows down his own link.
struct Mixer(u64);

impl Mixer {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.mix(u64::from(n));
    }
    fn write_u32(&mut self, n: u32) {
        self.mix(u64::from(n));
    }
}
