//! Finding messages in a byte stream, and finding them again after a cut.

use core::ops::Range;

use memchr::memmem::Finder;

use trunkline_core::FlowId;

use super::short::{ANSWER_SEQUENCE, STREAM_SEQUENCE};
use super::{HEADER_LENGTH, Header, KEY, KIND, Key, LENGTH, MAX_PAYLOAD, MessageKind, SHORT_LENGTH};

/// Finds messages in a byte stream.
///
/// Give it what arrives ([`push`](Deframer::push), or [`append_with`](Deframer::append_with) to spare a copy), then
/// take messages with [`next`](Deframer::next) until it returns `None`. How the stream is split into pushes never
/// changes which messages come out.
///
/// A position counts as a header if the key stands there and kind, flow and length are possible for this run
/// ("plausible"); a [short](super::short) one elsewhere than behind a message only if its number follows that of the last
/// message of its channel, after a gap of at most 2^16 messages, or 2^10 answers (or that of the one before, where
/// nothing has followed the last yet: its number may be damaged). No payload holds such bytes but by a
/// chance of less than 10^-19 per byte, or of less than 10^-9 in a stream with short headers. So a plausible header
/// inside an announced message means that the message was cut: it is skipped, and reading goes on at that header.
/// Where a header is missing, the next plausible one is looked for, beginning in the last bytes of the message before
/// (whose length may have been wrong). Hence a cut, an insertion or a flipped bit loses only the messages that it
/// touches. Damage inside a payload cannot be seen here: transports have checksums for it.
///
/// Memory is bounded by the largest message that may be announced plus what is pushed at once; nothing is allocated
/// per message once the buffer has grown to that.
#[derive(Clone, Debug)]
pub struct Deframer {
    rules: Rules,
    finder: Finder<'static>,
    buffer: Vec<u8>,
    /// Everything before this is done with: delivered or skipped.
    head: usize,
    /// Where to look for the next header inside an announced message or after damage; may lie before `head`.
    scan: usize,
    place: Place,
    skipped: usize,
}

/// A message found in a stream, in the deframer's own buffer.
#[derive(Debug)]
pub struct Framed<'d> {
    /// Bytes between the message before and this one that belong to no message.
    pub skipped: usize,
    /// The header, decoded.
    pub header: Header,
    /// The message and its header. They may be changed in place, to be reflected.
    pub bytes: &'d mut [u8],
}

impl Framed<'_> {
    /// The message, without its header where that stands in front of it.
    pub fn message(&self) -> &[u8] {
        self.header.message(self.bytes)
    }
}

impl Deframer {
    /// A reader of a run's messages of these flow ids, with payloads of at most [`MAX_PAYLOAD`].
    pub fn new(key: Key, flows: Range<u32>) -> Deframer {
        Deframer {
            rules: Rules { key, flows, limit: MAX_PAYLOAD, numbers: Numbers::default() },
            finder: Finder::new(&key.sent()[..PREFIX]).into_owned(),
            buffer: Vec::new(),
            head: 0,
            scan: 0,
            place: Place::Border,
            skipped: 0,
        }
    }

