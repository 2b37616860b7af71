//! Every way to be wrong that we know, with the exact sentence.

mod cases;
mod common;

use cases::{BUNDLES, CASES, MORE, SINKS};
use common::{Beside, wav};
use trunkline_experiment::{Experiment, Files, FilesError, TRANSPORTS};
use trunkline_network::medium;

/// A valid file. Each case replaces a piece of it.
const GOOD: &str = r#"name = "good"
duration = "10 s"

[hosts]
a = {}
b = {}
c = {}

[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "20 ms"
queue = "fifo"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }

[flow.bulk]
from = "a"
to = "b"
transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }
"#;

struct Fixtures;

impl Files for Fixtures {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        match path {
            "text.wav" => Ok(b"hello".to_vec()),
            "float.wav" => Ok(wav(3, 8000, 32, 100)),
            "cd.wav" => Ok(wav(1, 44_100, 16, 100)),
            "cut.wav" => Ok(wav(1, 8000, 16, 100)[..100].to_vec()),
            "empty.trace" => Ok(b"# nothing\n".to_vec()),
            "sorted.down" => Ok(b"1\n3\n2\n".to_vec()),
            "hosts/bad.toml" => Ok(b"doc = 5\nsend-message = \"11 s\"\nsend-mesage = \"1 s\"\n".to_vec()),
            "hosts/broken.toml" => Ok(b"# one line\nx = [1,\n".to_vec()),
            "good.trace" => Ok(b"10 ms\n20 ms\n".to_vec()),
            "bad.trace" => Ok(b"10 ms\n20 parsecs\n".to_vec()),
            _ => Beside.read(path),
        }
    }
}

fn headlines(text: &str) -> Vec<String> {
    match Experiment::parse(text, "x.toml", &Fixtures) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|problem| problem.headline()).collect(),
    }
}

fn sources() -> impl Iterator<Item = &'static str> {
    trunkline_traffic::KINDS
        .iter()
        .flat_map(|kind| [kind.name].into_iter().chain(kind.aliases.iter().copied()))
}

/// Puts the names of the registries in place of `{media}` and the like: they grow.
fn with_names(line: &str) -> String {
    let transports = || TRANSPORTS.iter();
    line.replace("{media}", &listed(medium::KINDS.iter().map(|kind| kind.name), "and"))
        .replace("{sources}", &listed(sources(), "and"))
        .replace("{transports}", &listed(transports().map(|kind| kind.name), "and"))
        .replace(
            "{flow control}",
            &listed(
                transports()
                    .filter(|kind| kind.features.flow_control || kind.features.congestion_control)
                    .map(|kind| kind.name),
                "or",
            ),
        )
}

/// `` `a`, `b` and `c` ``
fn listed<'n>(names: impl Iterator<Item = &'n str>, word: &str) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let all = names.join(", ");
    match all.rfind(", ") {
        Some(last) => format!("{} {word} {}", &all[..last], &all[last + 2..]),
        None => all,
    }
}

#[test]
fn the_file_without_a_mistake_is_accepted() {
    assert_eq!(headlines(GOOD), Vec::<String>::new());
}

#[test]
fn every_mistake_is_told_in_one_sentence_at_its_place() {
    let mut differing = String::new();
    for (from, to, expected) in CASES.iter().chain(MORE).chain(SINKS).chain(BUNDLES) {
        assert!(GOOD.contains(from), "the case replaces nothing: {from}");
        let text = GOOD.replacen(from, to, 1);
        let found = headlines(&text);
        let expected: Vec<String> = expected.iter().map(|line| with_names(line)).collect();
        if found != expected {
            differing += &format!("(r#\"{from}\"#, r#\"{to}\"#, &[\n");
            for line in found {
                differing += &format!("    r#\"{line}\"#,\n");
            }
            differing += "]),\n";
        }
    }
    assert!(differing.is_empty(), "these cases give now:\n{differing}");
}

