//! How what is said becomes bytes. Pure: bytes in, frames out.
//!
//! Every frame is a length of four bytes (big-endian, of what follows), a tag of one byte and a body. What is said once is
//! JSON; observations are packed.

use serde::{Serialize, de::DeserializeOwned};
use trunkline_core::Bytes;

use crate::memory::{Held, NoMemory, Share};

/// The largest frame of a peer that is known, without its length.
pub const MAX_FRAME: usize = 64 << 20;

/// The largest frame of somebody who is not known yet.
pub const STRANGER_FRAME: usize = 4 << 10;

/// Length and tag.
pub const HEAD: usize = 5;

/// What a frame holds.
pub mod tag {
    /// [`Hello`](crate::message::Hello).
    pub const HELLO: u8 = b'H';
    /// [`Welcome`](crate::message::Welcome).
    pub const WELCOME: u8 = b'W';
    /// A JSON object: an [`Enrolment`](crate::message::Enrolment), a [`Reply`](crate::message::Reply), or a message of the
    /// protocol that the connection is for.
    pub const MESSAGE: u8 = b'M';
    /// Packed observations.
    pub const CHUNK: u8 = b'C';
    /// [`TimeRequest`](crate::clock::TimeRequest).
    pub const TIME_REQUEST: u8 = b'T';
    /// [`TimeReply`](crate::clock::TimeReply).
    pub const TIME_REPLY: u8 = b't';
    /// "I am still here": no body.
    pub const PING: u8 = b'P';
}

/// What was said at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What the body is.
    pub tag: u8,
    /// The body.
    pub body: Vec<u8>,
}

