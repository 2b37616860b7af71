//! Rates of single transfers.

use std::collections::BTreeMap;

use trunkline_core::Rate;

use crate::moments::Moments;
use crate::summary::TransferSummary;

/// The transfers of one flow. Of every channel it keeps two rates and some sums, whatever their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers {
    channels: BTreeMap<(u32, u16), Channel>,
}

/// The transfers of one channel.
#[derive(Clone, Debug, Default)]
struct Channel {
    completed: u64,
    /// The first, of which it is known only later whether it counts, and the latest.
    first: Rate,
    latest: Rate,
    /// Those between.
    between: Rates,
}

/// A set of rates in bits per second.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    moments: Moments,
    range: Option<(Rate, Rate)>,
}

impl Transfers {
    /// Adds a transfer of a channel; each channel's come in their order.
    pub(crate) fn add(&mut self, channel: (u32, u16), rate: Rate) {
        let channel = self.channels.entry(channel).or_default();
        match channel.completed {
            0 => channel.first = rate,
            1 => {}
            _ => channel.between.add(channel.latest),
        }
        channel.latest = rate;
        channel.completed += 1;
    }

    /// The figures over all channels, of which the flow has this many; `None` without a transfer.
    pub(crate) fn summary(&self, channels: u64) -> Option<TransferSummary> {
        let mut kept = Rates::default();
        for channel in self.channels.values() {
            match channel.completed {
                0 => {}
                1 => kept.add(channel.first),
                2 => [channel.first, channel.latest].into_iter().for_each(|rate| kept.add(rate)),
                _ => kept.merge(&channel.between),
            }
        }
        let (rate_min, rate_max) = kept.range?;
        let whole = |number: f64| Rate::from_bits_per_second(libm::round(number) as u64);
        Some(TransferSummary {
            completed: self.channels.values().map(|channel| channel.completed).sum(),
            kept: kept.moments.count(),
            rate_mean: whole(kept.moments.mean_nanos()),
            rate_standard_deviation: whole(kept.moments.standard_deviation_nanos()),
            rate_min,
            rate_max,
            rate_total: whole(kept.moments.mean_nanos() * channels as f64),
        })
    }
}

impl Rates {
    fn add(&mut self, rate: Rate) {
        self.moments.add_number(rate.bits_per_second());
        self.extend((rate, rate));
    }

    fn merge(&mut self, other: &Rates) {
        self.moments.merge(&other.moments);
        if let Some(range) = other.range {
            self.extend(range);
        }
    }

    fn extend(&mut self, (low, high): (Rate, Rate)) {
        let (min, max) = self.range.unwrap_or((low, high));
        self.range = Some((min.min(low), max.max(high)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(channels: &[&[u64]]) -> Transfers {
        let mut transfers = Transfers::default();
        for (channel, rates) in (0..).zip(channels) {
            for &rate in *rates {
                transfers.add((3, channel), Rate::from_bits_per_second(rate));
            }
        }
        transfers
    }

    fn summary(channels: &[&[u64]]) -> TransferSummary {
        of(channels).summary(channels.len() as u64).unwrap()
    }

    #[test]
    fn the_first_and_the_last_of_three_or_more_do_not_count() {
        let all = summary(&[&[1, 100, 104, 9999]]);
        let [mean, deviation, min, max, total] =
            [all.rate_mean, all.rate_standard_deviation, all.rate_min, all.rate_max, all.rate_total]
                .map(Rate::bits_per_second);
        assert_eq!((all.completed, all.kept), (4, 2));
        // Deviations of 2 each: sqrt(8 / 1) is 2.83.
        assert_eq!((mean, deviation, min, max, total), (102, 3, 100, 104, 102));
    }

    #[test]
    fn of_one_or_two_all_count() {
        assert_eq!((summary(&[&[7]]).kept, summary(&[&[7]]).rate_mean.bits_per_second()), (1, 7));
        assert_eq!((summary(&[&[6, 8]]).kept, summary(&[&[6, 8]]).rate_mean.bits_per_second()), (2, 7));
        assert_eq!(of(&[]).summary(1), None);
    }

    #[test]
    fn channels_drop_their_own_ends_and_carry_together_what_all_do() {
        let all = summary(&[&[1, 100, 1], &[2, 200, 2], &[50], &[]]);
        assert_eq!((all.completed, all.kept), (7, 3));
        assert_eq!(all.rate_min.bits_per_second(), 50);
        // 350 / 3 a channel; four of them.
        assert_eq!((all.rate_mean.bits_per_second(), all.rate_total.bits_per_second()), (117, 467));
    }
}
