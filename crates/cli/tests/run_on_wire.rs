//! Experiments on the wire, as a user runs them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests too")]
#![allow(clippy::print_stderr, reason = "a test says why it is skipped")]

mod support;

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Bench, Ran};
use trunkline_testkit::real_time::in_real_time;

/// Two pairs of hosts, a way back, and a way over two links.
const FILE: &str = r#"
name = "wired"
duration = "DURATION"
drain = "2 s"
seed = 7

[hosts]
a = { send-packet = "1 ms" }
b = {}
c = {}

[link.near]
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "5 ms"

[link.far]
between = ["b", "c"]
rate = "10 Mbit/s"
delay = "10 ms"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = "voice"

[flow.back]
from = "b"
to = "a"
transport = "udp"
source = "voice"
reflect = true

[flow.across]
from = "a"
to = "c"
transport = "urp"
source = "voice"

[flow.raw]
from = "a"
to = "b"
transport = "sctp"
source = "voice"

[flow.bulk]
from = "c"
to = "b"
transport = { kind = "tcp", profile = "solaris-2.5" }
framing = "none"
source = { kind = "bulk", message = "1 KiB" }
"#;

fn bench(duration: &str) -> Option<Bench> {
    Bench::with_wire("wired.toml", FILE.replace("DURATION", duration))
}

/// A run that measures for a long time.
fn started(bench: &Bench) -> Child {
    let child = bench.start(&["run", "wired.toml", "--on", "wire"]);
    // For every pair of hosts with flows a far end.
    until(|| far_ends(&child).len() == 4);
    child
}

fn until(holds: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < patience, "it does not come to that");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The far ends that a run has started.
fn far_ends(run: &Child) -> Vec<u32> {
    let read =
        |pid: u32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let is_far_end = |pid: &u32| {
        // pid (comm) state ppid: the name may hold anything.
        let stat = read(*pid, "stat");
        let parent =
            stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1).map(str::to_owned));
        parent == Some(run.id().to_string()) && read(*pid, "cmdline").contains("far-end")
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_far_end).collect()
}

fn signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill runs").success());
}

fn wires(bench: &Bench) -> usize {
    std::fs::read_dir(bench.path("trunkline/wires")).unwrap().count()
}

/// A figure of a flow of a run in JSON: its mean over repetitions.
fn figure(run: &Value, flow: &str, figure: &str) -> f64 {
    let flows = run["flows"].as_array().unwrap();
    let found = flows.iter().find(|found| found["flow"] == flow).unwrap();
    found["figures"][figure]["mean"].as_f64().unwrap_or_else(|| panic!("{flow} {figure}: {found:#}"))
}

