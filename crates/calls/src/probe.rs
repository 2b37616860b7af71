//! Packets that measure: numbered and stamped when they leave, and what their return says.

use trunkline_core::{Duration, Time};
use trunkline_metrics::{DelaySummary, Delays, NextExpected};

/// What stands at the beginning of a probe; zeros follow, up to its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its number, from 0.
    pub sequence: u32,
    /// When it left, on its sender's clock.
    pub sent: Time,
}

impl Probe {
    /// Bytes of the smallest.
    pub const LENGTH: usize = 12;

    /// Writes a packet of this size, or of [`Self::LENGTH`] if that is less.
    pub fn write(&self, size: usize, into: &mut Vec<u8>) {
        into.clear();
        into.extend(self.sequence.to_be_bytes());
        into.extend(self.sent.as_nanos().to_be_bytes());
        into.resize(size.max(Probe::LENGTH), 0);
    }

    /// Reads a packet; `None` if it is too short for one.
    pub fn read(packet: &[u8]) -> Option<Probe> {
        let (sequence, rest) = packet.split_first_chunk()?;
        let (sent, _) = rest.split_first_chunk()?;
        Some(Probe {
            sequence: u32::from_be_bytes(*sequence),
            sent: Time::from_nanos(u64::from_be_bytes(*sent)),
        })
    }
}

/// The round trips of probes to a reflector and back. Holds a bit for each probe that was sent.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips {
    sent: u32,
    /// By number, whether it is back.
    back: Vec<u64>,
    delays: Delays,
    next: NextExpected,
    returned: u64,
    duplicates: u64,
    reordered: u64,
}

/// Round trips in figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTripSummary {
    /// Probes sent.
    pub sent: u64,
    /// Probes that have come back.
    pub returned: u64,
    /// How often one that was back came again.
    pub duplicates: u64,
    /// Of those that are back, how many came behind one that was sent later (RFC 4737 section 3).
    pub reordered: u64,
    /// From sending to return; `None` if none is back.
    pub delay: Option<DelaySummary>,
    /// Jitter: the mean absolute deviation of that (Schiavoni, Queiroz and Wanderley 2013, equation 2).
    pub mean_absolute_deviation: Duration,
}

impl RoundTripSummary {
    /// Probes that have not come back.
    pub fn lost(&self) -> u64 {
        self.sent - self.returned
    }
}

impl RoundTrips {
    /// Writes the next probe, which leaves now.
    pub fn send(&mut self, now: Time, size: usize, into: &mut Vec<u8>) {
        Probe { sequence: self.sent, sent: now }.write(size, into);
        self.sent = self.sent.wrapping_add(1);
    }

    /// Takes what has arrived, and says how long its round trip took; `None` if it is no probe that was sent, or is back
    /// already.
    pub fn take(&mut self, arrived: Time, packet: &[u8]) -> Option<Duration> {
        let Probe { sequence, sent } = Probe::read(packet)?;
        if sequence >= self.sent || sent > arrived {
            return None;
        }
        let (word, bit) = (sequence as usize / 64, 1 << (sequence % 64));
        if word >= self.back.len() {
            self.back.resize(word + 1, 0);
        }
        if self.back[word] & bit != 0 {
            self.duplicates += 1;
            return None;
        }
        self.back[word] |= bit;
        self.returned += 1;
        self.reordered += u64::from(self.next.is_reordered(sequence));
        let took = arrived.since(sent);
        self.delays.record(took);
        Some(took)
    }

    /// In figures, so far.
    pub fn summary(&mut self) -> RoundTripSummary {
        RoundTripSummary {
            sent: u64::from(self.sent),
            returned: self.returned,
            duplicates: self.duplicates,
            reordered: self.reordered,
            delay: self.delays.summary(),
            mean_absolute_deviation: self.delays.mean_absolute_deviation(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_counted_once_and_in_its_order() {
        let (mut trips, at) = (RoundTrips::default(), |ms| Time::ZERO + Duration::from_millis(ms));
        let mut probes = Vec::new();
        for ms in 0..5 {
            let mut probe = Vec::new();
            trips.send(at(ms), 100, &mut probe);
            assert_eq!(probe.len(), 100);
            probes.push(probe);
        }
        // The third overtakes the second, which comes twice; the last is lost.
        let arrived = [(0, 10), (2, 11), (1, 13), (1, 14), (3, 15)];
        let took: Vec<_> = arrived.iter().map(|&(n, ms)| trips.take(at(ms), &probes[n])).collect();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(took, [ms(10), ms(9), ms(12), None, ms(12)]);
        let summary = trips.summary();
        assert_eq!((summary.sent, summary.returned, summary.lost()), (5, 4, 1));
        assert_eq!((summary.duplicates, summary.reordered), (1, 1));
        assert_eq!(summary.delay.unwrap().mean, Duration::from_micros(10_750));
        assert_eq!(summary.mean_absolute_deviation, Duration::from_micros(1_250));
    }

    #[test]
    fn what_was_never_sent_is_not_back() {
        let (mut trips, mut probe) = (RoundTrips::default(), Vec::new());
        Probe { sequence: u32::MAX, sent: Time::ZERO }.write(0, &mut probe);
        assert_eq!(trips.take(Time::MAX, &probe), None);
        assert_eq!(trips.take(Time::MAX, &probe[..Probe::LENGTH - 1]), None);
        assert_eq!(trips.summary().returned, 0);
        assert!(trips.back.is_empty());
    }
}
