//! A policer: a token bucket that discards the packets for which it has no tokens.

use super::base::Base;
use super::passage::Passages;

/// Losses, and runs of them, from which on a bucket is looked for.
const MIN_LOSSES: usize = 50;
const MIN_RUNS: usize = 10;
/// The bucket is searched for in the first packets, up to this number.
const MAX_PACKETS: usize = 100_000;
/// Losses between which the rate of what passes is measured.
const NEAR: usize = 8;
/// In a queue, a packet would wait until the missing tokens have come. A shorter wait than this share is not one of a queue.
const WAIT: f64 = 0.3;
/// Waits that are noise, in nanoseconds.
const EXACT: f64 = 20e3;

#[derive(Debug)]
pub(super) struct Policer {
    /// Tokens in bit/s, with the smallest and the largest value that explain the losses as well.
    pub(super) rate: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The bucket in bytes: what was let through at once, and what was not.
    pub(super) burst: (f64, f64),
    /// Packets that were discarded.
    pub(super) lost: usize,
    /// By the order of sending: the bucket had no tokens for these packets.
    pub(super) is_beyond: Vec<bool>,
}

/// A packet when the bucket meters it.
struct Metered {
    at: f64,
    bytes: f64,
    is_lost: bool,
    wait: f64,
}

/// A packet with the bytes that a bucket lacks once it has passed.
#[derive(Clone, Copy)]
struct Missing {
    bytes: f64,
    place: usize,
    is_lost: bool,
}

/// The size of a bucket that separates packets which passed from those that were lost.
struct Split {
    burst: (f64, f64),
    /// Packets on the wrong side.
    errors: usize,
}

impl Policer {
    /// `None` unless a token bucket explains nearly all losses, and a line, sizes or chance do not.
    pub(super) fn of(passages: &Passages, base: &Base) -> Option<Policer> {
        let metered = metered(passages, base);
        let some = &metered[..metered.len().min(MAX_PACKETS)];
        let lost = some.iter().filter(|packet| packet.is_lost).count();
        let runs = some.chunk_by(|a, b| a.is_lost == b.is_lost).filter(|run| run[0].is_lost).count();
        if lost < MIN_LOSSES || runs < MIN_RUNS {
            return None;
        }
        let errors = |rate: f64| split(missing(some, rate)).errors;
        let first = candidates(some).into_iter().map(|rate| (errors(rate), rate));
        let (mut fewest, mut rate) = first.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
        let mut step = 0.05;
        while step > 1e-5 {
            let beside = [rate * (1.0 - step), rate * (1.0 + step)].map(|rate| (errors(rate), rate));
            match beside.into_iter().min_by_key(|(errors, _)| *errors) {
                Some((errors, better)) if errors < fewest => (fewest, rate) = (errors, better),
                _ => step /= 2.0,
            }
        }
        // All rates that explain the losses nearly as well, of which the middle one counts.
        let as_well = |rate: f64| errors(rate) <= fewest + 2 + lost / 100;
        let [low, high] = [-1.0, 1.0].map(|way| {
            let (mut inside, mut outside) = (0.0, 0.5);
            for _ in 0..16 {
                let middle = f64::midpoint(inside, outside);
                if as_well(rate * (1.0 + way * middle)) { inside = middle } else { outside = middle }
            }
            rate * (1.0 + way * outside)
        });
        let rate = f64::midpoint(low, high);
        let Split { burst, errors } = split(missing(some, rate));
        // Only a size that a packet may not have: no rate is needed for it.
        let by_size = split(missing(some, f64::INFINITY)).errors;
        if 10 * errors > lost || 2 * errors + lost / 4 > by_size {
            return None;
        }
        // The level of the bucket is known within a packet.
        let lacks = |one: &Missing| {
            one.bytes > burst.0 || one.is_lost && one.bytes + f64::from(passages.sizes.1) > burst.0
        };
        let all = missing(&metered, rate);
        let mut is_beyond = vec![false; metered.len()];
        all.iter().for_each(|one| is_beyond[one.place] = lacks(one));
        let beyond = all.iter().filter(|one| lacks(one));
        let lost = beyond.clone().filter(|one| one.is_lost).count();
        if 20 * (beyond.count() - lost) > lost || waits(&metered, &all, rate, burst.0) {
            return None;
        }
        Some(Policer { rate, low, high, burst, lost, is_beyond })
    }
}

