//! DCCP as experiment files name it.

use std::sync::Arc;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Limit, Parameter};
use trunkline_core::{Bytes, Duration};

use super::{Ccid, DccpConfig, DccpEndpoint, Encapsulation, HEADERS, IP_PROTOCOL, WhenFull};
use crate::conversation::Features;
use crate::features;
use crate::kind::{
    Advised, Carrier, Conflict, FeatureMode, FlowNeeds, IPV4_UDP, MessageSize, Packet, Pair, Place, Sockets,
    TransportKind, TransportOptions,
};
use crate::udp::IPV4_HEADER_LENGTH;

/// Bytes of the largest IP packet.
const LARGEST_PACKET: u64 = 65_535;

/// DCCP.
pub const KIND: TransportKind = TransportKind {
    name: "dccp",
    doc: "DCCP (RFC 4340), one connection per member. Every message is one packet, sent at the rate that \
          congestion control allows, without retransmission. Messages wait for congestion control in the \
          send queue, where they are dropped and counted if they wait too long or find it full.",
    parameters: &[
        Parameter {
            name: "congestion-control",
            kind: Kind::Choice(&[
                Choice { name: "ccid-2", doc: "window-based, like TCP (RFC 4341)" },
                Choice { name: "ccid-3", doc: "smooth and rate-based: TFRC (RFC 4342, RFC 5348)" },
                Choice { name: "ccid-4", doc: "TFRC for the small packets of voice (RFC 5622)" },
            ]),
            default: Preset::Text("ccid-2"),
            doc: "Congestion control, in both directions.",
        },
        Parameter {
            name: "send-queue",
            kind: Kind::Limit,
            default: Preset::Text("64 KiB"),
            doc: "Maximum number of messages, or of their bytes, that wait for congestion control. One \
                  message may always wait.",
        },
        Parameter {
            name: "when-full",
            kind: Kind::Choice(&[
                Choice { name: "refuse", doc: "the application waits" },
                Choice { name: "drop-newest", doc: "the message is dropped" },
                Choice { name: "drop-oldest", doc: "the oldest messages are dropped until it fits" },
            ]),
            default: Preset::Text("refuse"),
            doc: "Action for a message that finds the send queue full.",
        },
        Parameter {
            name: "lifetime",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
            default: Preset::Absent,
            doc: "Maximum time in the send queue; an older message is dropped. Without this key, there is no \
                  limit.",
        },
        Parameter {
            name: "encapsulation",
            kind: Kind::Choice(&[
                Choice { name: "ip", doc: "directly over IP, protocol 33; in `live`, through raw sockets" },
                Choice { name: "udp", doc: "within UDP (RFC 6773): 8 bytes more per packet" },
            ]),
            default: Preset::Text("ip"),
            doc: "Encapsulation of the packets.",
        },
        Parameter {
            name: "checksum-coverage",
            kind: Kind::Bytes { min: Bytes(0), max: Bytes(56) },
            default: Preset::Absent,
            doc: "Bytes of each message that the checksum covers (RFC 4340 section 9.2), rounded up to a \
                  multiple of 4; damage beyond them is delivered. The first 40 bytes of a message, or 16 of a \
                  shorter one, are the measurement header: a message in which that is damaged counts as lost. \
                  Without this key, and always over UDP, the checksum covers \
                  everything.",
        },
        Parameter {
            name: "data-checksum",
            kind: Kind::Flag,
            default: Preset::Text("false"),
            doc: "Whether a CRC-32c of each message is sent with it (RFC 4340 section 9.3). Messages with \
                  damage that the checksum does not cover are then dropped.",
        },
        Parameter {
            name: "short-sequence-numbers",
            kind: Kind::Flag,
            default: Preset::Text("false"),
            doc: "Whether sequence numbers have 24 bits instead of 48 (RFC 4340 section 7.6), which saves 4 \
                  or 8 bytes per packet.",
        },
        Parameter {
            name: "ecn",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Whether queues may mark packets instead of dropping them. The sender reacts to marks as to \
                  losses (RFC 4340 section 12).",
        },
    ],
    features: &features::DCCP,
    modes: &[FeatureMode { option: "checksum-coverage = \"8 B\"", features: &features::DCCP_PARTIAL }],
    // Generic header with 48-bit numbers and the acknowledgement's (RFC 4340 sections 5.1, 5.3), over UDP (RFC 6773).
    advised: Some(Advised { rank: 2, headers: IPV4_UDP + 24, alike: "dccp" }),
    max_message: LARGEST_PACKET - (HEADERS + IPV4_HEADER_LENGTH) as u64,
    options: |values| {
        Arc::new(Dccp {
            // The words are those of the choices.
            ccid: values.text("congestion-control").parse().unwrap_or_default(),
            send_queue: values.limit("send-queue"),
            when_full: values.text("when-full").parse().unwrap_or_default(),
            lifetime: values.duration_if_given("lifetime"),
            encapsulation: match values.text("encapsulation").as_str() {
                "udp" => Encapsulation::Udp,
                _ => Encapsulation::Ip,
            },
            checksum_coverage: values.bytes_if_given("checksum-coverage"),
            data_checksum: values.flag("data-checksum"),
            short_sequence_numbers: values.flag("short-sequence-numbers"),
            ecn: values.flag("ecn"),
        })
    },
};

