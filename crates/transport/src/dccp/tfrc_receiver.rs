//! The receiver of CCID 3 and CCID 4: receive rate, loss intervals, and when to report them (RFC 4342 section 6,
//! RFC 5348 section 6).

use trunkline_core::{Duration, Time};

use super::loss::{Arrival, LossHistory};
use super::options::Opt;
use super::seq::Seq;
use super::tfrc::{loss_event_rate, mean_interval};

/// The window counter moves on by one every quarter of a round trip; a report is due after four.
const REPORT_AFTER: u8 = 4;
/// How long the end of a burst waits for its report where the round-trip time is not known.
const DEFAULT_ROUND_TRIP: Duration = Duration::from_millis(200);
const NO_LOSS: u32 = u32::MAX;

/// The receiver of a half-connection.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Whether it reports Dropped Packets (CCID 4).
    small_packets: bool,
    history: Option<LossHistory>,
    /// Since the last report.
    period: Period,
    /// The period before it, whose bytes count again where the present one is shorter than a round trip.
    before: Period,
    reported_at: Time,
    reported: bool,
    /// The window counter at the last report.
    last_counter: u8,
    counters: Counters,
    rtt: Option<Duration>,
    max_rate: f64,
    mean_size: f64,
    deadline: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Period {
    bytes: u64,
    packets: u64,
    length: Duration,
}

/// When each value of the window counter was first seen, for the round-trip time (RFC 4342 section 8.1).
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    turned: u64,
    last: u8,
    seen: [Option<(u64, Time)>; 16],
}

impl Receiver {
    /// `rtt` is that of the handshake, if it is known.
    pub(super) fn new(small_packets: bool, rtt: Option<Duration>) -> Receiver {
        Receiver {
            small_packets,
            history: None,
            period: Period::default(),
            before: Period::default(),
            reported_at: Time::ZERO,
            reported: false,
            last_counter: 0,
            counters: Counters::default(),
            rtt,
            max_rate: 0.0,
            mean_size: 0.0,
            deadline: None,
        }
    }

    /// Takes a packet with `size` bytes of data; true if a report is to go at once.
    pub(super) fn on_packet(&mut self, now: Time, arrival: Arrival, size: usize) -> bool {
        let is_first = self.history.is_none() && arrival.is_data;
        if self.history.is_none() && !arrival.is_data {
            return false;
        }
        let target = self.max_rate / self.mean_size.max(1.0) * self.round_trip().as_secs_f64();
        let history = self.history.get_or_insert_with(|| LossHistory::new(arrival.number, arrival.counter));
        // Of the first loss, half a packet per round trip is the least that it may stand for.
        let is_event = history.insert(arrival, || 1.0 / loss_event_rate(target.max(0.5)));
        if !arrival.is_data {
            return is_event;
        }
        let size = size as f64;
        self.mean_size = if is_first { size } else { 0.9 * self.mean_size + 0.1 * size };
        self.period.bytes += size as u64;
        self.period.packets += 1;
        if let Some(sample) = self.counters.sample(now, arrival.counter) {
            let smoothed = self.rtt.map_or(sample, |rtt| (rtt * 9 + sample) / 10);
            self.rtt = Some(smoothed);
        }
        let turned = arrival.counter.wrapping_sub(self.last_counter) & 0xF;
        let is_due = !self.reported || (REPORT_AFTER..12).contains(&turned);
        self.deadline = self.deadline.or(Some(now + self.round_trip()));
        is_first || is_event || is_due
    }

    /// Whether there is anything to report.
    pub(super) fn has_news(&self) -> bool {
        self.period.packets > 0
    }

    /// Appends the options of a report on a packet that acknowledges `ack`, which is then done.
    pub(super) fn write(&mut self, now: Time, ack: Seq, with_rate: bool, into: &mut Vec<u8>) {
        let Some(history) = &self.history else { return };
        let rate = self.rate(now);
        Opt::ReceiveRate(rate as u32).write(into);
        history.write(ack, self.small_packets, into);
        if with_rate {
            let (lengths, count) = history.lengths();
            let mean = mean_interval(&lengths[..count], true);
            Opt::LossEventRate(mean.map_or(NO_LOSS, |mean| libm::ceil(mean) as u32)).write(into);
        }
        self.max_rate = self.max_rate.max(rate);
        let length = now.since(self.reported_at);
        if self.before.length + length >= self.round_trip() * 2 || length >= self.round_trip() {
            self.before = Period { length, ..self.period };
        } else {
            // A report ahead of its time: what came before still counts for the next.
            self.before.bytes += self.period.bytes;
            self.before.packets += self.period.packets;
            self.before.length += length;
        }
        self.period = Period::default();
        self.reported_at = now;
        self.reported = true;
        self.last_counter = self.counters.last;
        self.deadline = None;
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.deadline
    }

