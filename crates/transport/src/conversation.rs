//! The upper half: what an application sees of any transport. Kernel sockets implement only this.

use trunkline_core::{Address, Duration, Ecn, Time};

/// One conversation of an application with its peer.
pub trait Conversation {
    /// Hands a message over. On an error nothing was taken: a full send buffer is backpressure, never silent loss.
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError>;

    /// Appends what has arrived to `into`: one message of a message-oriented transport, or as many bytes as are there
    /// of a byte stream. `None` if nothing is there.
    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received>;

    /// What has happened since the last call, one event at a time.
    fn poll_event(&mut self) -> Option<Event>;

    /// Ends the conversation.
    fn close(&mut self, now: Time, how: Close);

    /// What this transport promises.
    fn features(&self) -> &'static Features;
}

/// What an application hands over at once.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Message<'m> {
    /// The bytes.
    pub bytes: &'m [u8],
    /// Whether more of the same message follows (`MSG_MORE` of Linux's sockets): a host that hands a message over
    /// piece by piece says so with every piece but the last. Transports that take whole messages only ignore it.
    pub more: bool,
}

impl<'m> Message<'m> {
    /// A whole message, or its last piece.
    pub fn new(bytes: &'m [u8]) -> Message<'m> {
        Message { bytes, more: false }
    }

    /// A piece of a message whose rest follows.
    pub fn piece(bytes: &'m [u8]) -> Message<'m> {
        Message { bytes, more: true }
    }
}

/// What [`Conversation::receive`] appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// How many bytes were appended.
    pub length: usize,
    /// The ECN field of the packet that completed it.
    pub ecn: Ecn,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full: try again after [`Event::Writable`].
    #[error("the send buffer is full")]
    Full,
    /// The transport carries no message of this size.
    #[error("the message exceeds the maximum message size of {limit} bytes")]
    TooLarge {
        /// The largest message, in bytes.
        limit: usize,
    },
    /// Not connected yet, or no longer.
    #[error("the conversation is closed ({0})")]
    Closed(CloseReason),
}

/// What a conversation tells its application. Small: payload never travels in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Both ends agreed to talk.
    Connected,
    /// There is something to receive.
    Readable,
    /// The send buffer has room again after [`SendError::Full`].
    Writable,
    /// The conversation is over; comes once. With [`CloseReason::Peer`] the peer sends nothing more, all that it sent
    /// has been received, and this end may still send until it closes too, where the transport ends each direction by
    /// itself (otherwise `send` refuses with the same reason).
    Closed(CloseReason),
    /// Who receives what this end sends in a multicast has changed.
    Member(Membership),
}

/// What happened to a receiver of a multicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It joined, and gets everything from here on.
    Joined(Address),
    /// It left.
    Left(Address),
    /// It did not answer for too long, and is no longer waited for.
    Dropped(Address),
}

/// How a conversation is ended by its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// What was taken is still delivered.
    Graceful,
    /// At once.
    Abort,
}

/// Why a conversation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// It has not been opened yet.
    #[error("not connected yet")]
    NotConnected,
    /// This end closed it.
    #[error("closed by this end")]
    Local,
    /// The peer closed it.
    #[error("closed by the peer")]
    Peer,
    /// The peer aborted it.
    #[error("reset by the peer")]
    Reset,
    /// The peer has not answered for so long.
    #[error("no reply from the peer within {0}")]
    TimedOut(Duration),
    /// The peer could not prove to be the one that was expected.
    #[error("unexpected peer: its certificate differs from the expected one")]
    Untrusted,
}

/// What a transport promises: a row of the feature table (Schiavoni and Queiroz 2013, Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// The transport's name in experiment files.
    pub name: &'static str,
    /// Keeps the borders of messages; otherwise it is a byte stream.
    pub message_oriented: bool,
    /// Opens a conversation before data flow.
    pub connection_oriented: bool,
    /// Each end sends when it likes, at the same time as the other.
    pub full_duplex: bool,
    /// Repairs loss.
    pub reliable: bool,
    /// Delivers in the order of sending.
    pub ordered: bool,
    /// The receiver can hold the sender back.
    pub flow_control: bool,
    /// Reduces its rate when the network is congested.
    pub congestion_control: bool,
    /// Reaches several receivers with one transmission.
    pub multicast: bool,
    /// Splits messages that are larger than a packet.
    pub fragmentation: bool,
    /// Finds out how large a packet the path carries, also when that changes.
    pub path_mtu_discovery: bool,
    /// Detects corrupted data.
    pub checksum: bool,
}
