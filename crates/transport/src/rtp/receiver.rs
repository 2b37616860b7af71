//! What an end knows of the source that it hears: the validity and the numbers of its packets (RFC 3550 sections A.1 and
//! A.3), their jitter (sections 6.4.1 and A.8), and its reports.

use trunkline_core::{Duration, Time};

use super::rtcp::ReportBlock;
use super::sender::duration_to_periods;
use super::wire::RtpHeader;

/// A packet so far ahead of the others, or farther, is not of the same sequence (section A.1).
const MAX_DROPOUT: u16 = 3000;
/// A packet so far behind the others is late or a duplicate; farther behind, it is not of the same sequence. The RFC's
/// example has 100; with more, a burst that is overtaken as a whole is still put right, and every duplicate within it is
/// known.
pub(super) const MAX_MISORDER: u16 = 1024;
const WORDS: usize = MAX_MISORDER as usize / 64;

/// The source that an end hears.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) ssrc: u32,
    clock: u32,
    /// In-sequence packets still wanted before anything is handed on.
    wanted: u8,
    probation: u8,
    sequence: Option<Sequence>,
    /// The number that would confirm a jump.
    jumped_to: Option<u16>,
    jitter: Jitter,
    /// The middle of the NTP time of its last sender report, and when that came.
    sender_report: Option<(u32, Time)>,
    /// Whether a data packet came since the last report on it.
    pub(super) is_news: bool,
    /// Whether it has said BYE.
    pub(super) has_left: bool,
    /// Whether nothing has been heard of it for so long that it counts as gone.
    pub(super) is_silent: bool,
    heard_at: Time,
    pub(super) data_at: Option<Time>,
}

/// The numbers of the packets received.
#[derive(Clone, Debug)]
struct Sequence {
    base: u16,
    highest: u16,
    /// How often `highest` went round.
    cycles: u32,
    received: u64,
    /// As they were at the last report.
    expected_before: u64,
    received_before: u64,
    /// A bit for each of the last [`MAX_MISORDER`] numbers, at its number modulo that.
    seen: [u64; WORDS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Jitter {
    transit: Option<u32>,
    /// Sixteen times the estimate.
    scaled: u64,
}

/// What to do with a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// To be handed on.
    New,
    /// Has been received already.
    Duplicate,
    /// Of a source that is not trusted yet.
    OnProbation,
    /// Not of this sequence.
    OutOfSequence,
}

/// What has been received from the peer; RFC 3550 section 6.4.1 defines each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// The source.
    pub ssrc: u32,
    /// Data packets received, duplicates among them.
    pub received: u64,
    /// Data packets that should have come, from the first to the one with the highest number.
    pub expected: u64,
    /// `expected - received`: negative if there were more duplicates than losses.
    pub lost: i64,
    /// The highest sequence number, with its rounds in the upper half.
    pub highest: u32,
    /// Interarrival jitter in periods of the media clock.
    pub jitter: u32,
}

impl Receiver {
    /// A source of which `probation` packets in sequence must come before one is handed on, first heard at `now`.
    pub(super) fn new(ssrc: u32, clock: u32, probation: u8, now: Time) -> Receiver {
        Receiver {
            ssrc,
            clock,
            wanted: probation,
            probation,
            sequence: None,
            jumped_to: None,
            jitter: Jitter::default(),
            sender_report: None,
            is_news: false,
            has_left: false,
            is_silent: false,
            heard_at: now,
            data_at: None,
        }
    }

    /// Takes note that it lives.
    pub(super) fn heard(&mut self, now: Time) {
        self.heard_at = now;
        self.is_silent = false;
    }

    /// For how long nothing has been heard of it.
    pub(super) fn silence(&self, now: Time) -> Duration {
        now.since(self.heard_at)
    }

    /// Whether it takes part: has neither left nor fallen silent.
    pub(super) fn is_there(&self) -> bool {
        !self.has_left && !self.is_silent
    }

    /// Whether its data packets are handed on.
    pub(super) fn is_valid(&self) -> bool {
        self.wanted == 0
    }

    /// Takes note of a data packet.
    pub(super) fn data(&mut self, now: Time, header: &RtpHeader) -> Verdict {
        self.heard(now);
        let verdict = self.place(header.sequence);
        if matches!(verdict, Verdict::New | Verdict::Duplicate) {
            self.data_at = Some(now);
            self.is_news = true;
            let arrival = duration_to_periods(now.since(Time::ZERO), self.clock);
            self.jitter.packet(arrival.wrapping_sub(header.timestamp));
        }
        verdict
    }

    /// Finds the place of a sequence number (section A.1).
    fn place(&mut self, number: u16) -> Verdict {
        if self.wanted > 0 {
            let follows = self.sequence.as_ref().is_some_and(|s| number == s.highest.wrapping_add(1));
            self.wanted = if follows { self.wanted } else { self.probation } - 1;
            self.begin(number);
            return if self.wanted == 0 { Verdict::New } else { Verdict::OnProbation };
        }
        let Some(sequence) = &mut self.sequence else {
            self.begin(number);
            return Verdict::New;
        };
        let ahead = number.wrapping_sub(sequence.highest);
        if (1..MAX_DROPOUT).contains(&ahead) {
            sequence.advance(number);
        } else if ahead != 0 && ahead <= u16::MAX - MAX_MISORDER + 1 {
            // Two in a row after the jump: the other side has begun anew without saying so.
            if self.jumped_to == Some(number) {
                self.begin(number);
                return Verdict::New;
            }
            self.jumped_to = Some(number.wrapping_add(1));
            return Verdict::OutOfSequence;
        }
        self.jumped_to = None;
        sequence.received += 1;
        if sequence.mark(number) { Verdict::New } else { Verdict::Duplicate }
    }

