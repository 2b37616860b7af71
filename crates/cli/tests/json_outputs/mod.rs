//! Every command that has `--json`, on small inputs: what it prints is as the schema in `docs/reference` says.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use trunkline::json::LAYOUTS;
use trunkline_testkit::real_time::in_real_time;

use crate::support::json_schema::problems;
use crate::support::{Bench, Ran, assert_described};

const OF_FILES: &[&str] = &[
    "check",
    "comparison",
    "error",
    "export",
    "import",
    "imported-link",
    "kernels",
    "learned-path",
    "listen",
    "merge",
    "path",
    "path-comparison",
    "path-export",
    "paths",
    "paths-removed",
    "plan",
    "removed",
    "run",
    "run-tags",
    "runs",
    "studies",
    "study-cell",
    "study-constant",
    "warnings",
    "watched-path",
];
const OF_SESSIONS: &[&str] = &["advice", "peers", "session"];
const OF_AGENTS: &[&str] = &["agent-kept", "agent-status", "agents", "enrolled", "pairing"];
const OF_SERVERS: &[&str] = &["login-link", "server", "token", "tokens"];
const OF_WIRES: &[&str] = &["wire-counters", "wire-up", "wires", "wires-removed"];

/// Three kinds of flow, sinks, many hosts, a bundle and a sweep.
const FILE: &str = r#"
name = "small"
duration = "300 ms"
repetitions = 2

[hosts]
a = {}
b = {}
phone = { count = 3 }

[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "2 ms"
loss = "2 %"

[link.line]
between = ["phone", "b"]
rate = "1 Mbit/s"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }
codec = "g711"
playout = "20 ms"

[flow.bulk]
from = "a"
to = "b"
transport = { kind = "tcp", window = "16 KiB" }
source = { kind = "bulk", message = "4 KiB" }

[flow.up]
from = "phone"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }

[sweep]
"link.trunk.rate" = ["1 Mbit/s", "2 Mbit/s"]

[limits]
"flow.voice.loss" = "< 50 %"
"#;

const WAV: hound::WavSpec = hound::WavSpec {
    channels: 1,
    sample_rate: 8000,
    bits_per_sample: 16,
    sample_format: hound::SampleFormat::Int,
};

/// The program with a home of its own.
fn command(bench: &Bench, arguments: &[&str]) -> Command {
    let mut command = bench.command(arguments);
    command.env("XDG_CONFIG_HOME", bench.path("config")).env("XDG_STATE_HOME", bench.path("state"));
    command.env("XDG_DATA_HOME", bench.path("data"));
    command
}

#[track_caller]
fn printed(bench: &Bench, arguments: &[&str]) -> Vec<Value> {
    let output = command(bench, &[arguments, &["--json"]].concat()).output().expect("the program starts");
    Ran::from(output).all_json()
}

/// The layouts' names.
fn kinds(objects: impl IntoIterator<Item = Value>) -> BTreeSet<String> {
    objects.into_iter().filter_map(|object| object["kind"].as_str().map(str::to_owned)).collect()
}

#[track_caller]
fn assert_kinds(seen: &BTreeSet<String>, expected: &[&str]) {
    assert!(seen.iter().eq(expected), "{seen:?} are not {expected:?}");
}

/// A child that is killed when this is dropped.
struct Started(Child);

