//! Clock exchanges: one host asks another what its clock shows, and bounds the offset between the two clocks. Whatever a
//! connection is for, the frames and the rules are these. Nothing here reads a clock.
//!
//! ```text
//! TIME_REQUEST  u64 sent
//! TIME_REPLY    u64 sent | u64 received | u64 replied | u8 discipline: 0 never slewed, 1 perhaps
//! ```
//! Times are nanoseconds of each host's monotonic clock, big-endian.

use trunkline_core::{Duration, Time};
use trunkline_metrics::clocks::{Exchange, Observed, Offset, Offsets, Rates, Turning};

use crate::wire::{Frame, Message, WireError, malformed, require, tag};

/// Asks for the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRequest {
    /// When it was sent, on the sender's clock.
    pub sent: Time,
}

/// The reply to a [`TimeRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeReply {
    /// When the request was sent, on the clock of the end that asked.
    pub sent: Time,
    /// When the request arrived, on the clock of the end that replies.
    pub received: Time,
    /// When the reply was sent, on the same clock.
    pub replied: Time,
    /// Discipline of that clock.
    pub clock: Turning,
}

impl TimeRequest {
    /// The reply, if it is sent at once. An end that sends it later sets [`TimeReply::replied`] then.
    pub fn reply(self, received: Time, clock: Turning) -> TimeReply {
        TimeReply { sent: self.sent, received, replied: received, clock }
    }
}

impl Message for TimeRequest {
    fn to_frame(&self) -> Result<Frame, WireError> {
        Ok(Frame { tag: tag::TIME_REQUEST, body: self.sent.as_nanos().to_be_bytes().to_vec() })
    }

    fn from_frame(frame: Frame) -> Result<TimeRequest, WireError> {
        require(&frame, tag::TIME_REQUEST, "a time request")?;
        let sent = <[u8; 8]>::try_from(frame.body.as_slice());
        let sent = sent.map_err(|_| malformed("time request", "its length is not 8 bytes"))?;
        Ok(TimeRequest { sent: Time::from_nanos(u64::from_be_bytes(sent)) })
    }
}

impl Message for TimeReply {
    fn to_frame(&self) -> Result<Frame, WireError> {
        let mut body = Vec::with_capacity(25);
        for time in [self.sent, self.received, self.replied] {
            body.extend(time.as_nanos().to_be_bytes());
        }
        body.push(u8::from(self.clock == Turning::Possible));
        Ok(Frame { tag: tag::TIME_REPLY, body })
    }

    fn from_frame(frame: Frame) -> Result<TimeReply, WireError> {
        require(&frame, tag::TIME_REPLY, "a time reply")?;
        let (times, rest) = frame.body.as_chunks::<8>();
        let (&[sent, received, replied], &[discipline @ 0..=1]) = (times, rest) else {
            return Err(malformed("time reply", "it is not three times and a clock discipline"));
        };
        let [sent, received, replied] =
            [sent, received, replied].map(|time| Time::from_nanos(u64::from_be_bytes(time)));
        Ok(TimeReply { sent, received, replied, clock: Turning::of(discipline == 0) })
    }
}

/// When to ask: often at first, so that the offset is known soon, then rarely.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Requests of the fast beginning.
    pub first: u32,
    /// Interval of the fast beginning.
    pub fast: Duration,
    /// Interval afterwards.
    pub slow: Duration,
}

/// The requests for the time of one host.
#[derive(Clone, Copy, Debug)]
pub struct TimeRequests {
    pace: Pace,
    sent: u32,
    next: Time,
}

impl TimeRequests {
    /// The first is due at once.
    pub fn new(pace: Pace) -> TimeRequests {
        TimeRequests { pace, sent: 0, next: Time::ZERO }
    }

    /// The request that is due now, to be sent at once.
    pub fn poll(&mut self, now: Time) -> Option<TimeRequest> {
        if now < self.next {
            return None;
        }
        self.sent = self.sent.saturating_add(1);
        self.next = now + if self.sent < self.pace.first { self.pace.fast } else { self.pace.slow };
        Some(TimeRequest { sent: now })
    }

    /// Asks again after the short interval, because something waits for the reply.
    pub fn hasten(&mut self, now: Time) {
        self.next = self.next.min(now + self.pace.fast);
    }

    /// When the next request is due.
    pub fn next_timeout(&self) -> Time {
        self.next
    }
}

/// The clock of another host compared with ours, by its replies.
#[derive(Clone, Debug)]
pub struct ClockComparison {
    ours: Turning,
    rates: Rates,
    offsets: Offsets,
    exchanges: u32,
    round_trip: Duration,
}

