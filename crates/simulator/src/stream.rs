//! Messages out of a byte stream.

use std::collections::VecDeque;

use trunkline_experiment::Framing;
use trunkline_transport::framing::{Deframer, HEADER_LENGTH, Header, Key};

/// Finds the messages of a byte stream again.
pub(crate) enum Stream {
    /// Each has a header.
    Framed(Box<Deframer>),
    /// None has: what was sent is remembered, and the transport delivers all of it in its order.
    Bare(Bare),
}

/// What is expected of a stream without headers, and what has come.
#[derive(Default)]
pub(crate) struct Bare {
    /// The headers that its messages would have.
    expected: VecDeque<Header>,
    /// Bytes that have come; those before `start` have been handed out.
    bytes: Vec<u8>,
    start: usize,
    /// The message handed out last, with room for a header.
    message: Vec<u8>,
}

impl Stream {
    /// A stream of messages of these members.
    pub(crate) fn new(framing: Framing, key: Key, members: core::ops::Range<u32>) -> Stream {
        match framing {
            Framing::Within | Framing::Before => Stream::Framed(Box::new(Deframer::new(key, members))),
            Framing::None => Stream::Bare(Bare::default()),
        }
    }

    /// A message was sent into the stream, of which this would be the header.
    pub(crate) fn expect(&mut self, header: Header) {
        if let Stream::Bare(bare) = self {
            bare.expected.push_back(header);
        }
    }

    /// Bytes have come.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self {
            Stream::Framed(deframer) => deframer.push(bytes),
            Stream::Bare(bare) => bare.push(bytes),
        }
    }

    /// The next whole message, with room for a header before its payload, and how many bytes before it were none.
    pub(crate) fn next(&mut self) -> Option<(usize, Header, &mut [u8])> {
        match self {
            Stream::Framed(deframer) => {
                let message = deframer.next()?;
                Some((message.skipped, message.header, message.bytes))
            }
            Stream::Bare(bare) => bare.next().map(|(header, bytes)| (0, header, bytes)),
        }
    }
}

impl Bare {
    fn push(&mut self, bytes: &[u8]) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<(Header, &mut [u8])> {
        let length = self.expected.front()?.length as usize;
        let payload = self.bytes.get(self.start..self.start + length)?;
        self.message.resize(HEADER_LENGTH, 0);
        self.message.extend_from_slice(payload);
        self.start += length;
        let header = self.expected.pop_front()?;
        Some((header, &mut self.message))
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::{FlowId, Time};
    use trunkline_transport::framing::MessageKind;

    use super::*;

    fn header(sequence: u32, length: u32) -> Header {
        Header {
            key: Key(1),
            length,
            place: trunkline_transport::framing::Place::Before,
            flow: FlowId(0),
            sequence,
            channel: 0,
            kind: MessageKind::Forward,
            late: trunkline_core::Duration::ZERO,
            sent: Time::ZERO,
            reflected: Time::ZERO,
        }
    }

    #[test]
    fn messages_without_headers_are_found_by_their_lengths() {
        let mut stream = Stream::new(Framing::None, Key(1), 0..1);
        for (sequence, length) in [(0, 3), (1, 1), (2, 4)] {
            stream.expect(header(sequence, length));
        }
        let mut found = Vec::new();
        for bytes in [&b"ab"[..], b"cde", b"fg", b"h"] {
            stream.push(bytes);
            while let Some((skipped, header, bytes)) = stream.next() {
                assert_eq!(skipped, 0);
                found.push((header.sequence, bytes[HEADER_LENGTH..].to_vec()));
            }
        }
        assert_eq!(found, [(0, b"abc".to_vec()), (1, b"d".to_vec()), (2, b"efgh".to_vec())]);
    }
}
