//! What each transport promises, whoever implements it: the rows of the feature table.

use crate::conversation::Features;

/// UDP (RFC 768).
pub const UDP: Features = Features {
    name: "udp",
    message_oriented: true,
    connection_oriented: false,
    reliable: false,
    ordered: false,
    flow_control: false,
    congestion_control: false,
    multicast: false,
    fragmentation: false,
    checksum: true,
};

/// UDP-Lite (RFC 3828). What its checksum covers is chosen; by default that is everything.
pub const UDP_LITE: Features = Features { name: "udp-lite", ..UDP };

/// TCP (RFC 9293). A byte stream: it splits and joins what it is given, so messages need the framing of
/// [`framing`](crate::framing).
pub const TCP: Features = Features {
    name: "tcp",
    message_oriented: false,
    connection_oriented: true,
    reliable: true,
    ordered: true,
    flow_control: true,
    congestion_control: true,
    multicast: false,
    fragmentation: true,
    checksum: true,
};

/// Multipath TCP (RFC 8684): TCP to whoever uses it.
pub const MPTCP: Features = Features { name: "mptcp", ..TCP };

/// URP (Fraser and Marshall 1989). A byte stream as well. It counts the bytes of a block but does not check them: that is
/// for the frames of the trunks below.
pub const URP: Features = Features {
    name: "urp",
    message_oriented: false,
    connection_oriented: true,
    reliable: true,
    ordered: true,
    flow_control: true,
    congestion_control: false,
    multicast: false,
    fragmentation: true,
    checksum: false,
};

/// XTP 4.0 (XTP Forum 1995), its unicast stream as it is by default. What is chosen otherwise changes what it promises:
/// without error control it is not reliable, NOFLOW is without flow control, NOCHECK leaves data unchecked, and its
/// datagrams, transactions and multicast streams are other services.
pub const XTP: Features = Features {
    name: "xtp",
    message_oriented: false,
    connection_oriented: true,
    reliable: true,
    ordered: true,
    flow_control: true,
    congestion_control: false,
    multicast: false,
    fragmentation: true,
    checksum: true,
};

/// DCCP (RFC 4340). Unreliable as UDP, at a rate that the network bears.
pub const DCCP: Features = Features {
    name: "dccp",
    message_oriented: true,
    connection_oriented: true,
    reliable: false,
    ordered: false,
    flow_control: false,
    congestion_control: true,
    multicast: false,
    fragmentation: false,
    checksum: true,
};

/// RTP (RFC 3550) over UDP. Packets are handed on as they come, the later ones of two that changed places first; duplicates
/// are not. Reports tell the sender of congestion, but nothing here reacts to them.
pub const RTP: Features = Features {
    name: "rtp",
    message_oriented: true,
    connection_oriented: false,
    reliable: false,
    ordered: false,
    flow_control: false,
    congestion_control: false,
    multicast: false,
    fragmentation: false,
    checksum: true,
};

/// SCTP (RFC 9260), as an association of one stream is by default. With several streams, or unordered, messages overtake
/// each other; with partial reliability (RFC 3758) a message may be given up.
pub const SCTP: Features = Features {
    name: "sctp",
    message_oriented: true,
    connection_oriented: true,
    reliable: true,
    ordered: true,
    flow_control: true,
    congestion_control: true,
    multicast: false,
    fragmentation: true,
    checksum: true,
};

/// QUIC (RFC 9000) with all messages on one stream: a byte stream, as TCP.
pub const QUIC: Features = Features {
    name: "quic",
    message_oriented: false,
    connection_oriented: true,
    reliable: true,
    ordered: true,
    flow_control: true,
    congestion_control: true,
    multicast: false,
    fragmentation: true,
    checksum: true,
};

/// QUIC with a stream for every message: each arrives whole, whatever becomes of the others.
pub const QUIC_STREAMS: Features = Features { message_oriented: true, ordered: false, ..QUIC };

/// QUIC with datagrams (RFC 9221): unreliable as UDP, at a rate that the network bears.
pub const QUIC_DATAGRAMS: Features =
    Features { reliable: false, flow_control: false, fragmentation: false, ..QUIC_STREAMS };

/// All of them.
pub const ALL: &[&Features] = &[&UDP, &TCP, &URP, &DCCP, &XTP, &RTP, &SCTP];