    /// Bytes per second over the time since the last report, or over a round trip if that is longer (RFC 4342 section
    /// 8.3); 0 in the first report.
    fn rate(&self, now: Time) -> f64 {
        if !self.reported {
            return 0.0;
        }
        let length = now.since(self.reported_at);
        let (bytes, length) = if length >= self.round_trip() {
            (self.period.bytes, length)
        } else {
            (self.period.bytes + self.before.bytes, length + self.before.length)
        };
        bytes as f64 / length.max(self.round_trip()).as_secs_f64().max(1e-9)
    }

    fn round_trip(&self) -> Duration {
        self.rtt.unwrap_or(DEFAULT_ROUND_TRIP)
    }
}

impl Counters {
    /// Takes the window counter of a data packet; a round-trip time if four values ago one was seen.
    fn sample(&mut self, now: Time, counter: u8) -> Option<Duration> {
        let step = counter.wrapping_sub(self.last) & 0xF;
        // Late packets have counters of the past.
        if step >= 12 || step == 0 && self.seen[usize::from(counter & 0xF)].is_some() {
            return None;
        }
        self.turned += u64::from(step);
        self.last = counter;
        self.seen[(self.turned % 16) as usize] = Some((self.turned, now));
        let earlier = self.turned.checked_sub(4)?;
        let (turned, at) = self.seen[(earlier % 16) as usize]?;
        (turned == earlier).then(|| now.since(at))
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Options;
    use super::*;

    fn data(number: u64, counter: u8) -> Arrival {
        Arrival { number: Seq::new(number), is_data: true, marked: false, counter, ndp_count: 0 }
    }

    fn rate(receiver: &mut Receiver, now: Time, ack: u64) -> u32 {
        let mut options = Vec::new();
        receiver.write(now, Seq::new(ack), false, &mut options);
        let rate = |option| if let Opt::ReceiveRate(rate) = option { Some(rate) } else { None };
        Options::new(&options).find_map(rate).unwrap()
    }

    #[test]
    fn reports_come_once_per_round_trip_and_tell_the_rate() {
        // 100 packets of 1000 bytes per second, a round trip of 200 ms.
        let mut receiver = Receiver::new(false, Some(Duration::from_millis(200)));
        let mut rates = Vec::new();
        for n in 0..100u64 {
            let now = Time::ZERO + Duration::from_millis(10 * n);
            if receiver.on_packet(now, data(n, (n / 5 % 16) as u8), 1000) {
                rates.push(rate(&mut receiver, now, n));
            }
        }
        assert_eq!(rates, [0, 100_000, 100_000, 100_000, 100_000]);
        let rtt = receiver.rtt.unwrap().as_millis_f64();
        assert!((rtt - 200.0).abs() < 1.0, "{rtt} ms");
    }

    #[test]
    fn the_end_of_a_burst_is_reported_by_the_timer() {
        let mut receiver = Receiver::new(false, None);
        assert!(receiver.on_packet(Time::ZERO, data(0, 0), 100));
        rate(&mut receiver, Time::ZERO, 0);
        let now = Time::ZERO + Duration::from_millis(5);
        assert!(!receiver.on_packet(now, data(1, 1), 100));
        assert_eq!(receiver.next_timeout(), Some(now + DEFAULT_ROUND_TRIP));
        assert!(receiver.has_news());
        rate(&mut receiver, now + DEFAULT_ROUND_TRIP, 1);
        assert_eq!((receiver.next_timeout(), receiver.has_news()), (None, false));
    }

    #[test]
    fn the_first_loss_stands_for_the_rate_reached_by_then() {
        let mut receiver = Receiver::new(false, Some(Duration::from_millis(100)));
        let mut now = Time::ZERO;
        for n in (0..400u64).filter(|&n| n != 390) {
            // 100 packets per round trip.
            now = Time::ZERO + Duration::from_millis(n);
            if receiver.on_packet(now, data(n, (n / 25 % 16) as u8), 500) {
                rate(&mut receiver, now, n);
            }
        }
        let (lengths, count) = receiver.history.as_ref().unwrap().lengths();
        assert_eq!(count, 2);
        let packets = super::super::tfrc::throughput(1.0, 1.0, 1.0 / lengths[1]);
        assert!((packets / 100.0 - 1.0).abs() < 0.05, "{packets} packets per round trip at {now}");
    }
}