    /// Takes only messages with a payload of at most `limit` bytes (at most [`MAX_PAYLOAD`]): bounds the memory, and
    /// makes headers that damage has made up less plausible.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Deframer {
        self.rules.limit = limit.min(MAX_PAYLOAD);
        self
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.append_with(|buffer| buffer.extend_from_slice(bytes));
    }

    /// Lets `append` put the next bytes of the stream behind those already there, without a copy between. It must
    /// leave what it finds in the buffer.
    pub fn append_with<R>(&mut self, append: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        self.compact();
        let before = self.buffer.len();
        let result = append(&mut self.buffer);
        debug_assert!(self.buffer.len() >= before, "`append` took away what was waiting");
        if self.buffer.len() < before {
            // Rather lose the rest than read out of step with our own marks.
            (self.head, self.scan, self.place) = (self.buffer.len(), self.buffer.len(), Place::Lost);
        }
        result
    }

    /// The next whole message, or `None` until more bytes have been pushed.
    #[expect(clippy::should_implement_trait, reason = "it lends the message, which an iterator cannot")]
    pub fn next(&mut self) -> Option<Framed<'_>> {
        loop {
            match self.place {
                Place::Border => match self.rules.judge(&self.buffer[self.head..]) {
                    Judgement::Header(length) | Judgement::Unexpected(length) => {
                        self.enter(self.head, length)
                    }
                    Judgement::Undecided => return None,
                    Judgement::Nothing => self.place = Place::Lost,
                },
                Place::Lost => match self.find(self.buffer.len()) {
                    Some((at, length)) => self.enter(at, length),
                    None => {
                        self.skip_to(self.scan);
                        return None;
                    }
                },
                Place::Message(length) => {
                    let end = self.head + length;
                    if let Some((at, length)) = self.find(end.min(self.buffer.len())) {
                        self.enter(at, length);
                    } else if self.buffer.len() < end {
                        return None;
                    } else if let Some(header) = self.rules.read(&self.buffer[self.head..]) {
                        let start = core::mem::replace(&mut self.head, end);
                        self.place = Place::Border;
                        let skipped = core::mem::take(&mut self.skipped);
                        return Some(Framed { skipped, header, bytes: &mut self.buffer[start..end] });
                    } else {
                        // The rest of the header was damaged.
                        self.place = Place::Lost;
                    }
                }
            }
        }
    }

    /// Ends the stream: forgets what is incomplete, and returns how many bytes since the last message belong to none.
    pub fn finish(&mut self) -> usize {
        let rest = self.buffer.len().saturating_sub(self.head);
        self.buffer.clear();
        (self.head, self.scan, self.place) = (0, 0, Place::Border);
        core::mem::take(&mut self.skipped) + rest
    }

    /// Bytes that wait for the rest of their message.
    pub fn waiting(&self) -> usize {
        self.buffer.len() - self.head
    }

    /// Believes the header at `at`, of a message that has `length` bytes with it.
    fn enter(&mut self, at: usize, length: usize) {
        self.skip_to(at);
        self.head = at;
        self.scan = at + 1;
        self.place = Place::Message(length);
    }

    fn skip_to(&mut self, at: usize) {
        let skipped = at.saturating_sub(self.head);
        self.skipped = self.skipped.saturating_add(skipped);
        self.head += skipped;
    }

    /// The first plausible header at or after `scan` whose judged part ends before `end`.
    fn find(&mut self, end: usize) -> Option<(usize, usize)> {
        while let Some(last_key_byte) = end.checked_sub(JUDGED - PREFIX)
            && self.scan < last_key_byte
            && let Some(offset) = self.finder.find(&self.buffer[self.scan..last_key_byte])
        {
            let at = self.scan + offset;
            self.scan = at + 1;
            if let Judgement::Header(length) = self.rules.judge(&self.buffer[at..]) {
                return Some((at, length));
            }
        }
        self.scan = self.scan.max((end + 1).saturating_sub(JUDGED));
        None
    }

    /// Moves what is still needed to the front, once at least as much in front of it is done with: every byte is
    /// moved at most once on average.
    fn compact(&mut self) {
        let done = match self.place {
            Place::Message(_) => self.head,
            Place::Border | Place::Lost => self.head.min(self.scan),
        };
        if done > 0 && self.buffer.len() <= 2 * done {
            self.buffer.copy_within(done.., 0);
            self.buffer.truncate(self.buffer.len() - done);
            self.head -= done;
            self.scan -= done;
        }
    }
}

/// Bytes of a header by which it is judged: those from the key to the kind, or a short one.
const JUDGED: usize = SHORT_LENGTH;
const _: () = assert!(JUDGED == KIND.end);

/// Bytes that all headers begin with.
const PREFIX: usize = 3;

/// The largest gaps between the numbers of a channel that are believed of a short header inside of a message.
const GAP: u32 = 1 << 16;
const ANSWER_GAP: u32 = 1 << 10;

/// Where in the stream the reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Behind a message: a header must follow.
    Border,
    /// Behind damage: a header is being looked for.
    Lost,
    /// At a header; the message and its header have this length.
    Message(usize),
}

#[derive(Clone, Debug)]
struct Rules {
    key: Key,
    flows: Range<u32>,
    limit: usize,
    numbers: Numbers,
}

/// The numbers that come next, of a stream with short headers, by channel.
#[derive(Clone, Debug, Default)]
struct Numbers {
    channels: Vec<Channel>,
}

/// A number that does not follow may be damage: until the next message bears it out, the one before it counts as well.
#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    last: Next,
    confirmed: Next,
}

