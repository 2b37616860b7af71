//! The description of a transport: everything that the experiment file, the drivers and the references have to know of
//! it, in one place beside its engine.

use core::any::Any;
use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trunkline_core::schema::{Parameter, Values};
use trunkline_core::{Address, Bytes, Duration, Seed, Stream};

use crate::conversation::Features;
use crate::endpoint::Endpoint;
use crate::tcp::TcpOptions;
use crate::udp::Encapsulation;

/// The word for an option that turns a mechanism off.
pub const NONE: &str = "none";

/// The key of a [`Conflict`] or a [`Packet`] that is the transport's as a whole.
pub const WHOLE: &str = "kind";

/// A transport that an experiment file can name: `transport = { kind = "tcp", window = "16 KiB" }`.
pub struct TransportKind {
    /// The word in the file.
    pub name: &'static str,
    /// One paragraph: what it is in each backend and where it is defined.
    pub doc: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// What it promises with its default options.
    pub features: &'static Features,
    /// The largest payload of a message in bytes, without the header of a measured message.
    pub max_message: u64,
    /// Makes its options from its values.
    pub options: fn(&Values) -> Arc<dyn TransportOptions>,
}

/// A transport with its options. Every method has a default that suits a plain transport; a kind overrides what is
/// different.
pub trait TransportOptions: Any + fmt::Debug + Send + Sync {
    /// What its service promises. Single options may promise less: see [`is_reliable`](Self::is_reliable).
    fn features(&self) -> &'static Features;

    /// Its name in messages: `udp`, in quotation marks.
    fn called(&self) -> String {
        format!("`{}`", self.features().name)
    }

    /// Whether it delivers messages as they were sent, where a byte stream joins and splits them.
    fn keeps_messages(&self) -> bool {
        self.features().message_oriented
    }

    /// Whether everything that it takes is delivered, however late, as long as its conversation lasts.
    fn is_reliable(&self) -> bool {
        self.features().reliable
    }

    /// Whether it makes the sender wait instead of taking more than it can send.
    fn holds_back(&self) -> bool {
        self.features().flow_control || self.features().congestion_control
    }

    /// Whether one transmission reaches all sinks, even if there is one only.
    fn is_multicast(&self) -> bool {
        false
    }

    /// Whether its sender needs nobody at the other end, and receivers come and go as they like.
    fn is_connectionless(&self) -> bool {
        false
    }

    /// Whether all members of a flow share one conversation, as they would share a host's socket; otherwise every member
    /// has one.
    fn is_shared(&self) -> bool {
        false
    }

    /// The most that one end of a conversation holds in buffers of our engines: data that waits to be sent or
    /// acknowledged, and data that waits to be read. Buffers of the kernel's sockets do not count.
    fn buffers(&self) -> Bytes {
        Bytes::ZERO
    }

    /// How long a message may wait for room at the sender before it is counted as refused; without a limit if `None`.
    fn send_timeout(&self) -> Option<Duration> {
        None
    }

    /// The option that limits how much a conversation may have in flight, with the limit: the smaller of its peer's window
    /// and its own send buffer. `None` where nothing, or only the engine, sets one.
    fn in_flight(&self) -> Option<(&'static str, Bytes)> {
        None
    }

    /// The largest packet of a transport whose `window` counts blocks: a block with its trailer.
    fn largest_block(&self) -> Option<Bytes> {
        None
    }

    /// Conflicts between options, whatever uses them.
    fn check(&self, _written: &Written<'_>) -> Vec<Conflict> {
        Vec::new()
    }

    /// Conflicts between options and the flow that uses them.
    fn check_use(&self, _flow: &FlowNeeds<'_>) -> Vec<Conflict> {
        Vec::new()
    }

