//! The impairments of one direction at work, between the line's end and the port.

use trunkline_core::{Duration, Packet, Seed, Stream, Time};

use super::jitter::Jitter;
use super::{Impairments, LossModel};

/// What a packet goes through behind the line.
#[derive(Debug)]
pub(crate) struct Stage {
    loss: LossModel,
    corrupt: Chance,
    duplicate: Chance,
    jitter: Jitter,
    reorder: Chance,
    reorder_by: Duration,
    /// The latest arrival so far of packets that were not held back: none arrives before it.
    in_order: Time,
    /// The latest arrival so far: a packet that arrives before it has overtaken another.
    latest: Time,
    /// Without impairments the whole stage is two comparisons.
    transparent: bool,
}

/// What the stage decided about one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passage {
    /// It is lost; the rest does not matter.
    pub(crate) lost: bool,
    /// When it arrives.
    pub(crate) arrival: Time,
    /// One of its bits was flipped.
    pub(crate) corrupted: bool,
    /// It arrives twice.
    pub(crate) duplicated: bool,
    /// It arrives before a packet that was transmitted earlier.
    pub(crate) overtakes: bool,
}

/// A share of packets with its stream; draws nothing where the share is zero, since the stream is nobody else's.
#[derive(Debug)]
struct Chance {
    probability: f64,
    stream: Stream,
}

impl Stage {
    /// The impairments of the direction at `place`, whose streams are named `place/loss`, `place/jitter` ...
    pub(crate) fn new(impairments: &Impairments, place: &str, seed: Seed) -> Stage {
        let stream = |what: &str| seed.stream(&format!("{place}/{what}"));
        let chance = |what: &str, share: trunkline_core::Ratio| Chance {
            probability: share.value(),
            stream: stream(what),
        };
        Stage {
            transparent: is_transparent(impairments),
            loss: LossModel::new(impairments.loss.clone(), stream("loss")),
            corrupt: chance("corrupt", impairments.corrupt),
            duplicate: chance("duplicate", impairments.duplicate),
            jitter: Jitter::new(impairments, stream("jitter")),
            reorder: chance("reorder", impairments.reorder),
            reorder_by: impairments.reorder_by,
            in_order: Time::ZERO,
            latest: Time::ZERO,
        }
    }

    /// Lets no packet arrive before `time`.
    pub(crate) fn keep_until(&mut self, time: Time) {
        self.in_order = self.in_order.max(time);
        self.latest = self.latest.max(time);
    }

    /// Takes other impairments; their streams go on where they are.
    pub(crate) fn change(&mut self, impairments: &Impairments) {
        self.transparent = is_transparent(impairments);
        self.loss.change(impairments.loss.clone());
        self.corrupt.probability = impairments.corrupt.value();
        self.duplicate.probability = impairments.duplicate.value();
        self.jitter.change(impairments);
        self.reorder.probability = impairments.reorder.value();
        self.reorder_by = impairments.reorder_by;
    }

    /// Decides about the packet that would arrive at `due` on an unimpaired link; flips a bit of it if so decided.
    #[inline]
    pub(crate) fn pass(&mut self, due: Time, packet: &mut Packet) -> Passage {
        if self.transparent {
            return Passage { arrival: due.max(self.in_order), ..Passage::default() };
        }
        self.impair(due, packet)
    }

    fn impair(&mut self, due: Time, packet: &mut Packet) -> Passage {
        // Everything is drawn for every packet, lost ones too: see the module's documentation.
        let lost = self.loss.loses(due);
        let corrupt = self.corrupt.hits();
        let flip = corrupt.then(|| self.corrupt.stream.bits());
        let duplicated = self.duplicate.hits();
        let extra = self.jitter.draw(due);
        let held_back = self.reorder.hits();
        // A lost packet holds back its successors like any other, so that loss changes nobody's arrival time.
        let mut arrival = (due + extra).max(self.in_order);
        if held_back {
            arrival += self.reorder_by;
        } else {
            self.in_order = arrival;
        }
        if lost {
            return Passage { lost, ..Passage::default() };
        }
        let overtakes = arrival < self.latest;
        self.latest = self.latest.max(arrival);
        Passage {
            lost,
            arrival,
            corrupted: flip.is_some_and(|random| flip_bit(packet, random)),
            duplicated,
            overtakes,
        }
    }
}

fn is_transparent(impairments: &Impairments) -> bool {
    let Impairments { reorder_by, jitter_memory, .. } = *impairments;
    *impairments == Impairments { reorder_by, jitter_memory, ..Impairments::default() }
}

impl Chance {
    fn hits(&mut self) -> bool {
        self.probability > 0.0 && self.stream.chance(self.probability)
    }
}

/// Flips the bit behind the headers that 64 random bits choose; false if there is none.
fn flip_bit(packet: &mut Packet, random: u64) -> bool {
    let Some(bytes) = packet.bytes.get_mut(usize::from(packet.headers)..) else { return false };
    // The high half of the product: uniform below the number of bits.
    let bit = ((u128::from(random) * (bytes.len() as u128 * 8)) >> 64) as usize;
    let Some(byte) = bytes.get_mut(bit / 8) else { return false };
    *byte ^= 1 << (bit % 8);
    true
}
