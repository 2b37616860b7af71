//! A transport is one entry of the registry: one that no crate knows is read from a file, checked, simulated and described
//! in the references. That it has a place in the advice is a test of the crate `advisor`.

mod support;

use support::{flow, simulate};
use trunkline_experiment::{Experiment, TRANSPORTS, reference, reference_of, transports, transports_of};
use trunkline_testkit::pigeon::PIGEON;
use trunkline_transport::kind::TransportKind;

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
        ("\"pigeon\"", "framing = \"none\"", "which `pigeon` does not guarantee"),
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

#[test]
fn a_registered_transport_and_its_modes_are_in_the_table_of_features() {
    let page = transports_of(WITH_PIGEONS);
    for row in ["| `udp` | yes |", "| `pigeon` | yes |", "| `pigeon`, `payload = \"1 B\"` | yes |"] {
        assert!(page.contains(row), "{row} is missing in {page}");
        assert_eq!(transports().contains(row), !row.contains("pigeon"), "{row}");
    }
}