    /// The packet that every link on the way must carry for this message.
    fn packet(&self, message: &MessageSize<'_>) -> Packet;

    /// Makes the endpoints of a conversation.
    ///
    /// # Errors
    /// What the engine refuses of the options.
    fn pair(&self, place: &Place<'_>) -> Result<Pair, String>;

    /// Makes the endpoints of a conversation with all sinks of a multicast.
    ///
    /// # Errors
    /// What the engine refuses of the options, or that it is not for groups.
    fn group(&self, _place: &Place<'_>, _group: &GroupPlace<'_>) -> Result<Group, String> {
        Err("the transport reaches one sink".to_owned())
    }

    /// The sockets that it needs between real hosts.
    fn sockets(&self) -> Sockets {
        Sockets::Carried(Carrier::Udp)
    }

    /// Why only the simulator can run it.
    fn only_simulated(&self) -> Option<String> {
        None
    }

    /// Why an audio session cannot run over it.
    fn not_for_sessions(&self) -> Option<String> {
        None
    }

    /// Buffers of its sockets, if the file sets them.
    fn socket_buffer(&self) -> Option<Bytes> {
        None
    }

    /// Differences between the simulator and real sockets, as ends of sentences.
    fn differences(&self) -> Vec<String> {
        Vec::new()
    }
}

impl dyn TransportOptions {
    /// The options, if they are of this type.
    pub fn downcast<T: TransportOptions>(&self) -> Option<&T> {
        let options: &dyn Any = self;
        options.downcast_ref()
    }
}

/// Options as a file has them.
pub struct Written<'a> {
    /// All values.
    pub values: &'a Values,
    /// Returns true if the file has this key.
    pub has: &'a dyn Fn(&str) -> bool,
}

/// What a flow asks of its transport.
pub struct FlowNeeds<'a> {
    /// The name of the source.
    pub source: &'a str,
    /// Whether the source waits for replies, and so would wait forever for a lost one.
    pub repair: bool,
    /// Whether the source sends as fast as the transport allows.
    pub backpressure: bool,
    /// Whether an `interval` would limit its rate instead.
    pub has_interval: bool,
    /// Whether messages have no header, so that all of them must arrive, in order.
    pub headerless: bool,
    /// Whether sinks reply.
    pub reflect: bool,
    /// How many there are.
    pub sinks: usize,
}

impl FlowNeeds<'_> {
    /// The sentence on options with which a source would wait forever.
    pub fn would_wait(&self, happens: &str, instead: &str) -> String {
        format!("the source `{}` would wait forever if {happens}; {instead}", self.source)
    }

    /// The sentence on options with which nothing slows down a source without a rate of its own.
    pub fn not_held_back(&self, why: &str, instead: &str) -> String {
        format!("the source `{}` sends as fast as the transport allows, but {why}; {instead}", self.source)
    }
}

/// Something that does not fit, and the key that says so.
#[derive(Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The transport's key; the transport as a whole if it is not in the file.
    pub key: String,
    /// What does not fit, and what to do.
    pub message: String,
}

impl Conflict {
    /// A conflict at this key.
    pub fn new(key: &str, message: impl Into<String>) -> Conflict {
        Conflict { key: key.to_owned(), message: message.into() }
    }
}

/// The largest message of a source, or of its answers.
pub struct MessageSize<'a> {
    /// `a message`, or `an answer`.
    pub noun: &'a str,
    /// Its bytes.
    pub size: u64,
    /// The same with the header by which it is measured.
    pub whole: u64,
    /// Whether sizes vary: smaller ones may pass.
    pub varies: bool,
    /// Whether it goes from a sink back to the source.
    pub is_back: bool,
}

/// A packet as links count it.
pub enum Packet {
    /// Packets adapt to the path, or messages that are too large are counted.
    Fits,
    /// Every link must carry this many bytes.
    Needs {
        /// At the network layer.
        bytes: u64,
        /// What makes it so large, as the beginning of a sentence.
        what: String,
        /// The key that does; the source if there is none.
        key: Option<&'static str>,
    },
    /// The message is too large for the transport.
    TooLarge {
        /// What is too large for what.
        message: String,
        /// The key that says so; the source if there is none.
        key: Option<&'static str>,
    },
}

impl Packet {
    /// A message that is one packet, with these bytes of headers.
    pub fn of_message(message: &MessageSize<'_>, headers: usize, bound: &str) -> Packet {
        if message.varies {
            return Packet::Fits;
        }
        let bytes = message.whole.saturating_add(headers as u64);
        let MessageSize { noun, size, .. } = message;
        Packet::Needs {
            bytes,
            what: format!("{noun} of {size} B makes a packet of {bound}{bytes} B"),
            key: None,
        }
    }
}

/// The option that limits what is in flight: the peer's window, or a smaller send buffer.
pub fn smaller(window: Bytes, send_buffer: Option<Bytes>) -> (&'static str, Bytes) {
    match send_buffer {
        Some(buffer) if buffer < window => ("send-buffer", buffer),
        _ => ("window", window),
    }
}

