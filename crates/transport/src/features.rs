//! What each transport promises, whoever implements it: the feature table of Schiavoni and Queiroz (2013, Table 1).

use crate::conversation::Features;
use crate::kind::{FeatureMode, TransportKind};

/// UDP (RFC 768).
pub const UDP: Features = Features {
    name: "udp",
    message_oriented: true,
    connection_oriented: false,
    full_duplex: true,
    reliable: false,
    ordered: false,
    flow_control: false,
    congestion_control: false,
    multicast: true,
    fragmentation: false,
    path_mtu_discovery: false,
    checksum: true,
};

/// UDP-Lite (RFC 3828), whose checksum covers everything unless less is chosen.
pub const UDP_LITE: Features = Features { name: "udp-lite", multicast: false, ..UDP };

/// UDP-Lite whose checksum covers a part of the payload: damage of the rest is delivered.
pub const UDP_LITE_PARTIAL: Features = Features { checksum: false, ..UDP_LITE };

/// TCP (RFC 9293). A byte stream: it splits and joins what it is given, so messages need the framing of
/// [`framing`](crate::framing).
pub const TCP: Features = Features {
    name: "tcp",
    message_oriented: false,
    connection_oriented: true,
    full_duplex: true,
    reliable: true,
    ordered: true,
    flow_control: true,
    congestion_control: true,
    multicast: false,
    fragmentation: true,
    path_mtu_discovery: false,
    checksum: true,
};

/// Multipath TCP (RFC 8684): TCP to whoever uses it.
pub const MPTCP: Features = Features { name: "mptcp", ..TCP };

/// URP (Fraser and Marshall 1989). A byte stream as well. That damage is found is the work of the virtual circuit below it,
/// for which the endpoint stands in.
pub const URP: Features = Features {
    name: "urp",
    message_oriented: false,
    connection_oriented: true,
    full_duplex: true,
    reliable: true,
    ordered: true,
    flow_control: true,
    congestion_control: false,
    multicast: false,
    fragmentation: true,
    path_mtu_discovery: false,
    checksum: true,
};

/// XTP 4.0 (XTP Forum 1995), its unicast stream as it is by default. What is chosen otherwise changes what it promises:
/// without error control it is not reliable, NOFLOW is without flow control, NOCHECK leaves data unchecked, and its
/// datagrams, transactions and multicast streams are other services.
pub const XTP: Features = Features {
    name: "xtp",
    message_oriented: false,
    connection_oriented: true,
    full_duplex: true,
    reliable: true,
    ordered: true,
    flow_control: true,
    congestion_control: false,
    multicast: false,
    fragmentation: true,
    path_mtu_discovery: false,
    checksum: true,
};

/// XTP's stream without error control: gaps stay, and what follows them is delivered.
pub const XTP_UNREPAIRED: Features = Features { reliable: false, ..XTP };

/// XTP's stream without flow control (NOFLOW).
pub const XTP_UNHINDERED: Features = Features { flow_control: false, ..XTP };

/// XTP's stream with a checksum of headers only (NOCHECK).
pub const XTP_UNCHECKED: Features = Features { checksum: false, ..XTP };

/// XTP's unacknowledged datagrams: every message is one packet.
pub const XTP_DATAGRAM: Features = Features {
    message_oriented: true,
    connection_oriented: false,
    full_duplex: true,
    reliable: false,
    ordered: false,
    flow_control: false,
    fragmentation: false,
    ..XTP
};

/// XTP's acknowledged datagrams, each repeated by itself.
pub const XTP_ACKNOWLEDGED_DATAGRAM: Features = Features { reliable: true, ..XTP_DATAGRAM };

/// XTP's transactions: requests and their answers, which do not wait for each other.
pub const XTP_TRANSACTION: Features = Features {
    message_oriented: true,
    connection_oriented: false,
    full_duplex: false,
    ordered: false,
    ..XTP
};

/// XTP's unacknowledged multicast: a byte stream with gaps.
pub const XTP_MULTICAST: Features = Features {
    connection_oriented: false,
    full_duplex: false,
    reliable: false,
    flow_control: false,
    multicast: true,
    ..XTP
};