#[derive(Debug)]
struct Dccp {
    ccid: Ccid,
    send_queue: Limit,
    when_full: WhenFull,
    lifetime: Option<Duration>,
    encapsulation: Encapsulation,
    checksum_coverage: Option<Bytes>,
    data_checksum: bool,
    short_sequence_numbers: bool,
    ecn: bool,
}

impl Dccp {
    /// Packets are as large as the path carries.
    fn config(&self, place: &Place<'_>) -> DccpConfig {
        // A coverage of n stands for 4 (n - 1) bytes.
        let coverage = self.checksum_coverage.map_or(0, |bytes| 1 + bytes.count().div_ceil(4).min(14) as u8);
        DccpConfig {
            ccid: self.ccid,
            send_queue: self.send_queue,
            when_full: self.when_full,
            lifetime: self.lifetime,
            max_packet: place.mtu.map_or(1500, |mtu| mtu.count().clamp(576, LARGEST_PACKET) as usize),
            encapsulation: match self.encapsulation {
                Encapsulation::Udp if place.network.is_some() => Encapsulation::UdpPayload,
                encapsulation => encapsulation,
            },
            addresses: place.network,
            checksum_coverage: coverage,
            min_checksum_coverage: coverage,
            data_checksum: self.data_checksum,
            short_sequence_numbers: self.short_sequence_numbers,
            ecn: self.ecn,
            ..DccpConfig::default()
        }
    }
}

impl TransportOptions for Dccp {
    fn features(&self) -> &'static Features {
        &features::DCCP
    }

    fn buffers(&self) -> Bytes {
        match self.send_queue {
            Limit::Bytes(bytes) => bytes,
            Limit::Packets(packets) => Bytes(packets.saturating_mul(LARGEST_PACKET)),
        }
    }

    fn check_use(&self, flow: &FlowNeeds<'_>) -> Vec<Conflict> {
        if !flow.backpressure || self.when_full == WhenFull::Refuse {
            return Vec::new();
        }
        let instead = match flow.has_interval {
            true => "leave `when-full` out or give the source an `interval`",
            false => "leave `when-full` out",
        };
        vec![Conflict::new("when-full", flow.not_held_back("this one takes all and drops it", instead))]
    }

    fn full_packet(&self, mtu: Bytes) -> Option<Bytes> {
        Some(mtu)
    }

    fn packet(&self, message: &MessageSize<'_>) -> Packet {
        Packet::of_message(message, HEADERS + self.encapsulation.overhead(), "up to ")
    }

    fn pair(&self, place: &Place<'_>) -> Result<Pair, String> {
        let (Place { near, far, .. }, config) = (*place, self.config(place));
        Pair::of(
            place,
            DccpEndpoint::connect(near, far, &config, place.bits("dccp/near")),
            DccpEndpoint::listen(far, &config, place.bits("dccp/far")),
        )
    }

    fn sockets(&self) -> Sockets {
        Sockets::Carried(match self.encapsulation {
            Encapsulation::Ip => Carrier::Ip { protocol: IP_PROTOCOL, has_ports: true },
            _ => Carrier::Udp,
        })
    }
}