/// Where a conversation is, and what its endpoints depend on beside their options.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The flow's name, after which random streams are named.
    pub flow: &'a str,
    /// The member of the flow.
    pub member: u32,
    /// Seed of the run.
    pub seed: Seed,
    /// Where the sources are.
    pub near: Address,
    /// Where the sink is.
    pub far: Address,
    /// The smallest MTU of the path, there and back.
    pub mtu: Option<Bytes>,
    /// Priority of the flow's packets.
    pub priority: u16,
    /// Where both ends are, if they are real and their packets are carried by sockets.
    pub network: Option<[IpAddr; 2]>,
}

impl Place<'_> {
    /// What an engine draws, say its initial sequence number: it belongs to this end of this member.
    pub fn bits(&self, end: &str) -> u64 {
        self.stream(end).bits()
    }

    /// Who makes the UDP headers of packets within UDP: the engine, or the sockets that carry them.
    pub fn udp_encapsulation(&self) -> Encapsulation {
        match self.network {
            Some(_) => Encapsulation::UdpPayload,
            None => Encapsulation::Udp,
        }
    }

    /// The random stream of this name.
    pub fn stream(&self, name: &str) -> Stream {
        self.seed.stream(&format!("flow.{}/{}/{name}", self.flow, self.member))
    }
}

/// What the endpoints of a multicast depend on beside that.
pub struct GroupPlace<'a> {
    /// What is sent to this address is for the whole group.
    pub address: Address,
    /// Where the sinks are.
    pub sinks: &'a [Address],
    /// How many of them listen from the beginning.
    pub prompt: u32,
    /// Whether they answer.
    pub reflect: bool,
}

/// Both endpoints of a conversation.
pub struct Pair {
    /// Where the sources are. It opens the conversation.
    pub near: Made,
    /// Where the sink or the reflector is.
    pub far: Made,
}

impl Pair {
    /// Of these endpoints.
    ///
    /// # Errors
    /// The first endpoint's error, or the second's.
    pub fn of<N, F, E>(place: &Place<'_>, near: Result<N, E>, far: Result<F, E>) -> Result<Pair, String>
    where
        N: Endpoint + Send + 'static,
        F: Endpoint + Send + 'static,
        E: fmt::Display,
    {
        let said = |error: E| error.to_string();
        Ok(Pair {
            near: Made::new(place.near, near.map_err(said)?),
            far: Made::new(place.far, far.map_err(said)?),
        })
    }
}

/// The endpoints of one that sends to many.
pub struct Group {
    /// Where the sources are.
    pub near: Made,
    /// What is sent to this address is for the whole group.
    pub address: Address,
    /// Where the sinks are, in their order.
    pub far: Vec<Made>,
}

/// An endpoint, and where it believes itself to be.
pub struct Made {
    /// Its address. Hosts are indices of the experiment's: a driver in real time maps addresses to its sockets.
    pub address: Address,
    /// The endpoint.
    pub endpoint: Box<dyn Endpoint + Send>,
}

impl Made {
    /// An endpoint at this address.
    pub fn new(address: Address, endpoint: impl Endpoint + Send + 'static) -> Made {
        Made { address, endpoint: Box::new(endpoint) }
    }
}

/// The sockets of a transport between real hosts.
#[derive(Clone, Debug, PartialEq)]
pub enum Sockets {
    /// The kernel's UDP is the endpoint.
    Datagrams,
    /// The kernel's streams are.
    Stream(StreamProtocol, TcpOptions),
    /// The endpoints are ours, and these sockets carry their packets.
    Carried(Carrier),
}

/// What carries the packets of endpoints between real hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Sockets of UDP.
    Udp,
    /// Sockets of UDP-Lite.
    UdpLite {
        /// How much of the payload checksums cover; all of it if absent.
        coverage: Option<u16>,
    },
    /// Raw sockets of IP.
    Ip {
        /// The number of the endpoints' protocol.
        protocol: u8,
        /// Whether packets begin with the ports of the source and the destination, by which they are told apart.
        has_ports: bool,
    },
}

/// A protocol of the kernel's with sockets for streams. Linux has them all, if it is built so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamProtocol {
    /// TCP.
    #[default]
    Tcp,
    /// MPTCP (RFC 8684), where the peer speaks it too; otherwise it falls back to TCP.
    Mptcp,
    /// SCTP (RFC 9260), a socket for each association (RFC 6458 section 4). Segments and congestion controls are not chosen.
    Sctp,
}

impl StreamProtocol {
    /// As in experiment files.
    pub const fn name(self) -> &'static str {
        match self {
            StreamProtocol::Tcp => "tcp",
            StreamProtocol::Mptcp => "mptcp",
            StreamProtocol::Sctp => "sctp",
        }
    }
}