/// XTP's reliable multicast: what any of the receivers misses is repeated, and the slowest of them sets the pace.
pub const XTP_RELIABLE_MULTICAST: Features = Features { full_duplex: false, multicast: true, ..XTP };

/// DCCP (RFC 4340). Unreliable as UDP, at a rate that the network bears.
pub const DCCP: Features = Features {
    name: "dccp",
    message_oriented: true,
    connection_oriented: true,
    full_duplex: true,
    reliable: false,
    ordered: false,
    flow_control: false,
    congestion_control: true,
    multicast: false,
    fragmentation: false,
    path_mtu_discovery: false,
    checksum: true,
};

/// DCCP with partial checksum coverage: damage of what is not covered is delivered.
pub const DCCP_PARTIAL: Features = Features { checksum: false, ..DCCP };

/// RTP (RFC 3550) over UDP. Packets are handed on as they come, the later ones of two that changed places first; duplicates
/// are not. Reports tell the sender of congestion, but nothing here reacts to them.
pub const RTP: Features = Features {
    name: "rtp",
    message_oriented: true,
    connection_oriented: false,
    full_duplex: true,
    reliable: false,
    ordered: false,
    flow_control: false,
    congestion_control: false,
    multicast: false,
    fragmentation: false,
    path_mtu_discovery: false,
    checksum: true,
};

/// SCTP (RFC 9260), as an association of one stream is by default.
pub const SCTP: Features = Features {
    name: "sctp",
    message_oriented: true,
    connection_oriented: true,
    full_duplex: true,
    reliable: true,
    ordered: true,
    flow_control: true,
    congestion_control: true,
    multicast: false,
    fragmentation: true,
    path_mtu_discovery: false,
    checksum: true,
};

/// SCTP where messages overtake each other: unordered, or on several streams.
pub const SCTP_UNORDERED: Features = Features { ordered: false, ..SCTP };

/// SCTP with partial reliability (RFC 3758): a message may be given up.
pub const SCTP_PARTIAL: Features = Features { reliable: false, ..SCTP };

/// Both.
pub const SCTP_PARTIAL_UNORDERED: Features = Features { ordered: false, ..SCTP_PARTIAL };

/// QUIC (RFC 9000) with all messages on one stream: a byte stream, as TCP.
pub const QUIC: Features = Features {
    name: "quic",
    message_oriented: false,
    connection_oriented: true,
    full_duplex: true,
    reliable: true,
    ordered: true,
    flow_control: true,
    congestion_control: true,
    multicast: false,
    fragmentation: true,
    path_mtu_discovery: false,
    checksum: true,
};

/// QUIC with a stream for every message: each arrives whole, whatever becomes of the others.
pub const QUIC_STREAMS: Features = Features { message_oriented: true, ordered: false, ..QUIC };

/// QUIC with datagrams (RFC 9221): unreliable as UDP, at a rate that the network bears.
pub const QUIC_DATAGRAMS: Features =
    Features { reliable: false, flow_control: false, fragmentation: false, ..QUIC_STREAMS };

/// A column of the table: its name, and whether a transport has it.
pub type Column = (&'static str, fn(&Features) -> bool);

/// What the table says of each transport, in the table's order.
pub const FEATURES: [Column; 11] = [
    ("message oriented", |f| f.message_oriented),
    ("connection oriented", |f| f.connection_oriented),
    ("full duplex", |f| f.full_duplex),
    ("reliable", |f| f.reliable),
    ("ordered", |f| f.ordered),
    ("flow control", |f| f.flow_control),
    ("congestion control", |f| f.congestion_control),
    ("multicast", |f| f.multicast),
    ("fragmentation", |f| f.fragmentation),
    ("path MTU discovery", |f| f.path_mtu_discovery),
    ("checksum", |f| f.checksum),
];

/// The table of these transports: a row for each and for each of its modes, which has the option that selects it, or none.
pub fn table(transports: &[&'static TransportKind]) -> Vec<FeatureMode> {
    let rows = |kind: &&'static TransportKind| {
        core::iter::once(FeatureMode { option: "", features: kind.features })
            .chain(kind.modes.iter().copied())
    };
    transports.iter().flat_map(rows).collect()
}
