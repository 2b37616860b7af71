//! SCTP as experiment files name it.

use std::sync::Arc;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter, Value};
use trunkline_core::{Bytes, Duration};

use super::{Encapsulation, MAX_MESSAGE, MIN_PACKET, Reliability, SctpConfig, SctpEndpoint};
use crate::conversation::Features;
use crate::features;
use crate::kind::{
    Advised, Carrier, Conflict, FeatureMode, FlowNeeds, IPV4_UDP, MessageSize, Packet, Pair, Place, Sockets,
    StreamProtocol, TransportKind, TransportOptions, WHOLE, Written, smaller,
};
use crate::tcp::TcpOptions;

/// SCTP's protocol number in IP (IANA).
const IP_PROTOCOL: u8 = 132;

const ONE_TO_MANY: &str = "one-to-many";
const KERNEL: &str = "kernel";

/// SCTP.
pub const KIND: TransportKind = TransportKind {
    name: "sctp",
    doc: "SCTP (RFC 9260). Message boundaries are preserved; large messages are fragmented. Links on the \
          path must carry packets of 576 bytes. A message may be up to half the window, and at most 128 \
          KiB. Several streams, `ordered`, `lifetime` and `retransmissions` change the guarantees. After \
          10 retransmissions or heartbeats without an answer, the association ends.",
    parameters: &[
        Parameter {
            name: "style",
            kind: Kind::Choice(&[
                Choice { name: "one-to-one", doc: "each member has its own socket and association" },
                Choice {
                    name: ONE_TO_MANY,
                    doc: "all members share one socket at each end, and therefore one association",
                },
            ]),
            default: Preset::Text("one-to-one"),
            doc: "Socket style (RFC 6458; SCTP 1 and SCTP 2 of Schiavoni and Queiroz 2013). A one-to-many \
                  socket has one association per peer. All members of a flow have the same peer, so they \
                  share its buffers and congestion window, and a loss delays all of them, unless messages \
                  are unordered or use several streams. With one member, both styles send the same \
                  packets.",
        },
        Parameter {
            name: "streams",
            kind: Kind::Integer { min: 1, max: 65_535 },
            default: Preset::Text("1"),
            doc: "Number of streams, used in turn. A loss delays only the messages of its stream.",
        },
        Parameter {
            name: "ordered",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Whether the messages of a stream are delivered in the order of sending. Otherwise, each \
                  message is delivered when it is complete.",
        },
        Parameter {
            name: "lifetime",
            kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(3600) },
            default: Preset::Absent,
            doc: "Time after sending for which a message is retransmitted (partial reliability, RFC 3758); \
                  then it is abandoned and lost. Without this key and `retransmissions`, messages are \
                  retransmitted until they arrive.",
        },
        Parameter {
            name: "retransmissions",
            kind: Kind::Integer { min: 0, max: 1000 },
            default: Preset::Absent,
            doc: "Maximum number of retransmissions of a message before it is abandoned (partial \
                  reliability, RFC 7496). Excludes `lifetime`.",
        },
        Parameter {
            name: "window",
            kind: Kind::Bytes { min: Bytes(8 << 10), max: Bytes(1 << 30) },
            default: Preset::Text("256 KiB"),
            doc: "Receive window.",
        },
        Parameter {
            name: "send-buffer",
            kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
            default: Preset::Absent,
            doc: "Size of the send buffer, which holds data until it is acknowledged. Without this key, the \
                  size of the window.",
        },
        Parameter {
            name: "send-timeout",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
            default: Preset::Absent,
            doc: "Maximum time that a message waits for room in the send buffer before it is counted as \
                  refused (Schiavoni and Queiroz 2013: 40 ms). Without this key, there is no limit.",
        },
        Parameter {
            name: "encapsulation",
            kind: Kind::Choice(&[
                Choice { name: "ip", doc: "IP protocol 132; in `live`, through raw sockets" },
                Choice { name: "udp", doc: "UDP (RFC 6951): 8 bytes more per packet" },
            ]),
            default: Preset::Text("ip"),
            doc: "Encapsulation of the packets.",
        },
        Parameter {
            name: "engine",
            kind: Kind::Choice(&[
                Choice { name: "own", doc: "the engine of Trunkline, as in `sim`" },
                Choice {
                    name: KERNEL,
                    doc: "the operating system's (`IPPROTO_SCTP`), where available, with its own timers and \
                          buffers",
                },
            ]),
            default: Preset::Text("own"),
            doc: "Implementation of SCTP in `live`; `sim` always uses Trunkline's. The kernel's is reliable \
                  and ordered, with one stream, over IP, and one association per member; `window` sets \
                  its `SO_RCVBUF` and `SO_SNDBUF`.",
        },
    ],
    features: &features::SCTP,
    modes: &[
        FeatureMode { option: "ordered = false", features: &features::SCTP_UNORDERED },
        FeatureMode { option: "retransmissions = 0", features: &features::SCTP_PARTIAL },
    ],
    // Common header and a DATA chunk (RFC 9260), over UDP (RFC 6951).
    advised: Some(Advised { rank: 4, headers: IPV4_UDP + 12 + 16, alike: "sctp" }),
    max_message: MAX_MESSAGE as u64,
    options: |values| {
        Arc::new(Sctp {
            is_shared: values.text("style") == ONE_TO_MANY,
            // At most 65,535.
            streams: values.integer("streams") as u16,
            ordered: values.flag("ordered"),
            reliability: match (
                values.duration_if_given("lifetime"),
                values.integer_if_given("retransmissions"),
            ) {
                (Some(lifetime), _) => Reliability::Lifetime(lifetime),
                // At most 1000.
                (None, Some(count)) => Reliability::Retransmissions(count as u16),
                (None, None) => Reliability::Full,
            },
            window: values.bytes("window"),
            send_buffer: values.bytes_if_given("send-buffer"),
            send_timeout: values.duration_if_given("send-timeout"),
            encapsulation: match values.text("encapsulation").as_str() {
                "udp" => Encapsulation::Udp,
                _ => Encapsulation::Ip,
            },
            is_kernels: values.text("engine") == KERNEL,
        })
    },
};

