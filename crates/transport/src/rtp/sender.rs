//! What an end sends: sequence numbers, timestamps, and the books of its sender reports.

use trunkline_core::{Duration, Stream, Time};

use super::config::PayloadFormat;
use super::rtcp::SenderInfo;
use super::wire::{RtpHeader, RtpPacket};

/// How much longer than a message's own samples it must be quiet before what follows begins a talkspurt. A host that is
/// late with a packet is not a speaker who has paused.
const PAUSE: Duration = Duration::from_millis(50);

/// One source of data packets. It is copied before a packet is written, and put back if the packet is not taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    format: PayloadFormat,
    preamble: usize,
    pub(super) ssrc: u32,
    sequence: u16,
    /// Of the next packet, if nothing pauses.
    timestamp: u32,
    last: Option<Last>,
    packets: u32,
    bytes: u32,
}

/// The last packet.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Time,
    timestamp: u32,
    /// How long its samples last.
    length: Duration,
}

impl Sender {
    /// A source with random numbers, as RFC 3550 section 5.1 asks for, none of them `taken`.
    pub(super) fn new(
        format: PayloadFormat,
        preamble: usize,
        taken: Option<u32>,
        stream: &mut Stream,
    ) -> Sender {
        let drawn = stream.bits();
        let mut ssrc = stream.bits() as u32;
        if taken == Some(ssrc) {
            ssrc = !ssrc;
        }
        let (sequence, timestamp) = (drawn as u16, (drawn >> 32) as u32);
        Sender { format, preamble, ssrc, sequence, timestamp, last: None, packets: 0, bytes: 0 }
    }

    /// Appends the data packet of this message, sent at `now`.
    pub(super) fn write(&mut self, now: Time, payload: &[u8], into: &mut Vec<u8>) {
        let samples = payload.len().saturating_sub(self.preamble) / self.format.frame();
        let length = periods_to_duration(samples as u64, self.format.clock);
        let mut marker = true;
        let mut timestamp = self.timestamp;
        if let Some(last) = self.last {
            let quiet = now.since(last.at);
            marker = quiet > last.length + PAUSE;
            if marker {
                timestamp = last.timestamp.wrapping_add(duration_to_periods(quiet, self.format.clock));
            }
        }
        let header = RtpHeader {
            marker,
            payload_type: self.format.payload_type,
            sequence: self.sequence,
            timestamp,
            ssrc: self.ssrc,
        };
        RtpPacket::new(header, payload).encode(into);
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = timestamp.wrapping_add(samples as u32);
        self.last = Some(Last { at: now, timestamp, length });
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(payload.len() as u32);
    }

    /// Takes note of a data packet that another has made and sent at `now`.
    pub(super) fn note(&mut self, now: Time, packet: &RtpPacket<'_>) {
        let RtpHeader { sequence, timestamp, ssrc, .. } = packet.header;
        (self.ssrc, self.sequence, self.timestamp) = (ssrc, sequence.wrapping_add(1), timestamp);
        self.last = Some(Last { at: now, timestamp, length: Duration::ZERO });
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(packet.payload.len() as u32);
    }

    /// When it last sent a data packet.
    pub(super) fn last_sent(&self) -> Option<Time> {
        self.last.map(|last| last.at)
    }

    /// What its report says at `now`, which the wall clock calls `ntp`.
    pub(super) fn info(&self, now: Time, ntp: u64) -> SenderInfo {
        let rtp = match self.last {
            None => self.timestamp,
            Some(last) => {
                let since = duration_to_periods(now.since(last.at), self.format.clock);
                last.timestamp.wrapping_add(since)
            }
        };
        SenderInfo { ntp, rtp, packets: self.packets, bytes: self.bytes }
    }
}

/// Whole periods of the clock in a time, modulo 2^32.
pub(super) fn duration_to_periods(time: Duration, clock: u32) -> u32 {
    (u128::from(time.as_nanos()) * u128::from(clock) / 1_000_000_000) as u32
}

/// How long so many periods of the clock take.
pub(super) fn periods_to_duration(periods: u64, clock: u32) -> Duration {
    let nanos = u128::from(periods) * 1_000_000_000 / u128::from(clock.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
