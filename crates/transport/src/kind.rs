//! The description of a transport: everything that the experiment file, the drivers and the references have to know of
//! it, in one place beside its engine.

use core::any::Any;
use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trunkline_core::schema::{Parameter, Values};
use trunkline_core::{Address, Bytes, Duration, Rate, Seed, Stream};

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
    /// Promises with default options.
    pub features: &'static Features,
    /// Modes that promise something else.
    pub modes: &'static [FeatureMode],
    /// Its place in the advice of `probe`; `None` if that does not measure it.
    pub advised: Option<Advised>,
    /// The largest message in bytes, with the header of a measured message where that stands in front of it.
    pub max_message: u64,
    /// Makes its options from its values.
    pub options: fn(&Values) -> Arc<dyn TransportOptions>,
}

/// A mode of a transport that promises something else than the transport without options.
#[derive(Clone, Copy, Debug)]
pub struct FeatureMode {
    /// The option of an experiment file that selects it.
    pub option: &'static str,
    /// Its promises.
    pub features: &'static Features,
}

/// Facts of a transport for the advice on a connection.
#[derive(Clone, Copy, Debug)]
pub struct Advised {
    /// Of two transports that do equally well, the one with the lower rank is recommended: it asks less of the hosts.
    pub rank: u8,
    /// Bytes of the headers of a packet that carries one message, from the IPv4 header on. Where `live` carries the protocol
    /// over UDP, they include the UDP header.
    pub headers: u32,
    /// The name of the transport that networks treat like this one: its own, or a plainer one.
    pub alike: &'static str,
}

/// Bytes of an IPv4 header, and the same with a UDP header: for [`Advised::headers`].
pub const IPV4: u32 = 20;
/// See [`IPV4`].
pub const IPV4_UDP: u32 = IPV4 + 8;

/// A transport with its options. Every method has a default that suits a plain transport; a kind overrides what is
/// different.
pub trait TransportOptions: Any + fmt::Debug + Send + Sync {
    /// Promises of its service. Single options may promise less: see [`is_reliable`](Self::is_reliable).
    fn features(&self) -> &'static Features;

    /// Its name in messages: `udp`, in quotation marks.
    fn called(&self) -> String {
        format!("`{}`", self.features().name)
    }

    /// Returns true if message boundaries are preserved; a byte stream joins and splits messages.
    fn keeps_messages(&self) -> bool {
        self.features().message_oriented
    }

    /// Returns true if every accepted message is delivered, however late, while the conversation lasts.
    fn is_reliable(&self) -> bool {
        self.features().reliable
    }

    /// Returns true if the sender must wait instead of queueing more than can be sent.
    fn holds_back(&self) -> bool {
        self.features().flow_control || self.features().congestion_control
    }

    /// Returns true if one transmission reaches all sinks, even a single one.
    fn is_multicast(&self) -> bool {
        false
    }

    /// Returns true if its sender needs no peer, and receivers may join and leave at any time.
    fn is_connectionless(&self) -> bool {
        false
    }

    /// Returns true if all members of a flow share one conversation, as they would share a host's socket; otherwise each
    /// member has its own.
    fn is_shared(&self) -> bool {
        false
    }

    /// The most that one end of a conversation holds in buffers of our engines: data that waits to be sent or
    /// acknowledged, and data that waits to be read. Buffers of the kernel's sockets do not count.
    fn buffers(&self) -> Bytes {
        Bytes::ZERO
    }

    /// Maximum time that a message waits for room at the sender before it is counted as refused; `None` for no limit.
    fn send_timeout(&self) -> Option<Duration> {
        None
    }

    /// The option that limits how much a conversation may have in flight, with the limit: the smaller of its peer's window
    /// and its own send buffer. `None` where nothing, or only the engine, sets one.
    fn in_flight(&self) -> Option<(&'static str, Bytes)> {
        None
    }

    /// The same in `sim`, where a profile sets what a kernel decides on real sockets.
    fn in_flight_in_sim(&self) -> Option<(&'static str, Bytes)> {
        self.in_flight()
    }

    /// The largest packet of a transport whose `window` counts blocks: a block with its trailer.
    fn largest_block(&self) -> Option<Bytes> {
        None
    }

    /// The largest window that it can announce, if it is without window scaling.
    fn largest_window(&self) -> Option<Bytes> {
        None
    }