#[derive(Debug)]
struct Sctp {
    is_shared: bool,
    streams: u16,
    ordered: bool,
    reliability: Reliability,
    window: Bytes,
    send_buffer: Option<Bytes>,
    send_timeout: Option<Duration>,
    encapsulation: Encapsulation,
    is_kernels: bool,
}

impl Sctp {
    /// The option by which it gives messages up.
    fn gives_up(&self) -> Option<&'static str> {
        match self.reliability {
            Reliability::Full => None,
            Reliability::Lifetime(_) => Some("lifetime"),
            Reliability::Retransmissions(_) => Some("retransmissions"),
        }
    }

    /// The option by which its messages overtake each other.
    fn overtakes(&self) -> Option<&'static str> {
        let all = [("ordered", !self.ordered), ("streams", self.streams > 1)];
        all.into_iter().find_map(|(key, does)| does.then_some(key))
    }

    /// Packets are as large as the path carries. Paths that carry too little are refused when the file is read.
    fn config(&self, mtu: Option<Bytes>) -> SctpConfig {
        let defaults = SctpConfig::default();
        SctpConfig {
            streams: self.streams,
            ordered: self.ordered,
            reliability: self.reliability,
            window: self.window.count() as usize,
            // A sender that can just fill its peer's window: more would only add delay before the network.
            send_buffer: self.send_buffer.unwrap_or(self.window).count() as usize,
            max_packet: mtu.map_or(defaults.max_packet, |mtu| mtu.count().clamp(576, 65_535) as usize),
            encapsulation: self.encapsulation,
            ..defaults
        }
    }
}

