//! The state of a TCP connection over time, in bounded memory for a run of any length.

pub(crate) mod columns;

use trunkline_core::{Bytes, Duration, Rate, Time};

/// The state of a connection's sending end at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionSample {
    /// Time of the sample.
    pub at: Time,
    /// The congestion window; zero without congestion control.
    pub congestion_window: Bytes,
    /// The slow-start threshold; `None` before there is one.
    pub slow_start_threshold: Option<Bytes>,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// The smoothed round trip; `None` before the first measured one.
    pub smoothed_round_trip: Option<Duration>,
    /// The pacing rate; `None` before there is one.
    pub pacing_rate: Option<Rate>,
    /// Segments retransmitted until then.
    pub retransmissions: Retransmissions,
}

/// Retransmitted segments by cause. A cause that the sender does not report is `None`: the kernel counts all of them, and the
/// spurious ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retransmissions {
    /// All of them.
    pub all: u64,
    /// After duplicate acknowledgements.
    pub fast: Option<u64>,
    /// After a later segment was acknowledged and the reordering time had passed (RACK, RFC 8985).
    pub rack: Option<u64>,
    /// Tail loss probes (RFC 8985 section 7).
    pub tail_probe: Option<u64>,
    /// After a timeout.
    pub timeout: Option<u64>,
    /// Spurious ones, which the peer had already received (D-SACK, RFC 2883).
    pub spurious: Option<u64>,
}

impl Retransmissions {
    /// The names of the causes.
    pub const CAUSES: [&'static str; 5] = ["fast", "RACK", "tail loss probe", "timeout", "spurious"];

    /// The numbers by cause, in the order of [`Retransmissions::CAUSES`].
    pub fn by_cause(&self) -> [Option<u64>; 5] {
        [self.fast, self.rack, self.tail_probe, self.timeout, self.spurious]
    }
}

/// Keeps samples at regular intervals. When there would be more than [`ConnectionOverTime::SAMPLES`], it drops every second
/// one and doubles the interval.
#[derive(Clone, Debug)]
pub struct ConnectionOverTime {
    next: Time,
    interval: Duration,
    samples: Vec<ConnectionSample>,
}

impl ConnectionOverTime {
    /// The largest number of samples.
    pub const SAMPLES: usize = 400;

    /// The largest number of flows that a driver samples: the first ones of the file.
    pub const FLOWS: usize = 16;

    /// Samples from time zero over a run of this length, at least `shortest` apart. All memory is allocated here.
    pub fn new(length: Duration, shortest: Duration) -> ConnectionOverTime {
        let interval = Duration::from_nanos(length.as_nanos().div_ceil(Self::SAMPLES as u64 - 1));
        ConnectionOverTime {
            next: Time::ZERO,
            interval: interval.max(shortest).max(Duration::from_nanos(1)),
            samples: Vec::with_capacity(Self::SAMPLES),
        }
    }

    /// Time of the next sample.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Adds a sample, unless it is not later than the last one. The next sample is due at the first multiple of the interval
    /// after `now`.
    pub fn record(&mut self, now: Time, sample: ConnectionSample) {
        if self.samples.last().is_none_or(|last| last.at < sample.at) {
            if self.samples.len() == Self::SAMPLES {
                self.halve();
            }
            self.samples.push(sample);
        }
        self.skip(now);
    }

    /// Moves the next sample to the first multiple of the interval after `now`.
    pub fn skip(&mut self, now: Time) {
        let interval = self.interval.as_nanos();
        let intervals = now.since(Time::ZERO).as_nanos() / interval;
        self.next = Time::from_nanos(intervals.saturating_add(1).saturating_mul(interval));
    }

    /// The samples so far, in the order of time.
    pub fn samples(&self) -> &[ConnectionSample] {
        &self.samples
    }

    /// The samples, in the order of time.
    pub fn into_samples(self) -> Vec<ConnectionSample> {
        self.samples
    }

    #[cold]
    fn halve(&mut self) {
        let mut index = 0;
        self.samples.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.interval = self.interval * 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(at: Time) -> ConnectionSample {
        ConnectionSample { at, congestion_window: Bytes(at.as_nanos()), ..ConnectionSample::default() }
    }

    fn run(length: Duration, of_file: Duration) -> Vec<ConnectionSample> {
        let mut kept = ConnectionOverTime::new(of_file, Duration::from_millis(1));
        let mut now = Time::ZERO;
        while now <= Time::ZERO + length {
            if kept.next() <= now {
                kept.record(now, sample(now));
            }
            now += Duration::from_millis(1);
        }
        kept.into_samples()
    }

    #[test]
    fn samples_are_at_regular_intervals_of_the_run() {
        let samples = run(Duration::from_millis(9_975), Duration::from_millis(9_975));
        let expected = (0..400).map(|i| Time::from_nanos(i * 25_000_000));
        assert!(samples.iter().map(|sample| sample.at).eq(expected), "{samples:?}");
    }

    #[test]
    fn a_run_longer_than_planned_keeps_its_beginning_and_its_end() {
        let samples = run(Duration::from_secs(100), Duration::from_secs(1));
        assert!((200..=400).contains(&samples.len()), "{}", samples.len());
        assert_eq!(samples[0].at, Time::ZERO);
        assert!(samples[samples.len() - 1].at > Time::from_nanos(99_000_000_000));
    }

    #[test]
    fn a_gap_has_no_samples() {
        let mut kept = ConnectionOverTime::new(Duration::from_millis(3_990), Duration::from_millis(1));
        kept.record(Time::from_nanos(1_003_000_000), sample(Time::from_nanos(1_003_000_000)));
        assert_eq!(kept.next(), Time::from_nanos(1_010_000_000));
        kept.skip(Time::MAX);
        assert_eq!(kept.into_samples().len(), 1);
    }

    proptest! {
        #[test]
        fn samples_are_bounded_and_in_the_order_of_time(
            length in 0u64..20_000,
            shortest in 0u64..100,
            steps in prop::collection::vec(0u64..200, 1..2_000),
        ) {
            let mut kept =
                ConnectionOverTime::new(Duration::from_millis(length), Duration::from_millis(shortest));
            let (mut now, mut last) = (Time::ZERO, None);
            for step in steps {
                now += Duration::from_millis(step);
                if kept.next() <= now {
                    kept.record(now, sample(now));
                    last = Some(now);
                }
                prop_assert!(kept.next() > now);
            }
            let samples = kept.into_samples();
            prop_assert!(samples.len() <= ConnectionOverTime::SAMPLES);
            prop_assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
            prop_assert_eq!(samples.last().map(|sample| sample.at), last);
        }
    }
}