/// The flow of a message, and the number behind its own.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    flow: FlowId,
    number: u32,
}

enum Judgement {
    /// A header; the message and its header have this length.
    Header(usize),
    /// The same, but its number is not one of those that come next.
    Unexpected(usize),
    Nothing,
    Undecided,
}

impl Rules {
    /// Whether a header begins here, by its first [`JUDGED`] bytes.
    fn judge(&self, bytes: &[u8]) -> Judgement {
        let Some(judged) = bytes.first_chunk::<JUDGED>() else {
            let known = bytes.len().min(PREFIX);
            let begins = bytes[..known] == self.key.sent()[..known];
            return if begins { Judgement::Undecided } else { Judgement::Nothing };
        };
        if let Some(header) = self.short(judged) {
            let length = header.sent_length();
            let is_next = header.kind == MessageKind::End || self.numbers.follows(&header).1;
            return if is_next { Judgement::Header(length) } else { Judgement::Unexpected(length) };
        }
        let word =
            |at: usize| u32::from_be_bytes([judged[at], judged[at + 1], judged[at + 2], judged[at + 3]]);
        let length = word(LENGTH.start) as usize;
        let kind = MessageKind::from_bits(u16::from(judged[KIND.end - 1]));
        let plausible = judged[KEY] == self.key.sent()
            && length <= self.limit
            && self.flows.contains(&word(super::FLOW.start))
            && (kind != MessageKind::End || length == 0);
        if plausible { Judgement::Header(HEADER_LENGTH + length) } else { Judgement::Nothing }
    }

    /// The short header that these bytes are.
    fn short(&self, bytes: &[u8; SHORT_LENGTH]) -> Option<Header> {
        let only = FlowId(self.flows.start);
        let header = Header::decode_in_stream(bytes, self.key, (self.flows.len() == 1).then_some(only))?;
        let is_possible = header.length as usize <= self.limit && self.flows.contains(&header.flow.0);
        is_possible.then_some(header)
    }

    /// Reads the header of a message that is whole.
    fn read(&mut self, bytes: &[u8]) -> Option<Header> {
        let short = bytes.first_chunk().and_then(|bytes| self.short(bytes));
        let mut header = match short {
            Some(header) => header,
            None => Header::decode(bytes, self.key).ok()?,
        };
        if short.is_some() && header.kind != MessageKind::End {
            header.sequence = self.numbers.follows(&header).0;
        }
        self.numbers.took(&header);
        Some(header)
    }
}

fn is_answer(header: &Header) -> bool {
    header.kind == MessageKind::Reflected
}

impl Numbers {
    /// The whole number of a short header, and whether it is one of those that come next.
    fn follows(&self, header: &Header) -> (u32, bool) {
        let Channel { last, confirmed } =
            self.channels.get(usize::from(header.channel)).copied().unwrap_or_default();
        let nearest = if confirmed.gap(header) < last.gap(header) { confirmed } else { last };
        (nearest.of(header.flow).wrapping_add(nearest.gap(header)), nearest.is_followed_by(header))
    }

    /// A message with this header was read. Its end has no number.
    fn took(&mut self, header: &Header) {
        let channel = usize::from(header.channel);
        if header.kind == MessageKind::End || channel >= usize::from(super::short::MAX_CHANNELS) {
            return;
        }
        if self.channels.len() <= channel {
            self.channels.resize(channel + 1, Channel::default());
        }
        let channel = &mut self.channels[channel];
        if channel.last.is_followed_by(header) {
            channel.confirmed = channel.last;
        }
        channel.last = Next { flow: header.flow, number: header.sequence.wrapping_add(1) };
    }
}

impl Next {
    /// The number that comes next in this flow: another one begins.
    fn of(self, flow: FlowId) -> u32 {
        if self.flow == flow { self.number } else { 0 }
    }

    /// The distance from the next expected number to that of a header.
    fn gap(self, header: &Header) -> u32 {
        let bits = if is_answer(header) { ANSWER_SEQUENCE } else { STREAM_SEQUENCE };
        header.sequence.wrapping_sub(self.of(header.flow)) & ((1 << bits) - 1)
    }

    fn is_followed_by(self, header: &Header) -> bool {
        self.gap(header) < if is_answer(header) { ANSWER_GAP } else { GAP }
    }
}
