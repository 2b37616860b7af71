//! What CCID 4 changes of CCID 3 for small packets (RFC 5622, RFC 4828): a flow of voice may use the bytes per second of
//! a TCP with large segments, headers counted, and short loss intervals count every lost packet.

use std::collections::VecDeque;

use trunkline_core::{Duration, Time};

use super::loss::Reported;
use super::seq::Seq;
use super::tfrc::INTERVALS;

/// The segment size in the throughput equation, in bytes.
pub(super) const SEGMENT: f64 = 1460.0;
/// The header that counts with every packet: IPv4's and that of DCCP-Data.
pub(super) const HEADER: f64 = 36.0;
/// The least time between two packets.
pub(super) const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// How many sending times are remembered, half a round trip apart.
const MARKS: usize = 64;

/// Which loss intervals lasted at most two round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct ShortIntervals {
    /// Numbers with their sending times, oldest first.
    marks: VecDeque<(Seq, Time)>,
    /// By the intervals' first numbers, newest first. An interval is judged while its times are still known.
    judged: VecDeque<(Seq, bool)>,
    /// Whether the present interval is short so far.
    is_present_short: bool,
}

impl ShortIntervals {
    pub(super) fn on_sent(&mut self, now: Time, number: Seq, rtt: f64) {
        let is_due = self.marks.back().is_none_or(|&(_, at)| now.since(at).as_secs_f64() >= rtt / 2.0);
        if is_due {
            if self.marks.len() == MARKS {
                self.marks.pop_front();
            }
            self.marks.push_back((number, now));
        }
    }

    /// The length of the `index`-th newest interval for the average: that of its data, divided by the lost packets if it
    /// was short (RFC 5622 section 6.1). Without a report of the drops, the whole lossy part was lost.
    pub(super) fn length(
        &mut self,
        start: Seq,
        last: Seq,
        index: usize,
        interval: &Reported,
        drops: Option<u64>,
        rtt: f64,
    ) -> f64 {
        let length = interval.data_length as f64;
        // The oldest interval of a connection has no loss: its length is synthetic.
        let lost = drops.unwrap_or(interval.lossy).min(interval.lossy);
        // The newest two may still be growing.
        let is_short = match self.judged.iter().position(|&(other, _)| other == start) {
            Some(known) if index > 1 => self.judged[known].1,
            known => {
                let is_short = self.lasted(start, last).is_some_and(|lasted| lasted <= 2.0 * rtt);
                match known {
                    Some(known) => self.judged[known].1 = is_short,
                    None => {
                        self.judged.truncate(INTERVALS);
                        self.judged.push_front((start, is_short));
                    }
                }
                is_short
            }
        };
        if index == 0 {
            self.is_present_short = is_short;
        }
        if is_short && lost > 0 { (length / lost as f64).max(1.0) } else { length }
    }

    /// Whether the present interval is too short to count at all.
    pub(super) fn is_present_short(&self) -> bool {
        self.is_present_short
    }

    /// How many seconds lay between the sending of two packets, if that is still known.
    fn lasted(&self, start: Seq, last: Seq) -> Option<f64> {
        let at = |number: Seq| {
            let index = self.marks.partition_point(|&(mark, _)| !mark.is_after(number));
            Some(self.marks.get(index.checked_sub(1)?)?.1)
        };
        Some(at(last)?.since(at(start)?).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_intervals_count_every_loss() {
        // 100 packets per second, a round trip of 100 ms: two round trips are 20 packets.
        let mut short = ShortIntervals::default();
        for n in 0..100 {
            short.on_sent(Time::ZERO + Duration::from_millis(10 * n), Seq::new(n), 0.1);
        }
        let interval = |lossy, data_length| Reported { lossless: 0, lossy, data_length };
        let present = short.length(Seq::new(85), Seq::new(99), 0, &interval(4, 15), Some(3), 0.1);
        assert_eq!(present, 5.0);
        assert!(short.is_present_short());
        assert_eq!(short.length(Seq::new(85), Seq::new(99), 0, &interval(4, 15), None, 0.1), 3.75);
        assert_eq!(short.length(Seq::new(30), Seq::new(84), 1, &interval(4, 55), Some(3), 0.1), 55.0);
    }

    #[test]
    fn an_interval_stays_what_it_was_judged_to_be() {
        let mut short = ShortIntervals::default();
        let interval = Reported { lossless: 8, lossy: 2, data_length: 10 };
        for n in 0..2000 {
            short.on_sent(Time::ZERO + Duration::from_millis(10 * n), Seq::new(n), 0.1);
            if n == 20 {
                assert_eq!(short.length(Seq::new(10), Seq::new(19), 1, &interval, Some(2), 0.1), 5.0);
            }
        }
        assert_eq!(short.length(Seq::new(10), Seq::new(19), 5, &interval, Some(2), 0.1), 5.0);
        assert_eq!(short.length(Seq::new(50), Seq::new(59), 5, &interval, Some(2), 0.1), 10.0);
    }
}