impl Started {
    fn start(mut command: Command) -> Started {
        Started(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts"))
    }

    /// The first line of standard error with these words.
    fn says(&mut self, words: &str) -> String {
        let lines = BufReader::new(self.0.stderr.as_mut().expect("it is piped")).lines();
        let mut lines = lines.map_while(Result::ok);
        lines.find(|line| line.contains(words)).unwrap_or_else(|| panic!("it does not say `{words}`"))
    }

    /// Interrupts it as Ctrl-C does; what it has printed.
    fn interrupt(mut self) -> Ran {
        let status = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()));
        let mut out = String::new();
        let stdout = self.0.stdout.as_mut().expect("it is piped");
        stdout.read_to_string(&mut out).expect("it is text");
        Ran { code: self.0.wait().ok().and_then(|status| status.code()), out, err: String::new() }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended as it should.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_layout_is_printed_by_a_test() {
    let all: BTreeSet<&str> = LAYOUTS.iter().map(|layout| layout.kind).collect();
    let tested = [OF_FILES, OF_SESSIONS, OF_AGENTS, OF_SERVERS, OF_WIRES].concat();
    assert_eq!(all, tested.into_iter().collect());
    assert_eq!(all.len(), LAYOUTS.len(), "no two have one name");
}

#[test]
fn results_of_files_and_runs_are_described() {
    let bench = Bench::new();
    bench.write("small.toml", FILE);
    bench.write("one.toml", FILE.split("[sweep]").next().expect("it has a beginning"));
    bench.write("bad.toml", FILE.replace("2 Mbit/s", "2 parsecs"));
    let limits = FILE.split("[limits]").nth(1).expect("it has limits");
    bench.write(
        "plan.toml",
        format!("{}[limits]{limits}", FILE.split("[sweep]").next().expect("it has a beginning")),
    );
    bench.write("line.toml", "rate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n");
    for name in ["sent.wav", "received.wav"] {
        let mut wav = hound::WavWriter::create(bench.path(name), WAV).expect("the folder can be written");
        let mut state = 1_u32;
        for _ in 0..16_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            wav.write_sample((state >> 18) as i16).expect("the file can be written");
        }
        wav.finalize().expect("the file can be written");
    }
    bench.write("cell.up", "1\n3\n9\n");
    let mut seen = BTreeSet::new();
    for arguments in [
        &["learn", "--from", "cell.up"][..],
        &["paths", "import", "cell.toml"],
        &["paths"],
        &["paths", "show", "cell"],
        &["paths", "compare", "cell", "cell"],
        &["paths", "export", "cell"],
        &["paths", "remove", "cell"],
        &["check", "small.toml"],
        &["check", "bad.toml"],
        &["run", "small.toml"],
        &["run", "one.toml", "--set", "link.trunk.rate=1 Mbit/s", "--no-report"],
        &["report", "1", "--alone"],
        &[
            "plan",
            "plan.toml",
            "--minimise",
            "link.trunk.rate",
            "--from",
            "200 kbit/s",
            "--to",
            "1 Mbit/s",
            "--precision",
            "50 %",
            "--no-report",
        ],
        &["runs"],
        &["runs", "-q", "tag", "1", "reference"],
        &["runs", "compare", "1", "2"],
        &["runs", "export", "1", "--to", "first.tar"],
        &["runs", "import", "first.tar"],
        &["runs", "merge", "1", "1"],
        &["runs", "prune", "--latest", "1", "--dry-run"],
        &["runs", "remove", "2"],
        &["kernel", "list"],
        &["papers"],
        &["paper", "hawley1989", "table02"],
        &["paper", "schiavoni2013", "table03", "--calibrate"],
        &["listen", "sent.wav", "received.wav"],
        &["learn", "--over", "line.toml", "--gentle"],
        &["learn", "--over", "line.toml", "--watch", "3 min"],
    ] {
        let objects = printed(&bench, arguments);
        assert!(!objects.is_empty(), "{arguments:?}");
        seen.extend(kinds(objects));
    }
    let mut long = Started::start(command(&bench, &["paper", "weaver1992", "--jobs", "1", "--json"]));
    long.says("measured");
    let stopped = long.interrupt().all_json();
    assert_eq!(warnings(stopped.last()), ["stopped early: the missing values were not measured"]);
    seen.extend(kinds(stopped));
    assert_kinds(&seen, OF_FILES);
}

/// The sentences of an object's warnings.
fn warnings(object: Option<&Value>) -> Vec<&str> {
    let all = object.and_then(|object| object["warnings"].as_array());
    all.into_iter().flatten().filter_map(|warning| warning["message"].as_str()).collect()
}