    /// The whole segments in which it announces a window of that size, where the path carries `mtu`: how many, and the bytes
    /// that each carries. `None` where it announces every byte, or that is not known.
    fn whole_segments(&self, _window: Bytes, _mtu: Bytes) -> Option<(u64, Bytes)> {
        None
    }

    /// The `window` of such a transport, in blocks.
    fn window_in_blocks(&self) -> Option<u64> {
        None
    }

    /// True if filling its window takes two round trips, since acknowledgements are requested as it begins to be filled.
    fn takes_two_round_trips(&self) -> bool {
        false
    }

    /// Its own rate control, where the path carries `mtu`: the rate, the data of a burst, and the most data in a packet.
    fn rate_control(&self, _mtu: Bytes) -> Option<(Rate, Bytes, Bytes)> {
        None
    }

    /// The bytes of a message, at least, that fill a packet where the path carries `mtu`; `None` if that is not known.
    fn full_packet(&self, _mtu: Bytes) -> Option<Bytes> {
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

/// Requirements of a flow.
pub struct FlowNeeds<'a> {
    /// The name of the source.
    pub source: &'a str,
    /// True if the source waits for replies, and would wait forever for a lost one.
    pub repair: bool,
    /// True if the source sends as fast as the transport allows.
    pub backpressure: bool,
    /// True if an `interval` could limit its rate instead.
    pub has_interval: bool,
    /// True if messages have no header, so that all of them must arrive, in order.
    pub headerless: bool,
    /// True if sinks reply.
    pub reflect: bool,
    /// Number of sinks.
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

/// A conflict, and the key that causes it.
#[derive(Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The transport's key; the transport as a whole if it is not in the file.
    pub key: String,
    /// The conflict, and its remedy.
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
    /// True if sizes vary: smaller messages may pass.
    pub varies: bool,
    /// True for messages from a sink to the source.
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
        /// The cause of the size, as the beginning of a sentence.
        what: String,
        /// The key that causes it; the source if there is none.
        key: Option<&'static str>,
    },
    /// The message is too large for the transport.
    TooLarge {
        /// The sentence for the user.
        message: String,
        /// The key that causes it; the source if there is none.
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

/// The environment of a conversation: all that its endpoints depend on, besides their options.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The flow's name, after which random streams are named.
    pub flow: &'a str,
    /// The member of the flow.
    pub member: u32,
    /// Seed of the run.
    pub seed: Seed,
    /// Address of the sources' host.
    pub near: Address,
    /// Address of the sink's host.
    pub far: Address,
    /// The smallest MTU of the path, there and back.
    pub mtu: Option<Bytes>,
    /// Priority of the flow's packets.
    pub priority: u16,
    /// IP addresses of both ends, if they are real hosts and sockets carry their packets.
    pub network: Option<[IpAddr; 2]>,
}

impl Place<'_> {
    /// Random bits for an engine, such as for its initial sequence number, of this end of this member.
    pub fn bits(&self, end: &str) -> u64 {
        self.stream(end).bits()
    }

    /// Origin of the UDP headers of packets within UDP: the engine, or the sockets that carry the packets.
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

/// The environment of a multicast, in addition to a [`Place`].
pub struct GroupPlace<'a> {
    /// Packets to this address are for the whole group.
    pub address: Address,
    /// Addresses of the sinks.
    pub sinks: &'a [Address],
    /// Number of sinks that listen from the start.
    pub prompt: u32,
    /// True if sinks reply.
    pub reflect: bool,
}

/// Both endpoints of a conversation.
pub struct Pair {
    /// The sources' end, which opens the conversation.
    pub near: Made,
    /// The end of the sink or the reflector.
    pub far: Made,
}

impl Pair {
    /// A pair of these endpoints.
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
    /// The sources' end.
    pub near: Made,
    /// Packets to this address are for the whole group.
    pub address: Address,
    /// The sinks' ends, in their order.
    pub far: Vec<Made>,
}

/// An endpoint with its address.
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

/// Carrier of the endpoints' packets between real hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Sockets of UDP.
    Udp,
    /// Sockets of UDP-Lite.
    UdpLite {
        /// Bytes of the payload that checksums cover; all of it if absent.
        coverage: Option<u16>,
    },
    /// Raw sockets of IP.
    Ip {
        /// The number of the endpoints' protocol.
        protocol: u8,
        /// True if packets begin with the ports of source and destination, which identify the conversation.
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
