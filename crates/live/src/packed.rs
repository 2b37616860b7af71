//! Observations as bytes: what an agent keeps on its disk and sends to whoever records.
//!
//! A chunk is a row of entries and can be read by itself. An entry is a tag, the flow's id, how much time has
//! passed since the entry before it (or since the start), and the observation's own numbers. Numbers are little-endian base-128 (seven bits to a
//! byte, the eighth says that more follow); what may be negative is folded first (0, -1, 1, -2 ... become 0, 1, 2, 3 ...).
//! Times within an entry are written as their distance from the entry's time. A message of a telephone call so takes some
//! twenty bytes for being sent and arriving.

use trunkline_core::{Bytes, FlowId, Time};
use trunkline_metrics::{Observation, Recorder};

/// Packs what is recorded into chunks. Every chunk can be unpacked by itself.
#[derive(Debug, Default)]
pub struct Packer {
    bytes: Vec<u8>,
    observations: u64,
    /// The time of the last entry.
    at: u64,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Tag {
    Sent = 1,
    Refused = 2,
    /// One way.
    Received = 3,
    /// With the time at which it was reflected.
    Returned = 4,
    Transferred = 5,
    Overflowed = 6,
    Stray = 7,
    SendCall = 8,
    /// The payload of a message that was received before; it has no time.
    Payload = 9,
    /// The measurement has ended before it was planned to; it is of no flow in particular.
    Ended = 10,
}

impl Packer {
    /// Nothing is packed yet.
    pub fn new() -> Packer {
        Packer::default()
    }

    /// How many bytes the chunk has so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was packed since the last chunk.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many observations the chunk has so far; payloads do not count.
    pub fn observations(&self) -> u64 {
        self.observations
    }

    /// Ends the chunk, and begins the next.
    pub fn take(&mut self) -> Vec<u8> {
        (self.observations, self.at) = (0, 0);
        core::mem::take(&mut self.bytes)
    }

    fn head(&mut self, tag: Tag, at: Time, flow: FlowId) {
        self.bytes.push(tag as u8);
        self.number(u64::from(flow.0));
        self.distance(at.as_nanos(), self.at);
        self.at = at.as_nanos();
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn distance(&mut self, to: u64, from: u64) {
        let distance = to.wrapping_sub(from) as i64;
        self.number((distance << 1 ^ distance >> 63) as u64);
    }

    fn message(&mut self, channel: u16, sequence: u32, other: Time, payload: Bytes) {
        self.number(u64::from(channel));
        self.number(u64::from(sequence));
        self.distance(self.at, other.as_nanos());
        self.number(payload.0);
    }
}

impl Recorder for Packer {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        self.observations += 1;
        match what {
            Observation::Sent { channel, sequence, due, payload } => {
                self.head(Tag::Sent, at, flow);
                self.message(channel, sequence, due, payload);
            }
            Observation::Refused { channel, sequence, due, payload } => {
                self.head(Tag::Refused, at, flow);
                self.message(channel, sequence, due, payload);
            }
            Observation::Received { channel, sequence, sent, reflected: Time::ZERO, payload } => {
                self.head(Tag::Received, at, flow);
                self.message(channel, sequence, sent, payload);
            }
            Observation::Received { channel, sequence, sent, reflected, payload } => {
                self.head(Tag::Returned, at, flow);
                self.message(channel, sequence, sent, payload);
                self.distance(self.at, reflected.as_nanos());
            }
            Observation::Transferred { channel, began, bytes } => {
                self.head(Tag::Transferred, at, flow);
                self.number(u64::from(channel));
                self.distance(self.at, began.as_nanos());
                self.number(bytes.0);
            }
            Observation::Overflowed { channel, samples } => {
                self.head(Tag::Overflowed, at, flow);
                self.number(u64::from(channel));
                self.number(u64::from(samples));
            }
            Observation::Stray { bytes } => {
                self.head(Tag::Stray, at, flow);
                self.number(bytes.0);
            }
            Observation::SendCall { error_nanos, took_nanos } => {
                self.head(Tag::SendCall, at, flow);
                self.number(error_nanos);
                self.number(took_nanos);
            }
        }
    }

    fn payload(&mut self, flow: FlowId, channel: u16, sequence: u32, payload: &[u8]) {
        self.bytes.push(Tag::Payload as u8);
        self.number(u64::from(flow.0));
        self.number(u64::from(channel));
        self.number(u64::from(sequence));
        self.number(payload.len() as u64);
        self.bytes.extend_from_slice(payload);
    }