/// The packets when their last bit has left the line.
fn metered(passages: &Passages, base: &Base) -> Vec<Metered> {
    let mut arrived = passages.by_sending.iter();
    let mut free = 0.0;
    let metered = passages.all.iter().map(|sent| {
        free = f64::max(free, sent.at) + sent.bytes * base.per_byte;
        let wait = if sent.is_lost { 0.0 } else { arrived.next().map_or(0.0, |passage| base.wait(passage)) };
        Metered { at: free, bytes: sent.bytes, is_lost: sent.is_lost, wait }
    });
    metered.collect()
}

/// Rates of tokens that may be: those at which packets passed from one loss to a later one, between which a bucket without tokens has not
/// become full.
fn candidates(metered: &[Metered]) -> Vec<f64> {
    let mut passed = 0.0;
    let mut losses = Vec::new();
    for packet in metered {
        if packet.is_lost { losses.push((packet.at, passed)) } else { passed += packet.bytes }
    }
    let mut candidates = Vec::new();
    let mut apart = NEAR;
    while apart < losses.len() {
        let pairs = losses.iter().zip(&losses[apart..]);
        let mut rates: Vec<f64> = pairs
            .filter(|(from, to)| to.0 > from.0 && to.1 > from.1)
            .map(|(from, to)| (to.1 - from.1) * 8e9 / (to.0 - from.0))
            .collect();
        rates.sort_by(f64::total_cmp);
        let quantile = |share: f64| rates.get((rates.len().saturating_sub(1) as f64 * share) as usize);
        candidates.extend([0.25, 0.5, 0.75, 0.9, 1.0].into_iter().filter_map(quantile));
        apart *= 2;
    }
    candidates
}

/// The bytes that a bucket with tokens of this rate lacks after each packet, if the packet is let through.
fn missing(metered: &[Metered], rate: f64) -> Vec<Missing> {
    let (mut level, mut last) = (0.0, f64::NEG_INFINITY);
    let missing = metered.iter().zip(0..).map(|(packet, place)| {
        level = f64::max(level - (packet.at - last) * rate / 8e9, 0.0);
        last = packet.at;
        let bytes = level + packet.bytes;
        if !packet.is_lost {
            level = bytes;
        }
        Missing { bytes, place, is_lost: packet.is_lost }
    });
    missing.collect()
}

/// The size that puts as few packets as possible on the wrong side.
fn split(mut missing: Vec<Missing>) -> Split {
    missing.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    let mut errors = missing.iter().filter(|one| !one.is_lost).count();
    let mut best = Split { burst: (0.0, 0.0), errors };
    let mut groups = missing.chunk_by(|a, b| a.bytes == b.bytes).peekable();
    while let Some(group) = groups.next() {
        let lost = group.iter().filter(|one| one.is_lost).count();
        errors = errors + lost - (group.len() - lost);
        if errors < best.errors {
            let above = groups.peek().map_or(f64::INFINITY, |next| next[0].bytes);
            best = Split { burst: (group[0].bytes, above), errors };
        }
    }
    best
}

/// True if packets waited as in a queue whose line has the bucket's rate.
fn waits(metered: &[Metered], missing: &[Missing], rate: f64, burst: f64) -> bool {
    let deep = missing.iter().filter(|one| !one.is_lost && one.bytes > 0.5 * burst);
    let (waiting, all) = deep.fold((0_usize, 0_usize), |(waiting, all), one| {
        let packet = &metered[one.place];
        let queued = (one.bytes - packet.bytes) * 8e9 / rate;
        (waiting + usize::from(packet.wait > WAIT * queued + EXACT), all + 1)
    });
    2 * waiting > all
}