impl ClockComparison {
    /// No reply yet. `ours` is the discipline of our clock.
    pub fn new(ours: Turning) -> ClockComparison {
        let rates = Rates::between(ours, Turning::Possible);
        ClockComparison { ours, rates, offsets: Offsets::new(rates), exchanges: 0, round_trip: Duration::MAX }
    }

    /// Takes a reply that arrived at `returned` on our clock. The first one tells the discipline of the other clock.
    pub fn take(&mut self, reply: TimeReply, returned: Time) -> Observed {
        let TimeReply { sent, received, replied, clock } = reply;
        if self.exchanges == 0 {
            self.rates = Rates::between(self.ours, clock);
            self.offsets = Offsets::new(self.rates);
        }
        let observed = self.offsets.observe(Exchange { sent, received, replied, returned });
        if observed != Observed::Impossible {
            self.exchanges = self.exchanges.saturating_add(1);
            self.round_trip = self.round_trip.min(returned.since(sent));
        }
        observed
    }

    /// The clock of the other host minus ours when ours shows `time`; `None` before the first reply.
    pub fn offset(&self, time: Time) -> Option<Offset> {
        self.offsets.at(time)
    }

    /// By how much the rates of the two clocks may differ.
    pub fn rates(&self) -> Rates {
        self.rates
    }

    /// Replies so far.
    pub fn exchanges(&self) -> u32 {
        self.exchanges
    }

    /// The shortest round trip so far; [`Duration::MAX`] before the first reply.
    pub fn round_trip(&self) -> Duration {
        self.round_trip
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn requests_are_frequent_at_first() {
        let pace = Pace { first: 3, fast: Duration::from_millis(5), slow: Duration::from_secs(1) };
        let mut requests = TimeRequests::new(pace);
        let mut sent = Vec::new();
        let mut now = at(1_000_000_000);
        while sent.len() < 5 {
            sent.extend(requests.poll(now).map(|request| request.sent.since(at(1_000_000_000)).as_nanos()));
            assert_eq!(requests.poll(now), None);
            now = requests.next_timeout();
        }
        assert_eq!(sent, [0, 5_000_000, 10_000_000, 1_010_000_000, 2_010_000_000]);
        requests.hasten(at(4_000_000_000));
        assert_eq!(requests.next_timeout(), at(4_005_000_000).min(now));
        requests.hasten(at(3_500_000_000));
        assert_eq!(requests.next_timeout(), at(3_505_000_000));
    }

    #[test]
    fn a_clock_that_may_be_slewed_widens_the_bound() {
        let bound = |clock| {
            let mut comparison = ClockComparison::new(Turning::Never);
            assert_eq!(comparison.offset(at(0)), None);
            let request = TimeRequest { sent: at(1_000) };
            let reply = request.reply(at(501_500), clock);
            assert_eq!(comparison.take(reply, at(2_000)), Observed::Bound);
            // The replies of another host are not believed if its clock ran backwards.
            let replied = at(501_400);
            assert_eq!(comparison.take(TimeReply { replied, ..reply }, at(2_000)), Observed::Impossible);
            assert_eq!((comparison.exchanges(), comparison.round_trip()), (1, Duration::from_nanos(1_000)));
            let offset = comparison.offset(at(1_000_002_000)).unwrap();
            assert_eq!(offset.estimate, 500_000);
            offset.bound
        };
        // Within a second, crystals drift apart by 1.2 ms at most, a slewed clock by 111 ms.
        assert!(bound(Turning::Never) < Duration::from_millis(2));
        assert!(bound(Turning::Possible) > Duration::from_millis(100));
    }

    proptest! {
        #[test]
        fn what_is_sent_is_received(sent: u64, received: u64, replied: u64, is_free: bool) {
            let request = TimeRequest { sent: at(sent) };
            prop_assert_eq!(TimeRequest::from_frame(request.to_frame().unwrap()), Ok(request));
            let reply = TimeReply { replied: at(replied), ..request.reply(at(received), Turning::of(is_free)) };
            prop_assert_eq!(TimeReply::from_frame(reply.to_frame().unwrap()), Ok(reply));
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        let request = Frame { tag: tag::TIME_REQUEST, body: vec![0; 7] };
        let error = TimeRequest::from_frame(request).unwrap_err().to_string();
        assert_eq!(error, "a malformed time request: its length is not 8 bytes");
        for body in [vec![0; 24], vec![0; 26], vec![2; 25], Vec::new()] {
            assert!(TimeReply::from_frame(Frame { tag: tag::TIME_REPLY, body }).is_err());
        }
    }
}