    /// Begins to count with this packet.
    fn begin(&mut self, number: u16) {
        self.jumped_to = None;
        self.jitter = Jitter::default();
        let mut sequence = Sequence {
            base: number,
            highest: number,
            cycles: 0,
            received: 1,
            expected_before: 0,
            received_before: 0,
            seen: [0; WORDS],
        };
        sequence.mark(number);
        self.sequence = Some(sequence);
    }

    /// Takes note of a sender report.
    pub(super) fn report(&mut self, now: Time, ntp: u64) {
        self.sender_report = Some(((ntp >> 16) as u32, now));
    }

    /// The report block on it, with which a new interval of its loss begins; `None` if no data has come since the last.
    pub(super) fn block(&mut self, now: Time) -> Option<ReportBlock> {
        if !self.is_valid() || !core::mem::take(&mut self.is_news) {
            return None;
        }
        let jitter = self.jitter.estimate();
        let (last_report, delay) = match self.sender_report {
            None => (0, 0),
            Some((middle, at)) => (middle, duration_to_periods(now.since(at), 1 << 16)),
        };
        let sequence = self.sequence.as_mut()?;
        let fraction_lost = sequence.fraction_lost();
        let lost = sequence.lost().clamp(-(1 << 23), (1 << 23) - 1) as i32;
        let highest = sequence.extended();
        Some(ReportBlock { ssrc: self.ssrc, fraction_lost, lost, highest, jitter, last_report, delay })
    }

    /// What has been received; `None` before the first data packet of a trusted source.
    pub(super) fn reception(&self) -> Option<Reception> {
        let sequence = self.sequence.as_ref().filter(|_| self.is_valid())?;
        Some(Reception {
            ssrc: self.ssrc,
            received: sequence.received,
            expected: sequence.expected(),
            lost: sequence.lost(),
            highest: sequence.extended(),
            jitter: self.jitter.estimate(),
        })
    }
}

impl Sequence {
    /// Makes this later number the highest, and forgets those that are now too old to be known.
    fn advance(&mut self, number: u16) {
        let steps = number.wrapping_sub(self.highest);
        if steps >= MAX_MISORDER {
            self.seen = [0; WORDS];
        } else {
            for step in 1..=steps {
                let (word, bit) = place_of(self.highest.wrapping_add(step));
                self.seen[word] &= !bit;
            }
        }
        if number < self.highest {
            self.cycles = self.cycles.wrapping_add(1);
        }
        self.highest = number;
    }

    /// Notes that this number has come; false if it had come before.
    fn mark(&mut self, number: u16) -> bool {
        let (word, bit) = place_of(number);
        let is_new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        is_new
    }

    fn extended(&self) -> u32 {
        self.cycles << 16 | u32::from(self.highest)
    }

    fn expected(&self) -> u64 {
        (u64::from(self.cycles) << 16 | u64::from(self.highest)) + 1 - u64::from(self.base)
    }

    fn lost(&self) -> i64 {
        self.expected() as i64 - self.received as i64
    }

    /// The share lost since the last report, in 256ths, and begins the next interval (section A.3).
    fn fraction_lost(&mut self) -> u8 {
        let expected = self.expected() - self.expected_before;
        let received = self.received - self.received_before;
        self.expected_before = self.expected();
        self.received_before = self.received;
        let lost = expected.saturating_sub(received);
        // All of them would be 256 of 256.
        (lost * 256).checked_div(expected).unwrap_or(0).min(255) as u8
    }
}

/// Where the bit of a number stands.
fn place_of(number: u16) -> (usize, u64) {
    let index = usize::from(number % MAX_MISORDER);
    (index / 64, 1 << (index % 64))
}

impl Jitter {
    /// A packet that took so long by the difference of two clocks, modulo 2^32 (section A.8).
    fn packet(&mut self, transit: u32) {
        if let Some(before) = self.transit.replace(transit) {
            let difference = u64::from((transit.wrapping_sub(before) as i32).unsigned_abs());
            self.scaled = self.scaled + difference - ((self.scaled + 8) >> 4);
        }
    }

    fn estimate(self) -> u32 {
        u32::try_from(self.scaled >> 4).unwrap_or(u32::MAX)
    }
}

/// The round trip that a report block tells its source (section 6.4.1): it came at `now`, by the middle of the NTP time,
/// and answers a sender report. `None` if it answers none, or none that can have been ours.
pub(super) fn round_trip(now: u32, block: &ReportBlock) -> Option<Duration> {
    if block.last_report == 0 {
        return None;
    }
    let units = now.wrapping_sub(block.last_report).wrapping_sub(block.delay);
    // Below zero: the other end's clock, or the block, is wrong.
    let units = u64::try_from(units as i32).ok()?;
    Some(Duration::from_nanos((units * 1_000_000_000) >> 16))
}
