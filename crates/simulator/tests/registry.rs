//! A transport is one entry of the registry: one that no crate knows is read from a file, checked, simulated and described
//! in the reference.

mod support;

use std::sync::Arc;

use support::{flow, simulate};
use trunkline_core::Bytes;
use trunkline_core::schema::{Default as Preset, Kind, Parameter};
use trunkline_experiment::{Experiment, TRANSPORTS, reference, reference_of};
use trunkline_transport::kind::{
    Conflict, FlowNeeds, MessageSize, Packet, Pair, Place, TransportKind, TransportOptions,
};
use trunkline_transport::udp::{self, UdpConfig, UdpEndpoint};
use trunkline_transport::{Features, features};

/// UDP with a send buffer, under another name.
static PIGEON: TransportKind = TransportKind {
    name: "pigeon",
    doc: "IP over avian carriers (RFC 1149).",
    parameters: &[Parameter {
        name: "payload",
        kind: Kind::Bytes { min: Bytes(1), max: Bytes(256) },
        default: Preset::Text("200 B"),
        doc: "The largest message that a pigeon carries.",
    }],
    features: &FEATURES,
    max_message: 1000,
    options: |values| Arc::new(Pigeon { payload: values.bytes("payload") }),
};

static FEATURES: Features = Features { name: "pigeon", multicast: false, ..features::UDP };

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

static WITH_PIGEONS: &[&TransportKind] = &[TRANSPORTS[0], &PIGEON];

fn file(transport: &str, more: &str) -> String {
    format!(
        "name = \"test\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.air]\nbetween = [\"a\", \"b\"]\n\
         rate = \"1 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\nsource = {{ kind = \"voice\", samples = 160 }}\n{more}\n\
         transport = {transport}\n"
    )
}

fn parse(transport: &str, more: &str) -> Result<Experiment, String> {
    let text = file(transport, more);
    Experiment::parse_among(WITH_PIGEONS, &text, "x.toml", &()).map_err(|problems| problems.to_string())
}

#[test]
fn a_registered_transport_is_read_and_checked() {
    assert!(parse("\"pigeon\"", "").is_ok());
    assert!(Experiment::parse(&file("\"pigeon\"", ""), "x.toml", &()).is_err());
    for (transport, more, expected) in [
        ("\"pidgeon\"", "", "did you mean `pigeon`?"),
        ("{ kind = \"pigeon\", payload = \"1 KiB\" }", "", "`payload` must be"),
        ("{ kind = \"pigeon\", wings = 2 }", "", "unknown key `wings` in the transport `pigeon`"),
        ("{ kind = \"pigeon\", payload = \"100 B\" }", "", "too heavy"),
        ("\"pigeon\"", "reflect = true", "a pigeon does not return"),
        ("\"pigeon\"", "framing = \"none\"", "which `pigeon` does not promise"),
    ] {
        let error = parse(transport, more).expect_err(transport);
        assert!(error.contains(expected) && error.contains("x.toml:"), "{transport} {more}: {error}");
    }
}

#[test]
fn a_registered_transport_is_simulated() {
    let experiment = parse("\"pigeon\"", "").unwrap_or_else(|error| panic!("{error}"));
    let summary = simulate(&experiment);
    let counts = flow(&summary, "voice").counts;
    assert_eq!((counts.sent, counts.received), (50, 50), "{counts:?}");
}

#[test]
fn a_registered_transport_is_in_the_reference() {
    let page = reference_of(WITH_PIGEONS);
    for words in [PIGEON.name, PIGEON.doc, PIGEON.parameters[0].doc] {
        assert!(page.contains(words) && !reference().contains(words), "{words}");
    }
}
