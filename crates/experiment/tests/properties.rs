//! No text makes the reader panic or break its word.

mod common;

use common::example;
use proptest::prelude::*;
use trunkline_experiment::fuzz_parse;

/// Pieces that mean something to the reader.
const PIECES: &[&str] = &[
    "[flow.voice]",
    "[link.trunk.forward]",
    "[sweep]",
    "[limits]",
    "[hosts]",
    "= ",
    "\n",
    "{ kind = ",
    "}",
    "[]",
    "[",
    "\"",
    "'",
    "1e400 s",
    "-1",
    "0",
    "99999999999999999999",
    "nan",
    "\"10 ms\"",
    "\"64 KiB\"",
    "\"5 %\"",
    "true",
    "1979-05-27",
    "count",
    "queue",
    "loss",
    "source",
    "transport",
    "\"udp\"",
    "\"bulk\"",
    "file = \"x.wav\"",
    "\"flow.voice.count\" = [1, 2]",
    "\"flow.voice.source.interval.mean\" = [\"1 ms\"]",
    "\u{0}",
    "ä",
    "\u{feff}",
    "[flow.voice.source]",
    "[bundle.both]\nflows = [\"voice\", \"bulk\"]\n",
    "\"link.trunk.queue.limit\" = [\"1 packet\"]",
    "kind = \"trace\"",
    "path = [\"trunk\"]",
    "profile = \"vax.toml\"",
    "until = \"voice\"\n",
    "framing = \"none\"\n",
    "transfers = 3",
    "\"hosts.berlin.send-message\" = [\"1 ms\"]",
];

fn text_of_pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

/// An example with some of its bytes replaced by pieces.
fn mutated_example() -> impl Strategy<Value = Vec<u8>> {
    let names =
        prop::sample::select(vec!["voice-beside-bulk.toml", "bursty-loss.toml", "calls-on-a-t1.toml"]);
    let edit = (any::<prop::sample::Index>(), 0usize..12, prop::sample::select(PIECES));
    (names, prop::collection::vec(edit, 1..6)).prop_map(|(name, edits)| {
        let mut bytes = example(name).into_bytes();
        for (at, length, piece) in edits {
            let start = at.index(bytes.len());
            let end = (start + length).min(bytes.len());
            bytes.splice(start..end, piece.bytes());
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz_parse(&bytes);
    }

    #[test]
    fn arbitrary_pieces(text in text_of_pieces()) {
        fuzz_parse(text.as_bytes());
    }

    #[test]
    fn mutations_of_the_examples(bytes in mutated_example()) {
        fuzz_parse(&bytes);
    }
}

/// Adversarial shapes that a mutation does not find.
#[test]
fn deep_and_wide_files() {
    fuzz_parse(format!("x = {}", "[".repeat(10_000)).as_bytes());
    fuzz_parse(format!("x = {}", "{ a = ".repeat(10_000)).as_bytes());
    fuzz_parse(format!("{} = 1", vec!["a"; 5_000].join(".")).as_bytes());
    fuzz_parse(format!("[sweep]\n{} = [1]", vec!["a"; 50].join(".")).as_bytes());
    // A chain of hosts longer than a packet can count.
    let hosts: String = (0..400).map(|n| format!("h{n} = {{}}\n")).collect();
    let link = |n: usize| format!("[link.l{n}]\nbetween = [\"h{n}\", \"h{}\"]\nrate = \"1 Mbit/s\"\n", n + 1);
    let links: String = (0..399).map(link).collect();
    let flow = "[flow.f]\nfrom = \"h0\"\nto = \"h399\"\ntransport = \"udp\"\nsource = \"voice\"\n";
    fuzz_parse(format!("name = \"chain\"\nduration = \"1 s\"\n[hosts]\n{hosts}{links}{flow}").as_bytes());
}
