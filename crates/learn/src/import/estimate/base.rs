//! The delay of a path on which nothing waits: a constant and a time for each byte.

use super::passage::{Passage, Passages};
use super::service::RateEstimate;

/// Classes of sizes, and the packets that make a class count.
const CLASSES: usize = 8;
const MIN_OF_CLASS: usize = 5;
/// Noise that is taken for none, in nanoseconds: clocks of captures are not better.
const EXACT: f64 = 20e3;

#[derive(Debug)]
pub(super) struct Base {
    /// The delay of a packet of no bytes, and the bounds between which it is.
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The time that each further byte adds to the delay of a packet that did not wait.
    pub(super) per_byte: f64,
    /// The rate of the line by that time alone, with its bounds.
    pub(super) by_size: Option<[f64; 3]>,
    /// By the order of sending: before these packets nothing of this recording was in the queue.
    pub(super) is_free: Vec<bool>,
    /// These packets may have waited, and `by_size` is the rate if they did not.
    pub(super) is_taken_as_free: bool,
}

impl Base {
    pub(super) fn of(passages: &Passages, rate: Option<&RateEstimate>) -> Base {
        let smallest = passages.arrived.iter().map(Passage::delay).fold(f64::INFINITY, f64::min);
        let base = Base::from(passages, rate, None);
        if rate.is_some() || base.by_size.is_some() {
            return base;
        }
        // Times at which only packets of one size are known not to have waited: the sizes may still explain all delays.
        let other = Base::from(passages, rate, Some(smallest));
        let slowest = 8e9 / closest(passages, 100, |_, _| true);
        match other.by_size {
            Some([value, low, high]) if classes(passages, &other.is_free, other.per_byte).len() > 1 => {
                let by_size = Some([value, low.min(slowest), high]);
                Base { low: base.low.min(other.low), by_size, is_taken_as_free: true, ..other }
            }
            _ => base,
        }
    }

    /// Packets that were sent when all before them had left are free. `propagation` decides it, or the lowest base that is possible.
    fn from(passages: &Passages, rate: Option<&RateEstimate>, propagation: Option<f64>) -> Base {
        let smallest = passages.arrived.iter().map(Passage::delay).fold(f64::INFINITY, f64::min);
        // No packet takes longer than the smallest gap between arrivals, so with this the base is at its lowest.
        let most = match rate {
            None => closest(passages, 100, |_, _| true),
            // Behind a shaper, the line is faster than the rate.
            Some(rate) if rate.is_exact => (8e9 / rate.value).min(closest(passages, 1000, is_not_caught_up)),
            Some(rate) => 8e9 / rate.value,
        };
        let low = lowest(passages, rate.map_or(most, |rate| 8e9 / rate.value));
        let mut base = Base {
            value: if rate.is_some() { lowest(passages, most) } else { smallest },
            low,
            high: smallest,
            per_byte: if rate.is_some() { most } else { 0.0 },
            by_size: None,
            is_free: free(passages, propagation.unwrap_or_else(|| lowest(passages, most))),
            is_taken_as_free: false,
        };
        // The more of the delay is known to be propagation, the more packets are known to be free.
        for _ in 0..3 {
            let at_most = classes(passages, &base.is_free, most);
            let [first, .., last] = &at_most[..] else { break };
            let slope = envelope(passages, &base.is_free, f64::midpoint(first.centre, last.centre))
                .clamp(0.0, if rate.is_some() { most } else { f64::INFINITY });
            let noise = noise(&classes(passages, &base.is_free, slope));
            let least = at_most.iter().map(|class| class.least).fold(f64::INFINITY, f64::min);
            // Transmission at this rate is too long for small packets if none of them, free of others, was as quick as large ones.
            if rate.is_none() || first.least - least > 3.0 * noise {
                base.per_byte = slope;
                base.value = lowest(passages, slope);
            }
            let (range, effect) = (last.centre - first.centre, slope * (last.centre - first.centre));
            if rate.is_none() && effect > 10.0 * noise {
                base.by_size =
                    Some([effect, effect + noise, effect - noise].map(|effect| 8e9 * range / effect));
            }
            (base.low, base.high) =
                (low.min(base.value).max(base.value - noise), smallest.min(base.value + noise));
            base.is_free = free(passages, base.value);
        }
        base
    }