/// Bytes that are not our protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A frame without a tag.
    #[error("an empty frame")]
    Empty,
    /// A frame larger than its sender may send.
    #[error("a frame of {length} bytes; at most {limit} are allowed")]
    TooLarge {
        /// Its length.
        length: u64,
        /// What is allowed.
        limit: usize,
    },
    /// A frame that does not belong here.
    #[error("a frame with tag {found:#04x} instead of {expected}")]
    Tag {
        /// Its tag.
        found: u8,
        /// What is due.
        expected: &'static str,
    },
    /// A frame for which its sender may not have the memory. It was passed over: what follows can be read.
    #[error("a frame of {length} bytes that exceeds the memory limit: it needs {why}")]
    Memory {
        /// Its length.
        length: u64,
        /// What is lacking.
        why: NoMemory,
    },
    /// A body that says nothing.
    #[error("a malformed {what}: {reason}")]
    Malformed {
        /// What it should be.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// Something that fits into a frame.
pub trait Message: Sized {
    /// The frame that says it.
    ///
    /// # Errors
    /// If it is larger than any frame may be.
    fn to_frame(&self) -> Result<Frame, WireError>;

    /// What a frame says.
    ///
    /// # Errors
    /// If it says something else.
    fn from_frame(frame: Frame) -> Result<Self, WireError>;
}

/// What is wrong may be in the words of whoever sent it: a terminal obeys nothing of it, and no log is filled with it.
pub fn malformed(what: &'static str, reason: impl Into<String>) -> WireError {
    WireError::Malformed { what, reason: printable(&reason.into(), MOST_REASON) }
}

/// So many characters of what is wrong are told.
const MOST_REASON: usize = 300;

/// At most so many characters of a text, without those that a terminal would obey.
pub fn printable(text: &str, most: usize) -> String {
    text.chars().filter(|c| !is_control(*c)).take(most).collect()
}

/// Whether a terminal obeys it: also those that turn the direction of what follows (Unicode's bidirectional controls).
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Checks that a frame has this tag.
///
/// # Errors
/// If it has another one.
pub fn require(frame: &Frame, tag: u8, expected: &'static str) -> Result<(), WireError> {
    if frame.tag == tag { Ok(()) } else { Err(WireError::Tag { found: frame.tag, expected }) }
}

/// A frame with a JSON object.
///
/// # Errors
/// If it is larger than any frame may be.
pub fn to_json(tag: u8, what: &'static str, said: &impl Serialize) -> Result<Frame, WireError> {
    let body = serde_json::to_vec(said).map_err(|error| malformed(what, error.to_string()))?;
    sized(Frame { tag, body })
}

/// The JSON object in a frame; `what` names it with its article.
///
/// # Errors
/// If the frame has another tag or body.
pub fn from_json<T: DeserializeOwned>(frame: &Frame, tag: u8, what: &'static str) -> Result<T, WireError> {
    require(frame, tag, what)?;
    serde_json::from_slice(&frame.body)
        .map_err(|error| malformed(what.trim_start_matches("a "), error.to_string()))
}

/// Checks the size of a frame.
///
/// # Errors
/// If it is larger than any frame may be.
pub fn sized(frame: Frame) -> Result<Frame, WireError> {
    let length = frame.body.len() + 1;
    if length > MAX_FRAME {
        return Err(WireError::TooLarge { length: length as u64, limit: MAX_FRAME });
    }
    Ok(frame)
}

/// Length and tag of a frame with a body of so many bytes.
///
/// # Errors
/// If it is larger than any frame may be.
pub fn head(tag: u8, body: usize) -> Result<[u8; HEAD], WireError> {
    let too_large = WireError::TooLarge { length: body as u64 + 1, limit: MAX_FRAME };
    if body >= MAX_FRAME {
        return Err(too_large);
    }
    let [a, b, c, d] = u32::try_from(body + 1).map_err(|_| too_large)?.to_be_bytes();
    Ok([a, b, c, d, tag])
}

/// Cuts a stream of bytes into frames. It takes memory in pieces, as bytes come, so that a length that is wrong costs none;
/// with a [`Share`] no more than its sender may have.
#[derive(Debug)]
pub struct Deframer {
    limit: usize,
    share: Option<Share>,
    head: [u8; HEAD],
    body: Vec<u8>,
    /// What the body takes of the share.
    held: Option<Held>,
    /// How much of head and body has come.
    filled: usize,
    /// Why the rest of this frame is passed over.
    passed_over: Option<NoMemory>,
}

impl Deframer {
    /// How much memory it takes ahead of what comes. So much is not counted either.
    pub(crate) const STEP: usize = 16 << 10;

    /// A reader that refuses frames of more bytes than this.
    pub fn new(limit: usize) -> Deframer {
        Deframer {
            limit: limit.min(MAX_FRAME),
            share: None,
            head: [0; HEAD],
            body: Vec::new(),
            held: None,
            filled: 0,
            passed_over: None,
        }
    }

    /// From now on frames of so many bytes are accepted.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(MAX_FRAME);
    }

    /// From now on frames take their memory from here.
    pub fn set_share(&mut self, share: Share) {
        self.share = Some(share);
    }

    /// Where frames take their memory from.
    pub fn share(&self) -> Option<&Share> {
        self.share.as_ref()
    }

    /// Whether the stream may end here.
    pub fn is_between_frames(&self) -> bool {
        self.filled == 0
    }

    /// Where the next bytes belong: never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.filled < HEAD {
            return &mut self.head[self.filled..];
        }
        let step = self.left().min(Deframer::STEP);
        let had = self.filled - HEAD;
        if self.passed_over.is_none()
            && let Err(why) = self.reserve(had + step)
        {
            self.passed_over = Some(why);
            (self.body, self.held) = (Vec::new(), None);
        }
        let had = if self.passed_over.is_some() { 0 } else { had };
        self.body.resize(had + step, 0);
        &mut self.body[had..]
    }

    /// Makes room for so much of the body.
    fn reserve(&mut self, needed: usize) -> Result<(), NoMemory> {
        let (had, room) = (self.body.len(), self.body.capacity());
        if needed <= room {
            return Ok(());
        }
        let whole = self.length().saturating_sub(1);
        let room = whole.min(needed.max(2 * room));
        if let Some(share) = self.share.as_ref().filter(|_| room > Deframer::STEP) {
            // While it is moved there are both.
            let held = share.take(Bytes(room as u64))?;
            self.body.reserve_exact(room - had);
            self.held = Some(held);
        } else {
            self.body.reserve_exact(room - had);
        }
        Ok(())
    }

    /// So many bytes were written into the space; gives the frame that they complete.
    ///
    /// # Errors
    /// If no frame can begin like this: the stream cannot be read on. After [`WireError::Memory`] it can.
    pub fn advance(&mut self, written: usize) -> Result<Option<Frame>, WireError> {
        self.filled += written;
        if self.filled < HEAD {
            return Ok(None);
        }
        let length = self.length();
        match length {
            0 => return Err(WireError::Empty),
            length if length > self.limit => {
                return Err(WireError::TooLarge { length: length as u64, limit: self.limit });
            }
            _ => {}
        }
        if self.left() > 0 {
            return Ok(None);
        }
        self.filled = 0;
        let body = std::mem::take(&mut self.body);
        match self.passed_over.take() {
            Some(why) => Err(WireError::Memory { length: length as u64, why }),
            None => Ok(Some(Frame { tag: self.head[HEAD - 1], body })),
        }
    }

    /// What the frame that was completed last takes of its sender's share.
    pub fn take_held(&mut self) -> Option<Held> {
        self.held.take()
    }

    /// What the head says of tag and body.
    fn length(&self) -> usize {
        let [a, b, c, d, _] = self.head;
        u32::from_be_bytes([a, b, c, d]) as usize
    }

    /// What of the body is still to come.
    fn left(&self) -> usize {
        (self.length() + HEAD - 1).saturating_sub(self.filled)
    }
}

#[cfg(test)]
mod tests;
