//! The sender of CCID 3 and CCID 4: TCP-Friendly Rate Control (RFC 5348, RFC 4342), for CCID 4 with the changes of
//! [`small_packets`](super::small_packets).
//!
//! Rates are in bytes of payload per second; those of CCID 4 count an assumed header with every packet.

use trunkline_core::{Duration, Time};

use super::feedback::Feedback;
use super::loss::reported;
use super::sent::Sent;
use super::seq::Seq;
use super::small_packets::{self, ShortIntervals};
use super::tfrc::{INTERVALS, mean_interval, throughput};

/// The weight of the past in the averages of the round-trip time (RFC 5348 sections 4.3 and 4.5).
const PAST: f64 = 0.9;
/// The longest time between two packets, in seconds (`t_mbi`).
const MAX_BACKOFF: f64 = 64.0;
/// How many packets may go at once after a pause: unused sending times of a round trip count, but no more than these.
const MAX_CREDIT: f64 = 8.0;
/// How many receive rates are kept (RFC 5348 section 8.2.2).
const RECEIVE_RATES: usize = 3;

/// The sender of a half-connection.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// The changes for small packets (CCID 4).
    short: Option<ShortIntervals>,
    /// Mean length of the messages, `s`.
    size: f64,
    /// The allowed rate, `X`.
    rate: f64,
    /// The rate by the equation, `X_Bps`.
    calculated: f64,
    /// What the present round-trip time makes of the rate, to dampen oscillations: `X_inst / X`.
    damping: f64,
    /// The loss event rate, `p`.
    loss_event_rate: f64,
    rtt: Rtt,
    receive_rates: ReceiveRates,
    /// When slow start last doubled the rate.
    doubled: Option<Time>,
    no_feedback: Option<Time>,
    /// Whether nothing was sent since the no-feedback timer was set.
    idle: bool,
    /// The nominal time of the last packet.
    nominal: Option<Time>,
    last_sent: Option<Time>,
    limited: Limited,
    counter: Counter,
    /// Where the latest known loss interval begins.
    latest_loss: Option<Seq>,
}

/// The round-trip time in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Rtt {
    mean: Option<f64>,
    /// The mean of its square root.
    root: f64,
    /// Whether the mean comes from feedback, not from the handshake.
    measured: bool,
}

/// `X_recv_set`: empty stands for infinity.
#[derive(Clone, Copy, Debug, Default)]
struct ReceiveRates {
    rates: [(f64, Time); RECEIVE_RATES],
    count: usize,
}

/// When the sender had sent all that it was allowed to (RFC 5348 section 8.2.1).
#[derive(Clone, Copy, Debug, Default)]
struct Limited {
    first: Option<Time>,
    second: Option<Time>,
    covered: Time,
    next: Time,
}

/// The window counter (RFC 4342 section 8.1).
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    value: u8,
    since: Option<Time>,
}

impl Sender {
    /// `rtt` is that of the handshake, if it is known.
    pub(super) fn new(small_packets: bool, rtt: Option<Duration>) -> Sender {
        Sender {
            short: small_packets.then(ShortIntervals::default),
            size: 0.0,
            rate: 0.0,
            calculated: 0.0,
            damping: 1.0,
            loss_event_rate: 0.0,
            rtt: Rtt { mean: rtt.map(|rtt| rtt.as_secs_f64().max(1e-6)), ..Rtt::default() },
            receive_rates: ReceiveRates::default(),
            doubled: None,
            no_feedback: None,
            idle: true,
            nominal: None,
            last_sent: None,
            limited: Limited::default(),
            counter: Counter::default(),
            latest_loss: None,
        }
    }

    /// When the next packet may go; the past means at once.
    pub(super) fn allowed_at(&self) -> Time {
        let by_rate = self.nominal.map_or(Time::ZERO, |nominal| nominal + self.interval());
        match (&self.short, self.last_sent) {
            (Some(_), Some(last)) => by_rate.max(last + small_packets::MIN_INTERVAL),
            _ => by_rate,
        }
    }

