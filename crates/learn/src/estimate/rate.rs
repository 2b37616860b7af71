//! The rate of the bottleneck and its framing, from packets that arrived close behind each other.

use crate::estimate::statistics::{Interval, bootstrap, median};
use crate::observations::Packet;

/// The largest gap within a train at the sender, in nanoseconds.
const TOGETHER: u64 = 1_000_000;
/// A train's shortest length.
const MIN_TRAIN: usize = 8;
/// The first packets of a train fill aggregates and wake radios.
const DISCARDED: usize = 2;

/// Bytes of framing per packet that are believed at most.
pub(crate) const MOST_OVERHEAD: f64 = 200.0;

/// The dispersion of a train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Train {
    /// The size of its packets.
    pub(crate) bytes: f64,
    /// Seconds per packet in which it left the bottleneck, others' packets of ours taken out.
    pub(crate) gap: f64,
}

/// The trains of a flow. `all` are all our packets of the direction by their arrival, which share the bottleneck.
pub(crate) fn trains(flow: &[Packet], all: &[Packet]) -> Vec<Train> {
    let mut trains = Vec::new();
    let mut arrivals: Vec<(i128, u32)> =
        all.iter().filter_map(|packet| Some((packet.received()?, packet.bytes))).collect();
    arrivals.sort_unstable();
    let mut begin = 0;
    for end in 1..=flow.len() {
        let ends = end == flow.len() || {
            let gap = flow[end].sent.since(flow[end - 1].sent).as_nanos();
            gap > TOGETHER || flow[end].bytes != flow[begin].bytes
        };
        if ends {
            trains.extend(train(&flow[begin..end], &arrivals));
            begin = end;
        }
    }
    trains
}

fn train(packets: &[Packet], arrivals: &[(i128, u32)]) -> Option<Train> {
    let arrived: Vec<i128> = packets.iter().filter_map(Packet::received).collect();
    if packets.len() < MIN_TRAIN || arrived.len() < MIN_TRAIN {
        return None;
    }
    let (from, to) = (*arrived.get(DISCARDED)?, *arrived.last()?);
    let count = arrived.iter().filter(|&&at| at > from && at <= to).count();
    if to <= from || count < MIN_TRAIN / 2 {
        return None;
    }
    // Bytes of all our packets that the bottleneck sent in that time, in units of the train's.
    let place = |at: i128| arrivals.partition_point(|&(other, _)| other <= at);
    let bytes: u64 = arrivals[place(from)..place(to)].iter().map(|&(_, bytes)| u64::from(bytes)).sum();
    let size = f64::from(packets[0].bytes);
    Some(Train { bytes: size, gap: (to - from) as f64 / 1e9 / (bytes as f64 / size).max(1.0) })
}

/// Rate and framing per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) rate: Interval,
    pub(crate) overhead: Interval,
}

/// The rate and framing for which the gaps of trains of two sizes are 8 (L + o) / C, or the rate without framing if all
/// have the same size.
pub(crate) fn line(trains: &[Train]) -> Option<Line> {
    let rate = bootstrap(trains, |trains| solve(trains).map(|(rate, _)| rate))?;
    let overhead = bootstrap(trains, |trains| solve(trains).map(|(_, overhead)| overhead))?;
    Some(Line { rate, overhead })
}

fn solve(trains: &[Train]) -> Option<(f64, f64)> {
    let largest = trains.iter().map(|train| train.bytes).fold(0.0, f64::max);
    let of = |is_large: bool| {
        let gaps = trains.iter().filter(|train| (train.bytes > 0.6 * largest) == is_large);
        let (gaps, sizes): (Vec<f64>, Vec<f64>) = gaps.map(|train| (train.gap, train.bytes)).unzip();
        (!gaps.is_empty()).then(|| (median(&gaps), median(&sizes)))
    };
    let (large, size) = of(true)?;
    let plain = (large > 0.0).then(|| (8.0 * size / large, 0.0));
    let Some((small, small_size)) = of(false) else { return plain };
    let slope = (large - small) / (size - small_size);
    if slope <= 0.0 {
        return plain;
    }
    let overhead = small / slope - small_size;
    // Framing is not negative, and less than a packet of ours: anything else is noise.
    if overhead < 0.0 { plain } else { Some((8.0 / slope, overhead.min(MOST_OVERHEAD))) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_core::Time;

    use super::*;

    /// Trains of packets of a size, 500 ms apart, over a line with framing.
    fn over(rate: f64, overhead: f64, bytes: u32, shift: u64) -> Vec<Packet> {
        let gap = 8.0 * (f64::from(bytes) + overhead) / rate * 1e9;
        (0..10u64)
            .flat_map(|train| (0..20u64).map(move |n| (train, n)))
            .map(|(train, n)| Packet {
                sent: Time::from_nanos(train * 500_000_000 + shift),
                bytes,
                delay: Some((5e6 + gap * (n + 1) as f64) as i64),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn two_sizes_give_rate_and_framing(rate in 1e6f64..1e9, overhead in 0.0f64..60.0) {
            let (large, small) = (over(rate, overhead, 1_228, 0), over(rate, overhead, 328, 250_000_000));
            let all: Vec<Packet> = large.iter().chain(&small).copied().collect();
            // At low rates, a train is still arriving when the next begins.
            prop_assume!(rate > 3e6);
            let found: Vec<Train> = trains(&large, &all).into_iter().chain(trains(&small, &all)).collect();
            let line = line(&found).unwrap();
            prop_assert!((line.rate.value / rate - 1.0).abs() < 0.01, "{line:?}");
            prop_assert!((line.overhead.value - overhead).abs() < 6.0, "{line:?}");
        }
    }
}
