//! Messages out of what a conversation receives.

use core::ops::Range;
use std::collections::VecDeque;

use trunkline_transport::framing::{self, Deframer, HEADER_LENGTH, Header, Key};
use trunkline_transport::{Conversation, Features};

/// Receives from a conversation and finds the messages of a run.
#[derive(Debug)]
pub struct Reader(Kind);

#[derive(Debug)]
enum Kind {
    /// Every message is received by itself.
    Messages(Key),
    /// A byte stream whose messages have headers.
    Stream(Box<Deframer>),
    /// A byte stream whose messages have none: what was sent is known, and the transport delivers all of it in its
    /// order.
    Unframed(Box<Unframed>),
}

/// What was found.
#[derive(Debug)]
pub enum Found<'b> {
    /// A message, header or the room for it included.
    Message(Header, &'b mut [u8]),
    /// So many bytes that are no message of this run.
    Unmatched(usize),
}

/// What is expected of a stream without headers, and what has come.
#[derive(Debug, Default)]
struct Unframed {
    /// The headers that its messages would have.
    expected: VecDeque<Header>,
    /// Bytes that have come; those before `start` have been handed out.
    bytes: Vec<u8>,
    start: usize,
    /// The message handed out last, with room for a header.
    message: Vec<u8>,
}

/// A reader that finds nothing, to leave in the place of one in use.
impl Default for Reader {
    fn default() -> Reader {
        Reader(Kind::Messages(Key(0)))
    }
}

impl Reader {
    /// A reader of messages with these ids from a conversation with these features.
    pub fn new(features: &Features, key: Key, ids: Range<u32>) -> Reader {
        if features.message_oriented {
            return Reader(Kind::Messages(key));
        }
        Reader(Kind::Stream(Box::new(Deframer::new(key, ids))))
    }

    /// A reader of messages without headers, for a driver that carries both ends and says what was
    /// [sent](Self::expect).
    pub fn unframed() -> Reader {
        Reader(Kind::Unframed(Box::default()))
    }

    /// Receives once; false if there was nothing. Then [`messages`](Self::messages) finds what has become complete.
    #[inline]
    pub fn receive<C: Conversation + ?Sized>(&mut self, conversation: &mut C, scratch: &mut Vec<u8>) -> bool {
        match &mut self.0 {
            Kind::Messages(_) => {
                scratch.clear();
                conversation.receive(scratch).is_some()
            }
            Kind::Stream(deframer) => deframer.append_with(|bytes| conversation.receive(bytes)).is_some(),
            Kind::Unframed(unframed) => {
                unframed.compact();
                conversation.receive(&mut unframed.bytes).is_some()
            }
        }
    }

    /// Hands out what is complete of what was received, in its order.
    #[inline]
    pub fn messages(&mut self, scratch: &mut [u8], mut found: impl FnMut(Found<'_>)) {
        match &mut self.0 {
            Kind::Messages(key) => match framing::decode_message(scratch, *key) {
                Ok((header, _)) => found(Found::Message(header, scratch)),
                Err(_) => found(Found::Unmatched(scratch.len())),
            },
            Kind::Stream(deframer) => {
                while let Some(framed) = deframer.next() {
                    if framed.skipped > 0 {
                        found(Found::Unmatched(framed.skipped));
                    }
                    found(Found::Message(framed.header, framed.bytes));
                }
            }
            Kind::Unframed(unframed) => {
                while let Some((header, bytes)) = unframed.next() {
                    found(Found::Message(header, bytes));
                }
            }
        }
    }

    /// A message without a header was sent into the stream, of which this would be the header.
    #[inline]
    pub fn expect(&mut self, header: &Header) {
        if let Kind::Unframed(unframed) = &mut self.0 {
            unframed.expected.push_back(*header);
        }
    }

    /// Ends the stream; returns how many bytes since the last message belong to none.
    pub fn finish(&mut self) -> usize {
        match &mut self.0 {
            Kind::Stream(deframer) => deframer.finish(),
            Kind::Messages(_) | Kind::Unframed(_) => 0,
        }
    }
}

impl Unframed {
    fn compact(&mut self) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
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
