//! A made-up transport that no other crate knows: with it, tests show that a transport is one entry of the registry.

use std::sync::Arc;

use trunkline_core::Bytes;
use trunkline_core::schema::{Default as Preset, Kind, Parameter};
use trunkline_transport::kind::{
    Advised, Conflict, FeatureMode, FlowNeeds, IPV4_UDP, MessageSize, Packet, Pair, Place, TransportKind,
    TransportOptions,
};
use trunkline_transport::udp::{self, UdpConfig, UdpEndpoint};
use trunkline_transport::{Features, features};

/// UDP under another name.
pub static PIGEON: TransportKind = TransportKind {
    name: "pigeon",
    doc: "IP over avian carriers (RFC 1149).",
    parameters: &[Parameter {
        name: "payload",
        kind: Kind::Bytes { min: Bytes(1), max: Bytes(256) },
        default: Preset::Text("200 B"),
        doc: "The largest message that a pigeon carries.",
    }],
    features: &FEATURES,
    modes: &[FeatureMode { option: "payload = \"1 B\"", features: &FEATHER }],
    advised: Some(Advised { rank: 9, headers: IPV4_UDP, alike: "udp" }),
    max_message: 1000,
    options: |values| Arc::new(Pigeon { payload: values.bytes("payload") }),
};

static FEATURES: Features = Features { name: "pigeon", multicast: false, ..features::UDP };
static FEATHER: Features = Features { checksum: false, ..FEATURES };

#[derive(Debug)]
struct Pigeon {
    payload: Bytes,
}

impl TransportOptions for Pigeon {
    fn features(&self) -> &'static Features {
        &FEATURES
    }

    fn check_use(&self, flow: &FlowNeeds<'_>) -> Vec<Conflict> {
        let message = "a pigeon does not return; omit `reflect`";
        if flow.reflect { vec![Conflict::new("payload", message)] } else { Vec::new() }
    }

    fn packet(&self, message: &MessageSize<'_>) -> Packet {
        match message.whole > self.payload.count() {
            true => Packet::TooLarge { message: "too heavy".to_owned(), key: Some("payload") },
            false => Packet::of_message(message, udp::IPV4_HEADER_LENGTH + udp::UDP_HEADER_LENGTH, ""),
        }
    }

    fn pair(&self, place: &Place<'_>) -> Result<Pair, String> {
        let end = |local, peer| Ok::<_, String>(UdpEndpoint::new(local, peer, UdpConfig::default()));
        Pair::of(place, end(place.near, place.far), end(place.far, place.near))
    }
}
