//! The largest message of each transport is what its packets, or its buffers, can hold.

mod common;

use common::Beside;
use trunkline_experiment::{Experiment, TRANSPORTS};

fn problems(transport: &str, source: &str, rest: &str) -> String {
    let text = format!(
        "name = \"x\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n\
         [link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Gbit/s\"\nmtu = \"65535 B\"\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nsource = {source}\n{rest}\n"
    );
    Experiment::parse(&text, "x.toml", &Beside)
        .err()
        .map_or_else(String::new, |problems| problems.to_string())
}

#[test]
fn a_datagram_fills_an_ip_packet_to_the_last_byte() {
    for (transport, most) in [
        ("udp", 65_535 - 28),
        ("udp-lite", 65_535 - 28),
        ("rtp", 65_535 - 28 - 12),
        ("dccp", 65_535 - 20 - 40),
        ("sctp", 128 << 10),
    ] {
        assert!(TRANSPORTS.iter().any(|kind| kind.name == transport));
        let of = |size: u64, rest: &str| {
            let source = format!("{{ kind = \"load\", message = \"{size} B\", interval = \"10 ms\" }}");
            problems(&format!("\"{transport}\""), &source, rest)
        };
        assert_eq!(of(most, ""), "", "{transport}");
        let said = of(most + 1, "");
        assert!(said.contains(&format!("larger than the {most} B")), "{transport}: {said}");
        // A header in front of the message takes its room.
        assert_eq!(of(most - 40, "framing = \"header\""), "", "{transport}");
        let said = of(most - 39, "framing = \"header\"");
        assert!(said.contains(&format!("larger than the {} B", most - 40)), "{transport}: {said}");
    }
}