    /// The allowed rate in bytes per second, as it is used for pacing.
    pub(super) fn rate(&self) -> f64 {
        (self.rate * self.damping).max(self.slowest())
    }

    /// Packets per round-trip time at the present rate.
    pub(super) fn packets_per_round_trip(&self) -> f64 {
        self.rtt.mean.unwrap_or(0.0) * self.rate / self.gross_size().max(1.0)
    }

    /// The value of CCVal for a packet that goes now.
    pub(super) fn counter(&mut self, now: Time) -> u8 {
        let since = *self.counter.since.get_or_insert(now);
        let rtt = self.rtt.mean.unwrap_or(0.2);
        let quarters = (now.since(since).as_secs_f64() / (rtt / 4.0)) as u64;
        if quarters > 0 {
            self.counter =
                Counter { value: (self.counter.value + quarters.min(5) as u8) & 0xF, since: Some(now) };
        }
        self.counter.value
    }

    /// A packet with `length` bytes of data went out.
    pub(super) fn on_sent(&mut self, now: Time, number: Seq, length: usize) {
        let length = length as f64;
        if self.last_sent.is_none() {
            self.size = length.max(1.0);
            self.rate = if self.rtt.mean.is_some() { self.initial_rate() } else { self.gross_size() };
            self.doubled = self.rtt.mean.map(|_| now);
        } else {
            self.size = PAST * self.size + (1.0 - PAST) * length.max(1.0);
        }
        if let Some(short) = &mut self.short {
            short.on_sent(now, number, self.rtt.mean.unwrap_or(0.2));
        }
        let interval = self.interval();
        let credit = (interval.as_secs_f64() * MAX_CREDIT).min(self.rtt.mean.unwrap_or(0.0));
        let earliest =
            Time::from_nanos(now.as_nanos().saturating_sub(Duration::from_secs_f64(credit).as_nanos()));
        self.nominal = Some(self.nominal.map_or(now, |nominal| (nominal + interval).max(earliest)));
        self.last_sent = Some(now);
        self.idle = false;
        if self.no_feedback.is_none() {
            self.restart_timer(now);
        }
        if self.allowed_at() > now {
            self.limited.note(now);
        }
    }

