//! Audio in the packets of other programs: [RTP](rtp), which studio equipment (AES67), telephones, GStreamer and ffmpeg
//! speak, and [JackTrip](jacktrip)'s own datagrams.
//!
//! Both are [`Packer`](crate::pipeline::Packer) and [`Unpacker`] of a [`Stream`], in the place of our own format. Packets
//! of others may be of any length: what comes is cut into the stream's blocks by the place that its time stamp or number
//! gives it.

mod assembler;
pub mod jacktrip;
pub mod rtp;

use assembler::{Assembler, WINDOW};
use trunkline_core::Time;

use crate::format::{Encoding, LOUDEST};
use crate::pipeline::{Block, Codec, Stream, UnpackCounters, UnpackError, Unpacker};
use crate::playout::Origin;

/// A stream's blocks out of what packets carry, and what became of those.
#[derive(Clone, Debug)]
struct Output {
    stream: Stream,
    assembler: Assembler,
    counters: UnpackCounters,
}

impl Output {
    fn new(stream: &Stream) -> Output {
        let assembler = Assembler::new(usize::from(stream.channels), stream.block_frames as usize);
        Output { stream: *stream, assembler, counters: UnpackCounters::default() }
    }

    /// Takes interleaved samples of every channel from frame `position` on, which arrived at `arrived`.
    fn put(
        &mut self,
        position: i64,
        samples: &[f32],
        (arrived, origin): (Time, Origin),
        deliver: &mut dyn FnMut(Block<'_>),
    ) {
        let Output { stream, assembler, counters } = self;
        counters.recovered += u64::from(origin == Origin::Recovered);
        counters.concealed += u64::from(origin == Origin::Concealed);
        assembler.put(position, samples, &mut |sequence, samples| {
            counters.delivered += 1;
            // By the sender's media clock: nothing in the packets says when that began.
            let captured =
                Time::ZERO + stream.duration_of(u64::from(sequence) * u64::from(stream.block_frames));
            deliver(Block {
                sequence,
                captured,
                arrived,
                first_channel: 0,
                channels: stream.channels,
                samples,
                origin,
            });
        });
    }

    /// Counts what became of a packet, and passes it on.
    fn counted(&mut self, taken: Result<(), UnpackError>) -> Result<(), UnpackError> {
        self.counters.packets += 1;
        match taken {
            Ok(()) => {}
            Err(UnpackError::Damaged) => self.counters.damaged += 1,
            Err(UnpackError::OtherStream(_)) => self.counters.other += 1,
        }
        taken
    }
}

/// The number nearest to `near` that ends in these 16 bits: a sequence number without its wrapping.
fn extend(near: i64, sequence: u16) -> i64 {
    near + i64::from(sequence.wrapping_sub(near as u16) as i16)
}

/// Gives any packets to the readers of this module, and panics where one hands out what cannot be: each packet stands
/// behind a byte with its length in words of four bytes.
#[doc(hidden)]
pub fn fuzz_foreign(data: &[u8]) {
    let stream = |channels, block_frames, codec| Stream {
        channels,
        sample_rate: 48_000,
        block_frames,
        codec,
        ..Stream::default()
    };
    let [linear, law, opus, other] = [
        stream(2, 48, Codec::Pcm(Encoding::I24)),
        stream(1, 160, Codec::Pcma),
        stream(1, 960, Codec::Opus { bitrate: 64_000, fec: false }),
        stream(2, 64, Codec::Pcm(Encoding::I16)),
    ];
    let mut unpackers: [(Stream, Box<dyn Unpacker>); 4] = [
        (linear, Box::new(rtp::RtpUnpacker::new(&linear, 96).expect("it is within bounds"))),
        (law, Box::new(rtp::RtpUnpacker::new(&law, 8).expect("it is within bounds"))),
        (opus, Box::new(rtp::RtpUnpacker::new(&opus, 97).expect("it is within bounds"))),
        (other, Box::new(jacktrip::JackTripUnpacker::new(&other))),
    ];
    let mut rest = data;
    while let Some((&words, behind)) = rest.split_first() {
        let (packet, behind) = behind.split_at((usize::from(words) * 4).min(behind.len()));
        rest = behind;
        for (stream, unpacker) in &mut unpackers {
            let mut samples = 0;
            // What is refused is said, and that is all that happens.
            let _ = unpacker.unpack(Time::ZERO, packet, &mut |block| {
                assert_eq!(block.samples.len(), usize::from(stream.channels) * stream.block_frames as usize);
                assert!(block.samples.iter().all(|sample| sample.abs() <= LOUDEST));
                samples += block.samples.len();
            });
            // All blocks at work may have been all but complete.
            let at_work = WINDOW * usize::from(stream.channels) * stream.block_frames as usize;
            let is_pcm = !matches!(stream.codec, Codec::Opus { .. });
            assert!(
                !is_pcm || samples <= packet.len() + at_work,
                "{samples} samples of {} bytes",
                packet.len()
            );
        }
    }
    let counters = unpackers.map(|(_, unpacker)| unpacker.counters());
    assert!(counters.windows(2).all(|pair| pair[0].packets == pair[1].packets));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_core::rtp::{RtpHeader, RtpPacket};
    use trunkline_testkit::cases::cases;

    use super::*;

    /// A packet behind its length: of RTP, of JackTrip, or of neither.
    fn packet() -> impl Strategy<Value = Vec<u8>> {
        let rtp = (
            prop::sample::select(vec![96u8, 8, 97]),
            0..40u16,
            prop::sample::select(vec![1u32, 7, 48, 160, 960, 1 << 30]),
            0..3u8,
            prop::collection::vec(any::<u8>(), 0..80),
        );
        let rtp = rtp.prop_map(|(payload_type, sequence, step, ssrc, payload)| {
            let timestamp = u32::from(sequence).wrapping_mul(step);
            let header = RtpHeader { marker: false, payload_type, sequence, timestamp, ssrc: ssrc.into() };
            let mut packet = Vec::new();
            RtpPacket::new(header, &payload).encode(&mut packet);
            packet
        });
        let jacktrip = (0..40u16, 0..40u16, 0..3u8, 1..4usize);
        let jacktrip = jacktrip.prop_map(|(sequence, frames, channels, copies)| {
            let mut datagram = Vec::new();
            for older in 0..copies as u16 {
                let header = jacktrip::Header {
                    timestamp: 0,
                    sequence: sequence.wrapping_sub(older),
                    frames,
                    sample_rate: 48_000,
                    resolution: jacktrip::Resolution::Bits16,
                    wanted: channels,
                    channels,
                };
                header.encode(&mut datagram);
                datagram.resize(datagram.len() + usize::from(frames) * usize::from(channels) * 2, 0x55);
            }
            datagram
        });
        let any = prop::collection::vec(any::<u8>(), 0..80);
        prop_oneof![4 => rtp, 4 => jacktrip, 1 => any].prop_map(|mut packet| {
            packet.resize(packet.len().next_multiple_of(4).min(255 * 4), 0);
            packet.insert(0, (packet.len() / 4) as u8);
            packet
        })
    }

    proptest! {
        #![proptest_config(cases(64))]

        #[test]
        fn any_packets_are_blocks_or_refused(packets in prop::collection::vec(packet(), 0..60)) {
            fuzz_foreign(&packets.concat());
        }
    }
}