    fn end_measurement(&mut self, at: Time) {
        self.head(Tag::Ended, at, FlowId(0));
    }
}

/// What was no chunk. What stood before the damage has been recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the packed observations are damaged {left} bytes before their end")]
pub struct Damaged {
    /// How many bytes could not be read.
    pub left: usize,
}

/// Records what a chunk holds, in its order, and says how many observations that were.
///
/// # Errors
/// [`Damaged`], where the chunk goes on in no way that a [`Packer`] writes.
pub fn unpack(chunk: &[u8], recorder: &mut dyn Recorder) -> Result<u64, Damaged> {
    let mut from = Unpacker { bytes: chunk, at: 0 };
    let mut observations = 0;
    loop {
        let left = from.bytes.len();
        if left == 0 {
            return Ok(observations);
        }
        let is_observation = from.entry(recorder).ok_or(Damaged { left })?;
        observations += u64::from(is_observation);
    }
}

struct Unpacker<'c> {
    bytes: &'c [u8],
    at: u64,
}

impl Unpacker<'_> {
    /// Records one entry; says whether it was an observation.
    fn entry(&mut self, recorder: &mut dyn Recorder) -> Option<bool> {
        let (&tag, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        let flow = FlowId(self.small()?);
        if tag == Tag::Payload as u8 {
            let (channel, sequence) = (self.small()?, self.small()?);
            let length = usize::try_from(self.number()?).ok()?;
            let payload = self.bytes.split_off(..length)?;
            recorder.payload(flow, channel, sequence, payload);
            return Some(false);
        }
        // The time counts only with the whole entry.
        let at = self.earlier(self.at, true)?;
        self.at = at.as_nanos();
        if tag == Tag::Ended as u8 {
            recorder.end_measurement(at);
            return Some(false);
        }
        let what = self.observation(tag)?;
        recorder.record(at, flow, what);
        Some(true)
    }

    fn observation(&mut self, tag: u8) -> Option<Observation> {
        const SENT: u8 = Tag::Sent as u8;
        const REFUSED: u8 = Tag::Refused as u8;
        const RECEIVED: u8 = Tag::Received as u8;
        const RETURNED: u8 = Tag::Returned as u8;
        const TRANSFERRED: u8 = Tag::Transferred as u8;
        const OVERFLOWED: u8 = Tag::Overflowed as u8;
        const STRAY: u8 = Tag::Stray as u8;
        const SEND_CALL: u8 = Tag::SendCall as u8;
        Some(match tag {
            SENT | REFUSED | RECEIVED | RETURNED => {
                let (channel, sequence) = (self.small()?, self.small()?);
                let other = self.earlier(self.at, false)?;
                let payload = Bytes(self.number()?);
                match tag {
                    SENT => Observation::Sent { channel, sequence, due: other, payload },
                    REFUSED => Observation::Refused { channel, sequence, due: other, payload },
                    _ => {
                        let reflected =
                            if tag == RETURNED { self.earlier(self.at, false)? } else { Time::ZERO };
                        Observation::Received { channel, sequence, sent: other, reflected, payload }
                    }
                }
            }
            TRANSFERRED => Observation::Transferred {
                channel: self.small()?,
                began: self.earlier(self.at, false)?,
                bytes: Bytes(self.number()?),
            },
            OVERFLOWED => Observation::Overflowed { channel: self.small()?, samples: self.small()? },
            STRAY => Observation::Stray { bytes: Bytes(self.number()?) },
            SEND_CALL => Observation::SendCall { error_nanos: self.number()?, took_nanos: self.number()? },
            _ => return None,
        })
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            // Ten bytes hold 70 bits: of the last one only a bit is left.
            if shift == 63 && byte > 1 {
                return None;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(number)
    }

    fn small<N: TryFrom<u64>>(&mut self) -> Option<N> {
        self.number()?.try_into().ok()
    }

    /// A time by its distance from another: after it, or before it.
    fn earlier(&mut self, from: u64, after: bool) -> Option<Time> {
        let folded = self.number()?;
        let distance = (folded >> 1) ^ (folded & 1).wrapping_neg();
        let nanos = if after { from.wrapping_add(distance) } else { from.wrapping_sub(distance) };
        Some(Time::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Log {
        observations: Vec<(Time, FlowId, Observation)>,
        payloads: Vec<(FlowId, u16, u32, Vec<u8>)>,
    }

    impl Recorder for Log {
        fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
            self.observations.push((at, flow, what));
        }
        fn payload(&mut self, flow: FlowId, channel: u16, sequence: u32, payload: &[u8]) {
            self.payloads.push((flow, channel, sequence, payload.to_vec()));
        }
    }

    fn observation() -> impl Strategy<Value = Observation> {
        let time = || any::<u64>().prop_map(Time::from_nanos);
        let bytes = || any::<u64>().prop_map(Bytes);
        let message = move || (any::<u16>(), any::<u32>(), time(), bytes());
        prop_oneof![
            message().prop_map(|(channel, sequence, due, payload)| Observation::Sent {
                channel,
                sequence,
                due,
                payload
            }),
            message().prop_map(|(channel, sequence, due, payload)| Observation::Refused {
                channel,
                sequence,
                due,
                payload
            }),
            (message(), time()).prop_map(|((channel, sequence, sent, payload), reflected)| {
                Observation::Received { channel, sequence, sent, reflected, payload }
            }),
            (message(), Just(Time::ZERO)).prop_map(|((channel, sequence, sent, payload), reflected)| {
                Observation::Received { channel, sequence, sent, reflected, payload }
            }),
            message().prop_map(|(channel, _, began, bytes)| Observation::Transferred {
                channel,
                began,
                bytes
            }),
            message().prop_map(|(channel, samples, ..)| Observation::Overflowed { channel, samples }),
            bytes().prop_map(|bytes| Observation::Stray { bytes }),
            any::<(u64, u64)>()
                .prop_map(|(error_nanos, took_nanos)| Observation::SendCall { error_nanos, took_nanos }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(
            entries in prop::collection::vec(
                (any::<u64>(), any::<u32>(), observation(), prop::option::of(prop::collection::vec(any::<u8>(), 0..300))),
                0..40,
            ),
            cut in 0..40usize,
        ) {
            let mut expected = Log::default();
            let (mut packer, mut chunks) = (Packer::new(), Vec::new());
            for (place, (at, flow, what, payload)) in entries.iter().enumerate() {
                if place == cut {
                    chunks.push((packer.observations(), packer.take()));
                }
                let (at, flow) = (Time::from_nanos(*at), FlowId(*flow));
                let both = (&mut packer, &mut expected);
                both.0.record(at, flow, *what);
                both.1.record(at, flow, *what);
                if let Some(payload) = payload {
                    both.0.payload(flow, 3, 9, payload);
                    both.1.payload(flow, 3, 9, payload);
                }
            }
            chunks.push((packer.observations(), packer.take()));
            let mut log = Log::default();
            for (observations, chunk) in chunks {
                prop_assert_eq!(unpack(&chunk, &mut log), Ok(observations));
            }
            prop_assert_eq!(log, expected);
            prop_assert!(packer.is_empty());
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = unpack(&bytes, &mut Log::default());
        }
    }

    #[test]
    fn what_is_cut_off_is_told_and_the_rest_is_kept() {
        let mut packer = Packer::new();
        for n in 0..2 {
            packer.record(Time::from_nanos(1000 * n), FlowId(0), Observation::Stray { bytes: Bytes(300) });
        }
        let chunk = packer.take();
        let mut log = Log::default();
        assert_eq!(unpack(&chunk[..chunk.len() - 1], &mut log), Err(Damaged { left: 5 }));
        assert_eq!(log.observations.len(), 1);
    }

    #[test]
    fn a_message_of_a_call_is_small() {
        let mut packer = Packer::new();
        let at = |n: u32, nanos: u64| Time::from_nanos(u64::from(n) * 20_000_000 + nanos);
        for n in 0..100 {
            let (channel, sequence, payload) = (0, n, Bytes(160));
            let what = Observation::Sent { channel, sequence, due: at(n, 0), payload };
            packer.record(at(n, 53_000), FlowId(0), what);
            let (sent, reflected) = (at(n, 53_000), Time::ZERO);
            let what = Observation::Received { channel, sequence, sent, reflected, payload };
            packer.record(at(n, 8_000_000), FlowId(0), what);
        }
        assert!(packer.len() <= 100 * 30, "{} bytes", packer.len());
    }
}