    /// Takes what an acknowledgement says, if it is a feedback packet.
    pub(super) fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>, sent: &mut Sent) {
        let Some(&packet) = sent.get(feedback.ack) else { return };
        let drops = sent.note_drops(feedback.ack, feedback.data_dropped());
        sent.forget_before(feedback.ack.minus(64));
        let (Some(rate), Some(elapsed)) = (feedback.receive_rate, feedback.elapsed) else { return };
        let Some((end, intervals)) = reported(feedback.ack, feedback.loss_intervals()) else { return };
        let elapsed = f64::from(elapsed) * 10e-6;
        let sample = now.since(packet.at).as_secs_f64() - elapsed;
        self.rtt.sample(sample.max(1e-6));
        self.counter.at_least(packet.ccval, now);

        let before = self.loss_event_rate;
        let mut start = end;
        let mut lengths = [0.0; INTERVALS + 1];
        let mut present = None;
        let mut count = 0;
        let mut drop_counts = feedback.dropped_packets().flat_map(|option| option.chunks_exact(3));
        let rtt = self.rtt.mean.unwrap_or(sample);
        for (slot, interval) in lengths.iter_mut().zip(intervals) {
            let last = start.minus(1);
            start = start.minus(interval.lossless + interval.lossy);
            let drops =
                drop_counts.next().map(|bytes| bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)));
            if count == 0 {
                present = Some((start, last, interval.lossy > 0));
            }
            *slot = match &mut self.short {
                Some(short) => short.length(start, last, count, &interval, drops, rtt),
                None => interval.data_length as f64,
            };
            count += 1;
        }
        let lossy = present.is_some_and(|(_, _, lossy)| lossy);
        let is_new_event = lossy && present.map(|(start, _, _)| start) != self.latest_loss;
        if lossy {
            self.latest_loss = present.map(|(start, _, _)| start);
            let may_count = self.short.as_ref().is_none_or(|short| !short.is_present_short());
            let mean = mean_interval(&lengths[..count], may_count);
            self.loss_event_rate = mean.map_or(0.0, |mean| 1.0 / mean.max(1.0));
        }

        let mut receive_rate = f64::from(rate) * self.gross_size() / self.size.max(1.0);
        if drops.receive_buffer > 0 || feedback.slow_receiver {
            receive_rate = self.slowed(receive_rate, drops.receive_buffer, rtt);
        }
        let is_data_limited = self.limited.covers(now, packet.at, rtt) && rate > 0;
        let has_worsened = is_new_event || self.loss_event_rate > before;
        let limit =
            self.receive_rates.update(now, receive_rate, rate == 0, is_data_limited, has_worsened, rtt);
        self.set_rate(now, limit, rtt);
        self.rtt.set_damping(sample.max(1e-6), &mut self.damping);
        self.restart_timer(now);
    }

    /// The no-feedback timer; `None` where it would change nothing any more.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.no_feedback
    }

    /// Does what is due (RFC 5348 section 4.4).
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.no_feedback.is_none_or(|at| at > now) {
            return;
        }
        let received = self.receive_rates.max();
        let recover_rate = self.initial_rate();
        let has_losses = self.loss_event_rate > 0.0;
        let spared =
            self.idle && if has_losses { received < recover_rate } else { self.rate < 2.0 * recover_rate };
        if self.idle && (spared || self.rtt.mean.is_none()) {
            // Nothing changes until something is sent again.
            self.no_feedback = None;
            return;
        }
        if self.rtt.mean.is_none() || !has_losses {
            self.rate = (self.rate / 2.0).max(self.slowest());
        } else {
            let limit = if self.calculated > 2.0 * received { received } else { self.calculated / 2.0 };
            let limit = limit.max(self.slowest());
            self.receive_rates = ReceiveRates { rates: [(limit / 2.0, now); RECEIVE_RATES], count: 1 };
            self.set_rate(now, limit, self.rtt.mean.unwrap_or(1.0));
        }
        self.restart_timer(now);
    }

    /// Step 4 of RFC 5348 section 4.3.
    fn set_rate(&mut self, now: Time, limit: f64, rtt: f64) {
        if self.loss_event_rate > 0.0 {
            let segment = if self.short.is_some() { small_packets::SEGMENT } else { self.size };
            self.calculated = throughput(segment, rtt, self.loss_event_rate);
            self.rate = self.calculated.min(limit).max(self.slowest());
        } else if self.doubled.is_none_or(|at| now.since(at).as_secs_f64() >= rtt) {
            let first = self.doubled.is_none();
            let doubled = if first { self.initial_rate() } else { 2.0 * self.rate };
            self.rate = doubled.min(limit).max(self.initial_rate());
            self.doubled = Some(now);
        }
    }

    /// RFC 4342 section 5.2: what a slow receiver leaves of its receive rate.
    fn slowed(&self, received: f64, drops: u64, rtt: f64) -> f64 {
        let per_round_trip = self.gross_size() / rtt;
        let bound = (received - drops as f64 * per_round_trip).max(received.min(per_round_trip));
        received.min(bound / 2.0)
    }

    fn restart_timer(&mut self, now: Time) {
        let packets = 2.0 * self.gross_size() / self.rate.max(1e-3);
        let interval = self.rtt.mean.map_or(2.0, |rtt| (4.0 * rtt).max(packets));
        self.no_feedback = Some(now + Duration::from_secs_f64(interval).max(Duration::from_micros(1)));
        self.idle = true;
    }

    /// The time between two packets at the present rate.
    fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.gross_size() / self.rate().max(1e-3))
    }

    /// RFC 5348 section 4.2: that of TCP's initial window (RFC 3390) per round-trip time.
    fn initial_rate(&self) -> f64 {
        let segment = if self.short.is_some() { small_packets::SEGMENT } else { self.size };
        let window = (4.0 * segment).min((2.0 * segment).max(4380.0));
        window / self.rtt.mean.unwrap_or(1.0)
    }

    /// One packet in 64 seconds.
    fn slowest(&self) -> f64 {
        self.gross_size() / MAX_BACKOFF
    }

    /// What a packet counts: its data, for CCID 4 with the assumed header.
    fn gross_size(&self) -> f64 {
        let size = self.size.max(1.0);
        if self.short.is_some() { size + small_packets::HEADER } else { size }
    }

    #[cfg(test)]
    pub(super) fn loss_event_rate(&self) -> f64 {
        self.loss_event_rate
    }

    #[cfg(test)]
    pub(super) fn round_trip(&self) -> Option<f64> {
        self.rtt.mean
    }
}