#[test]
fn warnings_are_in_the_object_that_follows_them() {
    let bench = Bench::new();
    let one = FILE.split("[sweep]").next().expect("it has a beginning");
    bench.write("broken.toml", format!("{one}[limits]\n\"flow.voice.loss\" = \"< 0.01 %\"\n"));
    let strict = printed(&bench, &["run", "broken.toml", "--strict"]);
    let expected = "not all limits were shown to hold: exit code 3 (`--strict`)";
    assert_eq!(warnings(strict.first()), [expected]);
    assert!(printed(&bench, &["run", "broken.toml"])[0]["warnings"].is_null(), "it warns of nothing");

    bench.write("wire.toml", one.split("[flow.voice]").next().expect("it has links"));
    let checked = printed(&bench, &["check", "wire.toml"]);
    assert!(warnings(checked.first())[0].starts_with("no flows"), "{checked:#?}");
    bench.write("simulated.toml", one.replace("[flow.bulk]", "[flow.bulk]\nframing = \"none\""));
    let checked = printed(&bench, &["check", "simulated.toml"]).remove(0);
    let backends: Vec<&Value> = checked["backends"].as_array().into_iter().flatten().collect();
    let refused: Vec<&Value> = checked["refused"].as_array().into_iter().flatten().collect();
    assert_eq!((backends.len(), refused.len()), (2, 1), "{checked:#}");
    assert!(refused.iter().all(|one| one["reason"].as_str().is_some_and(|why| !why.is_empty())));

    // Of a file that is cut short, and whose header says so.
    let mut wav = hound::WavWriter::create(bench.path("cut.wav"), WAV).expect("the folder can be written");
    (0..16_000_i32).for_each(|n| wav.write_sample((n * n % 9973) as i16).expect("the file can be written"));
    wav.finalize().expect("the file can be written");
    let whole = std::fs::read(bench.path("cut.wav")).expect("it was written");
    std::fs::write(bench.path("cut.wav"), &whole[..30_000]).expect("the folder can be written");
    let heard = printed(&bench, &["listen", "cut.wav", "cut.wav"]).remove(0);
    assert!(warnings(Some(&heard))[0].contains("cut short"), "{heard:#}");
    assert_eq!(heard["warnings"][0]["file"], "cut.wav", "{heard:#}");

    // An error has them too.
    let failed = printed(&bench, &["listen", "cut.wav", "nothing.wav"]).remove(0);
    assert_eq!((&failed["kind"], warnings(Some(&failed)).len()), (&"error".into(), 1), "{failed:#}");
}

#[test]
fn results_of_sessions_are_described() {
    in_real_time(|| {
        let bench = Bench::new();
        let mut reflector = Started::start(bench.command(&["reflect", "--listen", "127.0.0.1:0", "--json"]));
        let at = reflector.says("127.0.0.1:");
        let at = at.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        let send = ["send", &at, "--from", "tone", "--channels", "1", "--blocks", "30"];
        let mut seen = kinds(printed(&bench, &send));
        printed(&bench, &["peer", "pair"]);
        seen.extend(kinds(printed(&bench, &["peer", "list"])));
        let probe =
            ["probe", &at, "--budget", "1s", "--transports", "udp", "--for", "rehearsal", "--no-load"];
        seen.extend(kinds(printed(&bench, &probe)));
        seen.extend(kinds(reflector.interrupt().all_json()));
        let arguments = ["receive", "--listen", "127.0.0.1:0", "--to", "none", "--once", "--json"];
        let mut receiver = Started::start(bench.command(&arguments));
        let at = receiver.says("127.0.0.1:");
        let at = at.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        printed(&bench, &["send", &at, "--from", "tone", "--channels", "1", "--blocks", "30"]);
        seen.extend(kinds(receiver.interrupt().all_json()));
        assert_kinds(&seen, OF_SESSIONS);
    });
}

#[test]
fn results_of_agents_are_described() {
    let bench = Bench::new();
    bench.write("agent.toml", "name = \"berlin\"\nlisten = \"127.0.0.1:0\"\n[limits]\nduration = \"30 s\"\n");
    let mut agent =
        Started::start(command(&bench, &["agent", "--config", "agent.toml", "--state", "agent.state"]));
    agent.says("berlin listens at 127.0.0.1:");
    let pairing = printed(&bench, &["agent", "pair", "--state", "agent.state"]).remove(0);
    let of_pairing = |key: &str| pairing[key].as_str().unwrap_or_default().to_owned();
    let mut seen = kinds(printed(&bench, &["agent", "enrol", &of_pairing("address"), &of_pairing("code")]));
    seen.extend(kinds(printed(&bench, &["agent", "list", "--state", "agent.state"])));
    let status = printed(&bench, &["agent", "status", "berlin"]);
    assert_eq!(status[0]["facts"]["limits"]["duration_ns"], 30_000_000_000_u64, "{status:#?}");
    seen.extend(kinds(status.into_iter().chain([pairing])));
    seen.extend(kinds(printed(&bench, &["agent", "clean", "--state", "agent.state"])));
    assert_kinds(&seen, OF_AGENTS);
}

#[test]
fn results_of_servers_are_described() {
    let bench = Bench::new();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--json"];
    let mut server = Started::start(command(&bench, &serve));
    server.says("serving on");
    let mut seen = BTreeSet::new();
    for arguments in [&["serve", "token"][..], &["serve", "token", "--name", "nightly"], &["serve", "tokens"]]
    {
        seen.extend(kinds(printed(&bench, arguments)));
    }
    seen.extend(kinds(server.interrupt().all_json()));
    assert_kinds(&seen, OF_SERVERS);
}

