//! The estimates of one direction.

use super::Clocks;
use super::base::Base;
use super::passage::{Passage, Passages};
use super::policer::Policer;
use super::queue::{Discipline, Losses, Sorted};
use super::service::{RateEstimate, Service};
use crate::{JitterShape, Observations, Way};

/// The shortest time whose arrivals bound the rate of a link that is not saturated.
const SHORTEST: f64 = 100e6;
/// The smallest delay is hardly ever further below the median of a normal jitter, in deviations.
const DEVIATIONS: f64 = 6.0;
/// A deviation in nanoseconds that is none: clocks of captures are not better.
const EXACT: f64 = 20e3;

/// Everything known of one direction. Times in nanoseconds, rates in bit/s.
#[derive(Debug)]
pub(super) struct WayEstimate {
    pub(super) packets: usize,
    pub(super) lost: usize,
    pub(super) sizes: (u32, u32),
    pub(super) length: u64,
    /// The delay of a packet of no bytes that waits for nothing.
    pub(super) base: Base,
    /// Packets that were near it.
    pub(super) near_base: usize,
    near: &'static str,
    pub(super) rate: Option<RateEstimate>,
    /// The rate is not smaller than this.
    pub(super) at_least: f64,
    pub(super) longest_wait: f64,
    /// The largest backlog in bytes.
    pub(super) visited: f64,
    pub(super) queue: Discipline,
    pub(super) losses: Losses,
    pub(super) policer: Option<Policer>,
    pub(super) jitter: Option<Jitter>,
    pub(super) reordering: Option<Reordering>,
}

#[derive(Debug)]
pub(super) struct Jitter {
    pub(super) packets: usize,
    pub(super) shape: JitterShape,
    pub(super) mean: f64,
    pub(super) median: f64,
    pub(super) p95: f64,
    /// Most packets had the same delay above the smallest: this is not chance.
    pub(super) is_constant: bool,
}

#[derive(Debug)]
pub(super) struct Reordering {
    pub(super) packets: usize,
    pub(super) lateness: f64,
}

impl WayEstimate {
    /// `None` if no packet of the direction arrived.
    pub(super) fn of(observations: &Observations, way: Way, clocks: Clocks) -> Option<WayEstimate> {
        let passages = Passages::of(observations, way);
        let first = passages.arrived.first()?;
        let smallest = passages.arrived.iter().map(Passage::delay).fold(f64::INFINITY, f64::min);
        // At first without knowing which losses are those of a full queue.
        let service = Service::of(&passages, smallest, &[]);
        let rate = service.rate();
        let base = Base::of(&passages, rate.as_ref());
        let longest = |base: &Base| passages.arrived.iter().map(|p| base.wait(p)).fold(0.0, f64::max);
        let sorted = Sorted::of(&passages, smallest, &base, rate.as_ref(), longest(&base));
        let rate = sorted.service.rate();
        let base = Base::of(&passages, rate.as_ref());
        let longest_wait = longest(&base);
        // Between two clocks, the smallest delay contains their difference, of which a share says nothing.
        let (near, most) = match clocks {
            Clocks::Same | Clocks::RoundTrip => ("0.1 ms or 1 %", base.value.abs().mul_add(0.01, 100_000.0)),
            Clocks::Apart | Clocks::Relative => ("0.1 ms", 100_000.0),
        };
        let near_base = passages.arrived.iter().filter(|p| base.wait(p) <= most).count();
        let end = passages.arrived.iter().map(|p| p.received).fold(first.received, f64::max);
        let lost = passages.all.iter().filter(|packet| packet.is_lost).count();
        Some(WayEstimate {
            packets: passages.all.len(),
            lost,
            sizes: passages.sizes,
            length: (end - first.received) as u64,
            near_base,
            near,
            at_least: at_least(&passages.arrived),
            longest_wait,
            visited: visited(&passages, &base),
            queue: sorted.discipline,
            losses: sorted.losses,
            policer: sorted.policer,
            jitter: jitter(&passages, &base),
            reordering: reordering(&passages),
            rate,
            base,
        })
    }

    /// A sentence on the smallest delay.
    pub(super) fn confidence_in_base(&self) -> String {
        match self.near_base {
            0..5 => format!(
                "only {} packets had it: the queue may never have been empty, and the true delay smaller",
                self.near_base
            ),
            count => {
                format!("{count} of {} packets were within {} of it", self.packets - self.lost, self.near)
            }
        }
    }
}