#[test]
fn a_long_line_is_shown_in_part() {
    let long = "x".repeat(100_000);
    for (line, column, end) in [
        (format!("a = {{ key = \"{long}\" }}"), 7, "xxx..."),
        (format!("a = {{ send-message = \"1 ms\", {long} = 1 }} # {long}"), 30, "xxx..."),
        (
            format!("a = {{ profile = \"pc\", noise = {{}}, {} agent = 3 }}", " ".repeat(100_000)),
            0,
            "agent = 3 }",
        ),
    ] {
        let text = GOOD.replacen("a = {}", &line, 1);
        assert_ne!(text, GOOD);
        let problems = Experiment::parse(&text, "x.toml", &Fixtures).unwrap_err();
        assert!(problems.to_string().len() < 5_000, "{}", problems.to_string().len());
        let problem = problems.iter().last().expect("something is wrong");
        let shown = problem.to_string();
        let [.., excerpt, carets] = shown.lines().collect::<Vec<_>>()[..] else { panic!("{shown}") };
        assert!(excerpt.ends_with(end), "{shown}");
        assert!(excerpt.chars().count() < 180 && carets.chars().count() < 180, "{shown}");
        assert!(column == 0 || problem.column == column, "{} in {shown}", problem.column);
        // The carets stand below what is meant.
        let at = carets.find('^').expect("carets");
        assert!(
            ["key", "xxx", "\"xx", "agent", "3"].iter().any(|meant| excerpt[at..].starts_with(meant)),
            "{shown}"
        );
    }
}

#[test]
fn a_missing_kind_is_told_with_those_that_there_are() {
    let found = headlines(&GOOD.replacen(r#"queue = "fifo""#, r#"queue = { limit = "64 KiB" }"#, 1));
    let [found] = found.as_slice() else { panic!("{found:?}") };
    assert!(found.starts_with("x.toml:13:9: the key `kind` is missing in `queue`; expected one of `fifo`, "));
    let kinds = trunkline_network::queue::KINDS;
    assert!(kinds.iter().all(|kind| found.contains(&format!("`{}`", kind.name))), "{found}");
}

#[test]
fn what_a_transport_does_not_promise_is_told_with_those_that_do() {
    for (from, to, expected) in [
        (
            "transport = \"udp\"",
            "transport = \"udp\"\nframing = \"none\"",
            "x.toml:19:11: without a header every message must arrive in order, which `udp` does not guarantee; use ",
        ),
        (
            "\"voice\", samples = 80",
            "\"bulk\", message = \"1 KiB\", bytes = \"1 MB\", transfers = 10",
            "x.toml:19:10: the source `bulk` would wait forever if a reply were lost, and `udp` does not repair loss; use ",
        ),
    ] {
        let found = headlines(&GOOD.replacen(from, to, 1));
        assert!(found.iter().any(|line| line.starts_with(expected) && line.contains("`tcp`")), "{found:?}");
    }
}

#[test]
fn a_profile_is_named_as_seen_from_the_experiment_file() {
    let text = GOOD.replacen("a = {}", "a = { profile = \"hosts/bad.toml\" }", 1);
    let problems = Experiment::parse(&text, "study/x.toml", &Fixtures).unwrap_err();
    let last = problems.iter().last().unwrap();
    assert_eq!((&*last.file, last.line), ("study/hosts/bad.toml", 3));
    assert!(last.to_string().ends_with("3 | send-mesage = \"1 s\"\n  | ^^^^^^^^^^^"), "{last}");
}

#[test]
fn an_empty_file_lacks_what_every_file_has() {
    assert_eq!(
        headlines(""),
        [
            "x.toml:1:1: the key `duration` is missing before the first table; expected a duration from 1 ms to 168 h",
            "x.toml:1:1: the key `name` is missing before the first table; expected a text",
        ]
    );
}

#[test]
fn a_problem_is_shown_with_its_line_and_place() {
    let text = GOOD.replacen("queue = \"fifo\"", "quee = \"fifo\"", 1);
    let problems = Experiment::parse(&text, "x.toml", &Fixtures).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "x.toml:13:1: unknown key `quee` in [link.trunk]; did you mean `queue`?\n\
         13 | quee = \"fifo\"\n   | ^^^^"
    );
}

#[test]
fn columns_count_characters_not_bytes() {
    let text = GOOD.replacen("rate = \"2 Mbit/s\"", "\"ра\" = 1", 1);
    let found = headlines(&text);
    assert!(found.iter().any(|line| line.contains(":11:1: unknown key `ра`")), "{found:?}");
    let text =
        GOOD.replacen("source = { kind = \"voice\"", "source = { file = \"ääää\", kindd = \"voice\"", 1);
    let found = headlines(&text);
    assert!(found.iter().any(|line| line.starts_with("x.toml:19:10:")), "{found:?}");
}
