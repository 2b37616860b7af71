//! UDP and UDP-Lite as experiment files name them.

use std::sync::Arc;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Ecn};

use super::{IPV4_HEADER_LENGTH, MAX_MESSAGE, UDP_HEADER_LENGTH, UdpConfig, UdpEndpoint, Variant};
use crate::conversation::Features;
use crate::features;
use crate::kind::{
    Advised, Carrier, FeatureMode, Group, GroupPlace, IPV4_UDP, Made, MessageSize, Packet, Pair, Place,
    Sockets, TransportKind, TransportOptions,
};

/// UDP.
pub const KIND: TransportKind = TransportKind {
    name: "udp",
    doc: "UDP (RFC 768): every message is one datagram. There is no retransmission, flow control or \
          congestion control.",
    parameters: &[
        BUFFER,
        Parameter {
            name: "ecn",
            kind: Kind::Choice(&[
                Choice { name: NOT_ECT, doc: "not ECN-capable: queues drop" },
                Choice { name: "ect0", doc: "ECN-capable: queues may mark instead" },
                Choice { name: "ect1", doc: "ECN-capable and low-latency, L4S (RFC 9331)" },
            ]),
            default: Preset::Text(NOT_ECT),
            doc: "ECN field of the datagrams (RFC 3168 section 5). Queues use it to choose between dropping \
                  and marking, and `dualpi2` to choose one of its queues. The flow itself does not react \
                  to marks. `live` supports `not-ect` only.",
        },
    ],
    features: &features::UDP,
    modes: &[],
    advised: Some(Advised { rank: 0, headers: IPV4_UDP, alike: "udp" }),
    max_message: MAX_MESSAGE as u64,
    options: |values| {
        Arc::new(Udp {
            buffer: values.bytes_if_given("buffer"),
            ecn: match values.text("ecn").as_str() {
                "ect0" => Ecn::Ect0,
                "ect1" => Ecn::Ect1,
                _ => Ecn::NotCapable,
            },
        })
    },
};

/// UDP-Lite.
pub const LITE: TransportKind = TransportKind {
    name: "udp-lite",
    doc: "UDP-Lite (RFC 3828): like UDP, but packets with damage outside the checksum's coverage are \
          delivered instead of dropped, for codecs that tolerate damaged speech. In `live`, the kernel's \
          implementation, where available.",
    parameters: &[
        BUFFER,
        Parameter {
            name: "checksum-coverage",
            kind: Kind::Bytes { min: Bytes(0), max: Bytes(MAX_MESSAGE as u64) },
            default: Preset::Absent,
            doc: "Bytes of each message that the checksum covers, in addition to the header of 8 bytes; the \
                  receiver requires at least the same coverage. The first 40 bytes of a message, or 16 of a \
                  shorter one, are the measurement header: a message in which that is damaged counts as lost. \
                  Without this key, the checksum covers everything.",
        },
    ],
    features: &features::UDP_LITE,
    modes: &[FeatureMode { option: "checksum-coverage = \"8 B\"", features: &features::UDP_LITE_PARTIAL }],
    advised: Some(Advised { rank: 1, headers: IPV4_UDP, alike: "udp" }),
    max_message: MAX_MESSAGE as u64,
    options: |values| {
        Arc::new(UdpLite {
            buffer: values.bytes_if_given("buffer"),
            // At most 65,507.
            coverage: values.bytes_if_given("checksum-coverage").map(|bytes| bytes.count() as u16),
        })
    },
};

const BUFFER: Parameter = Parameter {
    name: "buffer",
    kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
    default: Preset::Absent,
    doc: "Size of the socket buffers (`SO_SNDBUF`, `SO_RCVBUF`). Without this key, 4 MiB in `live`, or as \
          much as the system grants; in `sim`, 64 KiB to send and 208 KiB to receive.",
};

const NOT_ECT: &str = "not-ect";

#[derive(Debug)]
struct Udp {
    buffer: Option<Bytes>,
    ecn: Ecn,
}

impl Udp {
    fn config(&self) -> UdpConfig {
        UdpConfig { ecn: self.ecn, ..buffered(self.buffer) }
    }
}

impl TransportOptions for Udp {
    fn features(&self) -> &'static Features {
        &features::UDP
    }

    fn is_connectionless(&self) -> bool {
        true
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn full_packet(&self, mtu: Bytes) -> Option<Bytes> {
        Some(mtu)
    }

    fn packet(&self, message: &MessageSize<'_>) -> Packet {
        Packet::of_message(message, UDP_HEADER_LENGTH + IPV4_HEADER_LENGTH, "")
    }

    fn pair(&self, place: &Place<'_>) -> Result<Pair, String> {
        Ok(pair(place, self.config()))
    }

    fn group(&self, place: &Place<'_>, group: &GroupPlace<'_>) -> Result<Group, String> {
        let (near, address, config) = (place.near, group.address, self.config());
        let receiver = |at| Made::new(at, UdpEndpoint::in_group(at, address, near, config));
        Ok(Group {
            near: Made::new(near, UdpEndpoint::to_group(near, address, config)),
            address,
            far: group.sinks.iter().copied().map(receiver).collect(),
        })
    }

    fn sockets(&self) -> Sockets {
        Sockets::Datagrams
    }

    fn only_simulated(&self) -> Option<String> {
        let message = "`ecn` of transport `udp` works in `sim` only, because live datagrams are not ECN-capable; omit the key";
        (self.ecn != Ecn::NotCapable).then(|| message.to_owned())
    }

    fn socket_buffer(&self) -> Option<Bytes> {
        self.buffer
    }
}

#[derive(Debug)]
struct UdpLite {
    buffer: Option<Bytes>,
    coverage: Option<u16>,
}

impl TransportOptions for UdpLite {
    fn features(&self) -> &'static Features {
        &features::UDP_LITE
    }

    fn full_packet(&self, mtu: Bytes) -> Option<Bytes> {
        Some(mtu)
    }

    fn packet(&self, message: &MessageSize<'_>) -> Packet {
        Packet::of_message(message, UDP_HEADER_LENGTH + IPV4_HEADER_LENGTH, "")
    }

    fn pair(&self, place: &Place<'_>) -> Result<Pair, String> {
        let config = UdpConfig {
            variant: Variant::Lite { coverage: self.coverage },
            encapsulation: place.udp_encapsulation(),
            ..buffered(self.buffer)
        };
        Ok(pair(place, config))
    }

    fn sockets(&self) -> Sockets {
        Sockets::Carried(Carrier::UdpLite { coverage: self.coverage })
    }

    fn socket_buffer(&self) -> Option<Bytes> {
        self.buffer
    }
}

fn buffered(buffer: Option<Bytes>) -> UdpConfig {
    let mut config = UdpConfig::default();
    if let Some(buffer) = buffer {
        config.send_buffer = buffer.count() as usize;
        config.receive_buffer = buffer.count() as usize;
    }
    config
}

fn pair(place: &Place<'_>, config: UdpConfig) -> Pair {
    let Place { near, far, .. } = *place;
    Pair {
        near: Made::new(near, UdpEndpoint::new(near, far, config)),
        far: Made::new(far, UdpEndpoint::new(far, near, config)),
    }
}