/// A lower bound of the rate. Packets that arrive within some time have left the line within this time and the spread of the delays, for
/// jitter and stalls bring packets together.
fn at_least(arrived: &[Passage]) -> f64 {
    let delays = || arrived.iter().map(Passage::delay);
    let spread = delays().fold(f64::NEG_INFINITY, f64::max) - delays().fold(f64::INFINITY, f64::min);
    let [first, .., last] = arrived else { return 0.0 };
    let (mut window, mut most) = (SHORTEST, 0.0);
    loop {
        most = f64::max(most, densest(arrived, window) * 8e9 / (window + spread));
        if window > last.received - first.received {
            return most;
        }
        window *= 2.0;
    }
}

/// The most bytes that arrived within this time after a packet.
fn densest(arrived: &[Passage], window: f64) -> f64 {
    let (mut first, mut bytes, mut most) = (0, 0.0, 0.0);
    for passage in arrived {
        bytes += passage.bytes;
        while passage.received - arrived[first].received > window {
            bytes -= arrived[first].bytes;
            first += 1;
        }
        most = f64::max(most, bytes - arrived[first].bytes);
    }
    most
}

/// Delays above the smallest, of packets before which nothing of this recording was in the queue.
fn jitter(passages: &Passages, base: &Base) -> Option<Jitter> {
    let packets = passages.by_sending.iter().zip(&base.is_free).filter(|(_, is_free)| **is_free);
    let mut delays: Vec<f64> = packets.map(|(passage, _)| base.wait(passage)).collect();
    if delays.len() < 100 {
        return None;
    }
    delays.sort_by(f64::total_cmp);
    let quantile = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize];
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let (median, p95) = (quantile(0.5), quantile(0.95));
    let deviation = (quantile(0.84) - quantile(0.16)) / 2.0;
    // Of each kind the one that these delays fit best, by quantiles where a few outliers would change it.
    let shapes = [
        JitterShape::Exponential(mean),
        JitterShape::Uniform(p95 / 0.95),
        JitterShape::Normal(median, deviation),
    ];
    let shape = shapes.into_iter().min_by(|a, b| distance(&delays, a).total_cmp(&distance(&delays, b)))?;
    let is_constant = DEVIATIONS * deviation < median || deviation < EXACT;
    Some(Jitter { packets: delays.len(), shape, mean, median, p95, is_constant })
}

/// The largest difference between the distribution of these sorted delays and that of a kind of jitter.
fn distance(delays: &[f64], shape: &JitterShape) -> f64 {
    let below = |x: f64| match *shape {
        JitterShape::Exponential(mean) => 1.0 - (-x.max(0.0) / mean.max(1.0)).exp(),
        JitterShape::Uniform(max) => (x / max.max(1.0)).clamp(0.0, 1.0),
        JitterShape::Normal(mean, deviation) => normal((x - mean) / deviation.max(1.0)),
    };
    let shares =
        delays.iter().zip(0_u32..).map(|(x, n)| (below(*x) - f64::from(n) / delays.len() as f64).abs());
    shares.fold(0.0, f64::max)
}

/// The standard normal distribution, by the logistic one of Bowling (2009), within 2e-4.
fn normal(z: f64) -> f64 {
    1.0 / (1.0 + (-0.07056 * z.powi(3) - 1.5976 * z).exp())
}

/// The most bytes that were on the line and in front of it.
fn visited(passages: &Passages, base: &Base) -> f64 {
    let mut left = passages.arrived.iter().peekable();
    let (mut backlog, mut most) = (0.0, 0.0);
    for passage in &passages.by_sending {
        while let Some(passage) = left.next_if(|one| one.received - base.value <= passage.sent) {
            backlog -= passage.bytes;
        }
        backlog += passage.bytes;
        most = f64::max(most, backlog);
    }
    most
}

/// Packets that arrived after one that was sent later (RFC 4737).
fn reordering(passages: &Passages) -> Option<Reordering> {
    // In the order of arrival: the latest sending so far, and when each new one came.
    let mut latest: Vec<(f64, f64)> = Vec::new();
    let mut late = Vec::new();
    for passage in &passages.arrived {
        match latest.last() {
            Some((sent, _)) if passage.sent < *sent => {
                let first_later = latest.partition_point(|(sent, _)| *sent <= passage.sent);
                late.push(passage.received - latest[first_later].1);
            }
            Some((sent, _)) if passage.sent == *sent => {}
            _ => latest.push((passage.sent, passage.received)),
        }
    }
    if late.len() < 5 || late.len() * 5_000 < passages.all.len() {
        return None;
    }
    late.sort_by(f64::total_cmp);
    Some(Reordering { packets: late.len(), lateness: late[late.len() / 2] })
}
