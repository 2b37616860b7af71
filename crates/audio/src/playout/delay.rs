//! How much later than the fastest packets the others come: NetEQ's histogram with exponential forgetting.

use trunkline_core::{Duration, Time};

/// As in NetEQ's `histogram.cc`: what is known loses this share at every packet, and at first less is believed.
const FORGET: f64 = 1.0 - 0.9993;
/// A share that is nothing: what has been forgotten for half a minute of short packets, and what rounding leaves.
const FORGOTTEN: f64 = 1e-9;
/// Time in which the fastest packet is sought: NetEQ's `kMaxHistoryMs` is 2000.
const EPOCH: Duration = Duration::from_secs(2);
const BUCKETS: usize = 200;

/// Relative delays, and the quantile of them that is wanted.
#[derive(Clone, Debug)]
pub(super) struct DelayHistogram {
    /// Share of the packets by their delay; all together 1. The last one takes what is longer.
    share: [f64; BUCKETS],
    /// Nanoseconds of a bucket.
    width: u64,
    /// Share of packets that may be later than the depth.
    late: f64,
    packets: u64,
    /// Arrival less nominal time of the fastest packet, in this epoch and in the one before.
    fastest: Option<(i128, i128)>,
    epoch_end: Time,
}

impl DelayHistogram {
    /// Delays up to `most`, of which a share of `late` may be longer than the depth.
    pub(super) fn new(most: Duration, late: f64) -> DelayHistogram {
        DelayHistogram {
            share: [0.0; BUCKETS],
            width: (most.as_nanos() / BUCKETS as u64).max(1),
            late,
            packets: 0,
            fastest: None,
            epoch_end: Time::ZERO,
        }
    }

    /// Another stream: its delays begin from nothing, and it is expected to vary as the one before.
    pub(super) fn restart(&mut self) {
        self.fastest = None;
    }

    /// A packet arrived at `now` that was due `nominal` nanoseconds after number 0.
    pub(super) fn note(&mut self, now: Time, nominal: i128) {
        let transit = i128::from(now.as_nanos()) - nominal;
        let (mut current, mut before) = self.fastest.unwrap_or((transit, transit));
        if now >= self.epoch_end {
            before = current;
            current = transit;
            self.epoch_end = now + EPOCH;
        }
        current = current.min(transit);
        self.fastest = Some((current, before));
        let relative = (transit - current.min(before)) / i128::from(self.width);
        self.add((relative.max(0) as usize).min(BUCKETS - 1));
    }

    /// Arrival less nominal time of the fastest packet of the last epochs, in nanoseconds.
    pub(super) fn fastest(&self) -> Option<i128> {
        self.fastest.map(|(current, before)| current.min(before))
    }

    /// The delay that all but the share of late packets keep: the upper end of the bucket.
    pub(super) fn depth(&self) -> Duration {
        if self.packets == 0 {
            return Duration::ZERO;
        }
        let mut later = 1.0;
        for (bucket, share) in (1..).zip(self.share) {
            later -= share;
            if later <= self.late + FORGOTTEN {
                return Duration::from_nanos(self.width * bucket);
            }
        }
        Duration::from_nanos(self.width * BUCKETS as u64)
    }

    fn add(&mut self, bucket: usize) {
        self.packets += 1;
        // The plain mean until that is slower than forgetting.
        let weight = (1.0 / self.packets as f64).max(FORGET);
        for share in &mut self.share {
            *share *= 1.0 - weight;
        }
        self.share[bucket] += weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(delays_ms: impl IntoIterator<Item = u64>) -> DelayHistogram {
        let mut histogram = DelayHistogram::new(Duration::from_millis(200), 0.05);
        for (n, delay) in (0u64..).zip(delays_ms) {
            let now = Time::ZERO + Duration::from_millis(n * 10 + delay);
            histogram.note(now, i128::from(n) * 10_000_000);
        }
        histogram
    }

    #[test]
    fn the_depth_is_the_quantile() {
        // 0 to 99 ms, evenly.
        let depth = after((0..1000).map(|n| n * 37 % 100)).depth();
        assert!((94..=97).contains(&(depth.as_nanos() / 1_000_000)), "{depth}");
    }

    #[test]
    fn no_late_packet_at_all_is_as_much_as_the_latest() {
        let mut histogram = DelayHistogram::new(Duration::from_millis(200), 0.0);
        for n in 0..1000u64 {
            histogram
                .note(Time::ZERO + Duration::from_millis(n * 10 + n * 37 % 100), i128::from(n) * 10_000_000);
        }
        assert_eq!(histogram.depth(), Duration::from_millis(100));
    }

    #[test]
    fn what_was_is_forgotten() {
        let storm_then_calm = (0..500).map(|n| n % 5 * 30).chain((0..6000).map(|n| n % 3));
        let depth = after(storm_then_calm).depth();
        assert!(depth <= Duration::from_millis(4), "{depth}");
    }

    #[test]
    fn a_constant_delay_however_long_needs_no_depth() {
        let depth = after((0..100).map(|_| 5_000)).depth();
        assert!(depth <= Duration::from_millis(1), "{depth}");
    }

    #[test]
    fn a_longer_path_is_the_new_normal_after_two_epochs() {
        let histogram = after((0..400).map(|_| 10).chain((0..500).map(|_| 80)));
        assert_eq!(histogram.fastest(), Some(80_000_000));
    }
}