#[test]
#[cfg(target_os = "linux")]
fn results_of_wires_are_described() {
    let one = FILE.split("[link.line]").next().unwrap_or_default().replace("phone = { count = 3 }\n", "");
    let Some(bench) = Bench::with_wire("wire.toml", one) else { return };
    let mut up = bench.command(&["wire", "up", "wire.toml", "--foreground"]);
    let mut wire = Started(up.stdout(Stdio::piped()).spawn().expect("the program starts"));
    let said = BufReader::new(wire.0.stdout.as_mut().expect("it is piped")).lines().next();
    assert!(matches!(said, Some(Ok(line)) if line.ends_with("is up")));
    let mut seen = kinds(printed(&bench, &["wire", "status"]));
    seen.extend(kinds(printed(&bench, &["wire", "top"])));
    drop(wire);
    let background = bench.run(&["wire", "up", "wire.toml", "--name", "background", "--json"]);
    bench.run(&["wire", "down", "--wire", "background"]).ok();
    seen.extend(kinds(background.all_json()));
    let removed = printed(&bench, &["wire", "down", "--stale"]);
    seen.extend(kinds(removed));
    assert_kinds(&seen, OF_WIRES);
}

#[test]
fn what_is_not_described_is_noticed() {
    let right = json!({ "kind": "run-tags", "format": 1, "run": 7, "tags": ["spring"] });
    assert_described(&right);
    for (key, value) in [("run", "7".into()), ("format", 2.into()), ("colour", "red".into())] {
        let mut wrong = right.clone();
        wrong[key] = value;
        let caught = std::panic::catch_unwind(|| assert_described(&wrong));
        assert!(caught.is_err(), "{wrong}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let root = json!({ "$defs": { "Axis": {
        "type": "object",
        "required": ["key", "unit"],
        "properties": { "key": { "type": "string" }, "unit": { "enum": ["s", "B"] } },
    }, "Tagged": { "type": "object", "properties": { "kind": { "const": "a" } } } } });
    let schema = json!({
        "type": "object",
        "properties": {
            "axes": { "type": "array", "items": { "$ref": "#/$defs/Axis" } },
            "pair": { "type": "array", "prefixItems": [{ "type": "integer" }, { "type": "null" }], "items": false },
            "maybe": { "oneOf": [{ "type": "null" }, { "$ref": "#/$defs/Tagged" }] },
            "counts": { "type": "object", "additionalProperties": { "type": "integer", "format": "int64", "minimum": 0 } },
            "at": { "type": ["string", "null"], "format": "date-time" },
        },
    });
    let right = json!({
        "axes": [{ "key": "x", "unit": "s" }], "pair": [1, null], "maybe": null, "counts": { "a": 1 },
        "at": "2026-01-31T12:00:00Z",
    });
    assert_eq!(problems(&root, &schema, &right), [""; 0]);
    for (pointer, wrong, says) in [
        ("/axes/0", json!({ "key": "x" }), "/axes/0 has no `unit`"),
        ("/axes/0/unit", json!("m"), "/axes/0/unit is none of"),
        ("/axes/0/key", json!(5), "/axes/0/key is no \"string\""),
        ("/pair", json!([1, null, 2]), "/pair/2 is one too many"),
        ("/maybe", json!({ "kind": "b" }), "/maybe fits 0 of 2 schemas"),
        ("/counts/a", json!(-1), "/counts/a is less than 0"),
        ("/counts/a", json!(1.5), "/counts/a is no \"integer\""),
        ("/counts", json!([]), "/counts is no \"object\""),
        ("/at", json!("today"), "/at is no \"date-time\""),
    ] {
        let mut value = right.clone();
        *value.pointer_mut(pointer).expect("it is there") = wrong;
        let found = problems(&root, &schema, &value);
        assert!(found.iter().any(|problem| problem.contains(says)), "{says}: {found:?}");
    }
    let more = json!({ "new": 1 });
    assert_eq!(problems(&root, &schema, &more), ["/new is not described"]);
}

#[test]
#[should_panic(expected = "the keyword `contains` is not known")]
fn an_unknown_keyword_is_a_failure() {
    problems(&json!({}), &json!({ "contains": {} }), &json!([]));
}
