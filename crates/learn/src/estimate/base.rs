//! Clock skew and base delay: the line below all delays.

use crate::estimate::statistics::median;
use crate::observations::Packet;

/// The line under the delays of packets of one size: delay in seconds at time 0, and its change per second. It is the edge
/// of the lower convex hull above the middle of the time, which no jitter biases (Moon, Skelly and Towsley 1999).
pub(crate) fn line(packets: &[Packet]) -> Option<(f64, f64)> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    let points = packets
        .iter()
        .filter_map(|packet| packet.delay.map(|delay| (packet.sent.as_secs_f64(), delay as f64 / 1e9)));
    for point in points {
        while let [.., before, last] = hull[..]
            && cross(before, last, point) <= 0.0
        {
            hull.pop();
        }
        hull.push(point);
    }
    let (first, last) = (*hull.first()?, *hull.last()?);
    let middle = (first.0 + last.0) / 2.0;
    let edge = hull.windows(2).find(|edge| edge[1].0 >= middle);
    let Some([from, to]) = edge else { return Some((first.1, 0.0)) };
    let slope = if to.0 > from.0 { (to.1 - from.1) / (to.0 - from.0) } else { 0.0 };
    Some((from.1 - slope * from.0, slope))
}

/// Positive if `c` lies to the left of the way from `a` to `b`.
fn cross(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

/// The largest skew between two undisciplined clocks that are still plausible, per second.
const MAX_SKEW: f64 = 600e-6;

/// The skew of the clocks of a direction per second, if it is small enough for clocks.
/// A steeper line is a change of the path.
pub(crate) fn skew(packets: &[Packet]) -> Option<f64> {
    let (_, slope) = line(packets)?;
    (slope.abs() <= MAX_SKEW).then_some(slope)
}

/// The smallest delay of each of [`BLOCKS`] parts of the packets, with the time of its packet, in seconds.
fn minima(packets: &[Packet]) -> Vec<(f64, f64)> {
    let blocks = packets.chunks(packets.len().div_ceil(BLOCKS).max(1));
    let smallest = |block: &[Packet]| {
        let arrived = block.iter().filter_map(|packet| Some((packet.sent, packet.delay?)));
        arrived.min_by_key(|(_, delay)| *delay)
    };
    let seconds = |(sent, delay): (trunkline_core::Time, i64)| (sent.as_secs_f64(), delay as f64 / 1e9);
    blocks.filter_map(smallest).map(seconds).collect()
}

/// Parts of the packets: neighbours share what delays them.
const BLOCKS: usize = 12;

/// The change of the delay that a skew makes over these packets, in spreads of the smallest delays of parts around it.
pub(crate) fn drift_in_spreads(packets: &[Packet], skew: f64) -> f64 {
    let minima = minima(packets);
    let (Some(first), Some(last)) = (minima.first(), minima.last()) else { return 0.0 };
    let level: Vec<f64> = minima.iter().map(|(at, delay)| delay - skew * at).collect();
    let lowest = level.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = level.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (skew * (last.0 - first.0)).abs() / (highest - lowest).max(1e-6)
}

/// The smallest delay of packets in seconds, and the median of the smallest ones of parts of them: their difference shows how
/// well the smallest is known.
pub(crate) fn smallest(packets: &[Packet]) -> Option<(f64, f64)> {
    let minima: Vec<f64> = minima(packets).into_iter().map(|(_, delay)| delay).collect();
    let smallest = minima.iter().copied().min_by(f64::total_cmp)?;
    Some((smallest, median(&minima)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_core::{Seed, Time};

    use super::*;

    proptest! {
        /// Whatever the jitter, the line is below all delays and finds the skew that touches them.
        #[test]
        fn the_line_is_under_all_delays(ppm in -300i64..300, seed: u64) {
            let mut stream = Seed::new(seed, 0).stream("delays");
            let packets: Vec<Packet> = (0..2_000u64)
                .map(|n| {
                    let sent = n * 10_000_000;
                    // Every tenth packet meets an empty queue.
                    let queued = if stream.unit() < 0.1 { 0.0 } else { stream.exponential(5e6) };
                    let delay = 20_000_000 + (sent as i64 / 1_000_000) * ppm + queued as i64;
                    Packet { sent: Time::from_nanos(sent), bytes: 128, delay: Some(delay) }
                })
                .collect();
            let (at_zero, slope) = line(&packets).unwrap();
            for packet in &packets {
                let below = at_zero + slope * packet.sent.as_secs_f64();
                prop_assert!(packet.delay.unwrap() as f64 / 1e9 >= below - 1e-6);
            }
            prop_assert!((slope * 1e6 - ppm as f64).abs() < 1.0, "{slope}");
            prop_assert!((at_zero - 0.02).abs() < 1e-5);
        }
    }
}