impl Rtt {
    fn sample(&mut self, sample: f64) {
        let root = libm::sqrt(sample);
        match self.mean.filter(|_| self.measured) {
            None => (self.mean, self.root) = (Some(sample), root),
            Some(mean) => {
                self.mean = Some(PAST * mean + (1.0 - PAST) * sample);
                self.root = PAST * self.root + (1.0 - PAST) * root;
            }
        }
        self.measured = true;
    }

    /// RFC 5348 section 4.5: a round-trip time above its mean is a queue that grows.
    fn set_damping(&self, sample: f64, damping: &mut f64) {
        *damping = self.root / libm::sqrt(sample);
    }
}

impl ReceiveRates {
    fn max(&self) -> f64 {
        let rates = self.rates[..self.count].iter().map(|&(rate, _)| rate);
        if self.count == 0 { f64::INFINITY } else { rates.fold(0.0, f64::max) }
    }

    /// Takes a receive rate and returns `recv_limit` (step 4 of RFC 5348 section 4.3). The first report has no rate yet.
    fn update(
        &mut self,
        now: Time,
        received: f64,
        is_first: bool,
        is_data_limited: bool,
        has_worsened: bool,
        rtt: f64,
    ) -> f64 {
        if is_first {
            return 2.0 * self.max();
        }
        if is_data_limited {
            let received = if has_worsened {
                for (rate, _) in &mut self.rates[..self.count] {
                    *rate /= 2.0;
                }
                0.85 * received
            } else {
                received
            };
            let kept = if self.count == 0 { 0.0 } else { self.max() };
            self.rates[0] = (kept.max(received), now);
            self.count = 1;
            return if has_worsened { self.max() } else { 2.0 * self.max() };
        }
        // An empty set stands for infinity, for the first two round trips.
        let mut kept = [(received, now); RECEIVE_RATES];
        let mut count = 1;
        for &(rate, at) in &self.rates[..self.count] {
            if now.since(at).as_secs_f64() <= 2.0 * rtt && count < RECEIVE_RATES {
                kept[count] = (rate, at);
                count += 1;
            }
        }
        let was_infinite = self.count == 0;
        (self.rates, self.count) = (kept, count);
        if was_infinite { f64::INFINITY } else { 2.0 * self.max() }
    }
}

impl Limited {
    fn note(&mut self, now: Time) {
        if self.first.is_none_or(|first| first <= self.covered) {
            self.first = Some(now);
        } else if self.second.is_none_or(|second| second <= self.next) {
            self.second = Some(now);
        }
    }

    /// Whether the sender was limited by its data over the whole round trip that ends with a packet sent at `sent`.
    fn covers(&mut self, now: Time, sent: Time, rtt: f64) -> bool {
        let old = Time::from_nanos(sent.as_nanos().saturating_sub(Duration::from_secs_f64(rtt).as_nanos()));
        let within = |at: Option<Time>| at.is_some_and(|at| old < at && at <= sent);
        let data_limited = !within(self.first) && !within(self.second);
        (self.covered, self.next) = (sent, now);
        if self.first.is_some_and(|first| first <= sent) && self.second.is_some_and(|second| second > sent) {
            self.first = self.second;
        }
        data_limited
    }
}

impl Counter {
    /// After an acknowledgement of a packet with this value, later ones are at least four ahead of it.
    fn at_least(&mut self, acknowledged: u8, now: Time) {
        let ahead = self.value.wrapping_sub(acknowledged) & 0xF;
        if ahead < 4 {
            *self = Counter { value: (acknowledged + 4) & 0xF, since: Some(now) };
        }
    }
}
