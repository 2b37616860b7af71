//! Framing and audio: what is called, with something to give it.

use std::hint::black_box;

use trunkline_core::{Duration, FlowId, Time};
use trunkline_transport::framing::{Deframer, HEADER_LENGTH, Header, Key, MessageKind, decode_message};

use crate::Part;

const KEY: Key = Key(0x5EED_CAFE);

/// The header of a message in the middle of a flow.
pub fn header(sequence: u32, payload: usize) -> Header {
    Header {
        place: trunkline_transport::framing::Place::Before,
        key: KEY,
        length: payload as u32,
        flow: FlowId(3),
        sequence,
        channel: 17,
        kind: MessageKind::Forward,
        late: Duration::from_micros(12),
        sent: Time::from_nanos(1_234_567_890),
        reflected: Time::ZERO,
    }
}

/// A whole message.
pub fn datagram(sequence: u32, payload: usize) -> Vec<u8> {
    let mut message = vec![0x5A; HEADER_LENGTH + payload];
    header(sequence, payload).encode(&mut message);
    message
}

/// A byte stream of equal messages, read in chunks that end anywhere. Unit: a message.
pub struct Chunk {
    deframer: Deframer,
    stream: Vec<u8>,
    at: usize,
}

impl Chunk {
    /// Bytes that one read of a socket brings.
    const LENGTH: usize = 16 << 10;

    /// Messages of this payload.
    pub fn new(payload: usize) -> Chunk {
        let length = HEADER_LENGTH + payload;
        let messages = (4 * Chunk::LENGTH).div_ceil(length) as u32;
        let stream = (0..messages).flat_map(|sequence| datagram(sequence, payload)).collect();
        let mut chunk = Chunk { deframer: Deframer::new(KEY, 0..100), stream, at: 0 };
        for _ in 0..100 {
            chunk.step();
        }
        chunk
    }
}

impl Part for Chunk {
    fn step(&mut self) -> u64 {
        let mut messages = 0;
        while messages == 0 {
            // The end of the stream meets its beginning: a border between messages.
            let end = (self.at + Chunk::LENGTH).min(self.stream.len());
            self.deframer.push(&self.stream[self.at..end]);
            self.at = end % self.stream.len();
            while let Some(found) = self.deframer.next() {
                assert_eq!(found.skipped, 0);
                messages += 1;
            }
        }
        messages
    }
}

/// A message whose header is written. Unit: a header.
pub struct Encoding(pub Vec<u8>);

impl Part for Encoding {
    fn step(&mut self) -> u64 {
        black_box(&header(1, 80)).encode(black_box(&mut self.0));
        1
    }
}

/// A message whose header is read. Unit: a header.
pub struct Finding(pub Vec<u8>);

impl Part for Finding {
    fn step(&mut self) -> u64 {
        let _ = black_box(decode_message(black_box(&self.0), KEY));
        1
    }
}

/// A second of something loud, as samples, as mu-law, and as a WAV file of 16 bits.
pub struct Speech {
    /// As samples.
    pub samples: Vec<i16>,
    /// As mu-law.
    pub codes: Vec<u8>,
    /// As a file.
    pub wav: Vec<u8>,
}

impl Default for Speech {
    fn default() -> Speech {
        let samples: Vec<i16> = (0..8000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 16) as i16).collect();
        let codes = samples.iter().copied().map(trunkline_audio::g711::encode_mu_law).collect();
        let data = 2 * samples.len() as u32;
        let mut wav = b"RIFF".to_vec();
        wav.extend_from_slice(&(36 + data).to_le_bytes());
        wav.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
        wav.extend_from_slice(&8000u32.to_le_bytes());
        wav.extend_from_slice(&16_000u32.to_le_bytes());
        wav.extend_from_slice(b"\x02\0\x10\0data");
        wav.extend_from_slice(&data.to_le_bytes());
        wav.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        Speech { samples, codes, wav }
    }
}