    /// The time that a packet waited.
    pub(super) fn wait(&self, passage: &Passage) -> f64 {
        passage.delay() - passage.bytes * self.per_byte - self.value
    }
}

fn lowest(passages: &Passages, per_byte: f64) -> f64 {
    passages.arrived.iter().map(|p| p.delay() - p.bytes * per_byte).fold(f64::INFINITY, f64::min)
}

/// A line transmits packets one after the other, so that the time between two arrivals is at least the transmission of the second. A few
/// may be closer by jitter.
fn closest(passages: &Passages, one_in: usize, counts: fn(&Passage, &Passage) -> bool) -> f64 {
    let pairs = passages.arrived.iter().zip(passages.arrived.iter().skip(1));
    let mut gaps: Vec<f64> = pairs
        .filter(|(before, passage)| counts(before, passage))
        .map(|(before, passage)| (passage.received - before.received) / passage.bytes.max(1.0))
        .collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(MIN_OF_CLASS.max(gaps.len() / one_in)).copied().unwrap_or(f64::INFINITY)
}

/// True unless the second packet was held up for less time than the first. After a stall, packets arrive together although the line
/// transmitted them one after the other.
fn is_not_caught_up(before: &Passage, passage: &Passage) -> bool {
    passage.delay() >= before.delay()
}

/// Packets that were sent when all before them had left the line, which is `base` before they arrived.
fn free(passages: &Passages, base: f64) -> Vec<bool> {
    let mut last = f64::NEG_INFINITY;
    passages
        .by_sending
        .iter()
        .map(|passage| {
            let is_free = passage.sent >= last - base;
            last = last.max(passage.received);
            is_free
        })
        .collect()
}

struct Class {
    centre: f64,
    /// The smallest delay without the transmission, and how far the next ones are from it.
    least: f64,
    noise: f64,
}

/// Free packets by their size, smallest first.
fn classes(passages: &Passages, is_free: &[bool], per_byte: f64) -> Vec<Class> {
    let (from, to) = (f64::from(passages.sizes.0), f64::from(passages.sizes.1));
    let mut by_class: Vec<(f64, Vec<f64>)> = vec![(0.0, Vec::new()); CLASSES];
    for (passage, _) in passages.by_sending.iter().zip(is_free).filter(|(_, is_free)| **is_free) {
        let class = ((passage.bytes - from) / (to - from + 1.0) * CLASSES as f64) as usize;
        let (bytes, delays) = &mut by_class[class.min(CLASSES - 1)];
        *bytes += passage.bytes;
        delays.push(passage.delay() - passage.bytes * per_byte);
    }
    by_class
        .into_iter()
        .filter(|(_, delays)| delays.len() >= MIN_OF_CLASS)
        .map(|(bytes, mut delays)| {
            delays.sort_by(f64::total_cmp);
            let centre = bytes / delays.len() as f64;
            Class { centre, least: delays[0], noise: delays[MIN_OF_CLASS - 1] - delays[0] }
        })
        .collect()
}

/// The noise of the smallest delays of classes: that of a common one, since few packets of a class may have been free.
fn noise(classes: &[Class]) -> f64 {
    let mut noise: Vec<f64> = classes.iter().map(|class| class.noise).collect();
    noise.sort_by(f64::total_cmp);
    noise.get(noise.len() / 2).map_or(EXACT, |noise| noise.max(EXACT))
}

/// The slope of the line below all free packets, delay by size, that is as near to them as possible at this size: of their lower convex hull.
fn envelope(passages: &Passages, is_free: &[bool], centre: f64) -> f64 {
    let mut points: Vec<(f64, f64)> = passages
        .by_sending
        .iter()
        .zip(is_free)
        .filter(|(_, is_free)| **is_free)
        .map(|(passage, _)| (passage.bytes, passage.delay()))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points.dedup_by_key(|point| point.0);
    let slope = |a: (f64, f64), b: (f64, f64)| (b.1 - a.1) / (b.0 - a.0);
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        while let [.., a, b] = hull[..]
            && slope(a, b) >= slope(b, point)
        {
            hull.pop();
        }
        hull.push(point);
    }
    let edge = hull.partition_point(|point| point.0 <= centre).clamp(1, hull.len().max(2) - 1);
    match (hull.get(edge - 1), hull.get(edge)) {
        (Some(a), Some(b)) => slope(*a, *b),
        _ => 0.0,
    }
}