impl TransportOptions for Sctp {
    fn features(&self) -> &'static Features {
        &features::SCTP
    }

    fn is_reliable(&self) -> bool {
        self.reliability == Reliability::Full
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn buffers(&self) -> Bytes {
        let sent = self.send_buffer.unwrap_or(self.window);
        Bytes(sent.count().saturating_add(self.window.count()))
    }

    fn send_timeout(&self) -> Option<Duration> {
        self.send_timeout
    }

    fn in_flight(&self) -> Option<(&'static str, Bytes)> {
        Some(smaller(self.window, self.send_buffer))
    }

    fn check(&self, written: &Written<'_>) -> Vec<Conflict> {
        let given = |key: &str| *written.values.value(key) != Value::Absent;
        let mut conflicts = Vec::new();
        if given("lifetime") && given("retransmissions") {
            let message = "a message has either a `lifetime` or a number of `retransmissions`; leave one out";
            conflicts.push(Conflict::new("retransmissions", message));
        }
        let shares = self.is_shared.then_some("style");
        let within_udp = (self.encapsulation == Encapsulation::Udp).then_some("encapsulation");
        let buffer = self.send_buffer.and(Some("send-buffer"));
        let of_ours = self.gives_up().or(self.overtakes()).or(shares).or(within_udp).or(buffer);
        if let Some(key) = of_ours.filter(|_| self.is_kernels) {
            let message = format!("`engine = \"kernel\"` has no `{key}` to choose; leave one of them out");
            conflicts.push(Conflict::new(key, message));
        }
        conflicts
    }

    fn check_use(&self, flow: &FlowNeeds<'_>) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        if let Some(key) = self.gives_up().or(self.overtakes()).filter(|_| flow.headerless) {
            let message = format!("without a header every message must arrive in order; omit `{key}`");
            conflicts.push(Conflict::new(key, message));
        }
        if let Some(key) = self.gives_up().filter(|_| flow.repair) {
            let message = flow.would_wait("a reply were lost", &format!("omit `{key}`"));
            conflicts.push(Conflict::new(key, message));
        }
        conflicts
    }

    fn packet(&self, message: &MessageSize<'_>) -> Packet {
        let MessageSize { noun, size, whole, varies, .. } = *message;
        let most = self.config(None).max_message() as u64;
        // Where sizes vary, some messages may pass; those that do not are refused as too large.
        if !self.is_kernels && !varies && whole > most {
            let (half, key) = match most < MAX_MESSAGE as u64 {
                true => (", half of its `window`", Some("window")),
                false => ("", None),
            };
            let message = format!(
                "{noun} of {size} B is too large for `sctp`, which takes messages of up to {most} B{half}"
            );
            return Packet::TooLarge { message, key };
        }
        Packet::Needs {
            bytes: MIN_PACKET as u64,
            what: format!("SCTP needs packets of {MIN_PACKET} B"),
            key: Some(WHOLE),
        }
    }

    fn pair(&self, place: &Place<'_>) -> Result<Pair, String> {
        let (Place { near, far, .. }, config) = (*place, self.config(place.mtu));
        Pair::of(
            place,
            SctpEndpoint::connect(near, far, &config, place.bits("sctp/near")),
            SctpEndpoint::listen(far, &config, place.bits("sctp/far")),
        )
    }

    fn sockets(&self) -> Sockets {
        match self.encapsulation {
            _ if self.is_kernels => {
                let options = TcpOptions {
                    window: Some(self.window),
                    send_timeout: self.send_timeout,
                    ..TcpOptions::default()
                };
                Sockets::Stream(StreamProtocol::Sctp, options)
            }
            Encapsulation::Ip => Sockets::Carried(Carrier::Ip { protocol: IP_PROTOCOL, has_ports: true }),
            Encapsulation::Udp => Sockets::Carried(Carrier::Udp),
        }
    }
}