#[test]
fn a_file_runs_over_its_links_and_stands_beside_the_simulator() {
    in_real_time(|| {
        let Some(bench) = bench("1 s") else { return };
        bench.run(&["run", "wired.toml", "--no-report"]).ok();
        let ran = bench.run(&["run", "wired.toml", "--on", "wire", "--json"]).ok();
        let note = "`profile` does not apply on real sockets, where the kernel's TCP runs";
        assert!(ran.err.contains(note), "{note} in {}", ran.err);
        let (larger, carried) =
            (ran.err.matches("bytes larger").count(), ran.err.matches("URP travels in UDP").count());
        assert_eq!((larger, carried), (1, 1), "all other packets have their sizes: {}", ran.err);
        let json = ran.json();
        assert_eq!(
            (&json["runs"][0]["backend"], &json["runs"][1]["backend"]),
            (&"wire".into(), &"sim".into())
        );
        let [wire, sim] = [0, 1].map(|run| &json["points"][0]["runs"][run]);
        // No packet is faster than its links, and 100 messages a second are due.
        for (flow, least) in [("voice", 0.005), ("back", 0.010), ("across", 0.015)] {
            let fastest = figure(wire, flow, "latency_min");
            assert!(fastest >= least, "{flow}: {fastest} s");
            // The simulator connects within the measured time, and a source waits for that: here for one round trip.
            let unsent = figure(wire, flow, "sent") - figure(sim, flow, "sent");
            assert!(
                if flow == "across" { (0.0..=5.0).contains(&unsent) } else { unsent == 0.0 },
                "{flow}: {unsent}"
            );
            assert!(figure(wire, flow, "received") > 0.0, "{flow}");
        }
        assert!(figure(wire, "bulk", "received") > 10.0);
        // Packets directly over IP cannot be told apart: that is no 0.
        assert!(figure(wire, "raw", "received") > 0.0);
        let raw = wire["flows"].as_array().unwrap().iter().find(|flow| flow["flow"] == "raw").unwrap();
        assert_eq!(raw["figures"]["throughput_network"], Value::Null, "{raw:#}");
        // What datagrams take of their first link is the same in both. The acknowledgements of `across` wait behind the bulk,
        // and the kernel's TCP is another than the simulator's.
        for flow in ["voice", "back"] {
            let [wire, sim] = [wire, sim].map(|run| figure(run, flow, "throughput_network"));
            assert!((0.9..1.1).contains(&(wire / sim)), "{flow}: {wire} and {sim} bit/s");
        }
        for flow in ["across", "bulk"] {
            let network = figure(wire, flow, "throughput_network");
            assert!(network > figure(wire, flow, "throughput_user") && network < 10.5e6, "{flow}: {network}");
        }
        let links = |run: &Value| -> Vec<String> {
            run["links"]
                .as_array()
                .unwrap()
                .iter()
                .map(|link| link["link"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(links(wire), ["near a>b", "near b>a", "far b>c", "far c>b"]);
        assert_eq!(links(wire), links(sim));
        for link in wire["links"].as_array().unwrap() {
            assert!(link["delivered"]["mean"].as_f64().unwrap() >= 90.0, "{link:#}");
        }
        let page = std::fs::read_to_string(bench.run_folder(2).join("report.html")).unwrap();
        assert!(page.contains("one-way latencies are measured, not estimated"));
        assert_eq!(wires(&bench), 0);
    });
}

#[test]
fn an_interrupted_run_is_partial_and_leaves_nothing_in_the_kernel() {
    let Some(bench) = bench("60 s") else { return };
    let child = started(&bench);
    signal(child.id(), "-INT");
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.err.contains("finish it with `trunkline run --resume 1`"), "{}", ran.err);
    assert_eq!(wires(&bench), 0);
}

#[test]
fn a_far_end_that_dies_ends_the_run_and_what_was_measured_is_kept() {
    let Some(bench) = bench("60 s") else { return };
    let child = started(&bench);
    // The first message has been recorded a while after all have begun.
    std::thread::sleep(Duration::from_millis(500));
    signal(far_ends(&child)[0], "-KILL");
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.err.contains("the far end has ended (signal: 9 (SIGKILL))"), "{}", ran.err);
    assert!(bench.run(&["runs"]).ok().out.contains("partial"));
    assert_eq!(wires(&bench), 0);
}

#[test]
fn what_cannot_be_on_the_wire_is_said_before_anything_is_written() {
    let Some(bench) = bench("1 s") else { return };
    let several = FILE
        .replace("DURATION", "1 s")
        .replace("to = \"c\"\ntransport = \"urp\"", "to = [\"b\", \"c\"]\ntransport = \"udp\"");
    bench.write("several.toml", several);
    let ran = bench.run(&["run", "several.toml", "--on", "wire"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.err.contains("flow `across` cannot be set up: several sinks, or none, work in `sim` only"),
        "{}",
        ran.err
    );
    assert!(!bench.store().exists());
}

/// Twice what the link carries: what waits at the end of the drain time is unfinished, the rest of what is missing lost.
const OVERLOAD: &str = r#"
name = "overload"
duration = "2 s"
drain = "200 ms"

[hosts]
a = {}
b = {}

[link.l]
between = ["a", "b"]
rate = "1 Mbit/s"
queue = { kind = "fifo", limit = "100 packets" }

[flow.x]
from = "a"
to = "b"
transport = "TRANSPORT"
source = { kind = "load", message = "960 B", interval = "4 ms" }
"#;

#[test]
fn messages_that_the_queue_dropped_are_lost_as_in_the_simulator() {
    in_real_time(|| {
        for transport in ["udp", "rtp"] {
            let text = OVERLOAD.replace("TRANSPORT", transport);
            let Some(bench) = Bench::with_wire("overload.toml", text) else { return };
            let counts = |backend: &str| {
                let ran = bench.run(&["run", "overload.toml", "--on", backend, "--no-report", "--json"]).ok();
                let run = &ran.json()["points"][0]["runs"][0];
                ["lost", "unfinished"].map(|count| figure(run, "x", count))
            };
            let [lost, unfinished] = counts("wire");
            let [expected_lost, expected_unfinished] = counts("sim");
            // The machine may stand still for some messages.
            assert!(
                (unfinished - expected_unfinished).abs() < 15.0,
                "{unfinished} and {expected_unfinished}"
            );
            assert!((lost - expected_lost).abs() < 15.0, "{lost} and {expected_lost}");
        }
    });
}
