//! The program killed at random moments: while it simulates and writes the store, while it serves, and while it has a wire.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Bench, files_below};
use trunkline_testkit::kills::{at_random_moments, moment};
use trunkline_testkit::mutation::Mutator;

/// 40 repetitions, each with a trace.
const EXPERIMENT: &str = "name = \"kills\"\nduration = \"3 s\"\nrepetitions = 20\n[hosts]\na = {}\nb = {}\n[link.l]\n\
    between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\nloss = \"1 %\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \
    \"udp\"\nsource = { kind = \"voice\", samples = 80 }\n[sweep]\n\"flow.voice.count\" = [1, 2]\n";
const REPETITIONS: u64 = 40;
/// Nothing here takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

fn kill(child: &mut Child) {
    // It may have ended.
    let _ = child.kill();
    child.wait().unwrap();
}

/// The runs of the store, which opens.
fn runs(bench: &Bench) -> Vec<Value> {
    let listed = bench.run(&["runs", "--json"]).ok();
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    listed["runs"].as_array().unwrap().clone()
}

/// All tables of a run, by their names.
fn tables(bench: &Bench, run: &str) -> Vec<(String, Vec<u8>)> {
    let folder = bench.path(&format!("csv-{run}"));
    bench.run(&["report", run, "--csv", folder.to_str().unwrap(), "--alone"]).ok();
    let files = files_below(&folder).into_iter();
    files
        .map(|file| (file.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(file).unwrap()))
        .collect()
}

/// The tables and the duration of the same run, undisturbed.
fn undisturbed() -> (Vec<(String, Vec<u8>)>, Duration) {
    let bench = Bench::new();
    bench.write("kills.toml", EXPERIMENT);
    let began = Instant::now();
    bench.run(&["run", "kills.toml", "--no-report"]).ok();
    (tables(&bench, "1"), began.elapsed())
}

/// The run is complete and has what it would have without a kill.
fn assert_same(bench: &Bench, expected: &[(String, Vec<u8>)]) {
    let runs = runs(bench);
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!((&runs[0]["status"], &runs[0]["repetitions_done"]), (&json!("complete"), &json!(REPETITIONS)));
    let traces = files_below(&bench.store()).into_iter();
    let traces = traces.filter(|file| file.extension().is_some_and(|ending| ending == "parquet")).count();
    assert_eq!(traces as u64, REPETITIONS, "traces");
    let tables = tables(bench, "1");
    assert!(tables.len() == expected.len() && !tables.is_empty());
    for ((name, is), (_, should)) in tables.iter().zip(expected) {
        assert!(is == should, "{name} differs:\n{}", String::from_utf8_lossy(is));
    }
}

#[test]
fn a_simulation_killed_at_any_moment_is_resumed_to_the_same_results() {
    let (expected, length) = undisturbed();
    at_random_moments(2, |mutator| {
        let bench = Bench::new();
        bench.write("kills.toml", EXPERIMENT);
        let mut run = bench.start(&["run", "kills.toml", "--no-report"]);
        std::thread::sleep(moment(mutator, length));
        kill(&mut run);
        let before = runs(&bench);
        match before.first().map(|run| run["status"].as_str().unwrap()) {
            // It had no number yet.
            None => bench.run(&["run", "kills.toml", "--no-report"]).ok(),
            Some("partial") => bench.run(&["run", "--resume", "latest", "--no-report"]).ok(),
            Some(status) => {
                assert_eq!(status, "complete");
                return assert_same(&bench, &expected);
            }
        };
        assert_same(&bench, &expected);
    });
}

/// `trunkline serve`, which is killed when this is dropped.
struct Serving(Child, String);

impl Serving {
    fn start(bench: &Bench) -> Serving {
        let mut child =
            bench.start(&["serve", "--listen", "127.0.0.1:0", "--no-login", "--browser", "never"]);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.find_map(|line| Some(line.unwrap().split_once("http://")?.1.to_owned())).unwrap();
        // What else it says goes nowhere, and holds it up nowhere.
        std::thread::spawn(move || lines.for_each(drop));
        Serving(child, line.split(',').next().unwrap().to_owned())
    }

    /// The answer; `None` if the server was killed meanwhile.
    fn ask(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.1).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (address, length) = (&self.1, body.len());
        let _ = write!(
            stream,
            "{method} /api/v1{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        kill(&mut self.0);
    }
}

#[test]
fn a_server_killed_at_any_moment_has_every_run_that_it_has_begun() {
    let (expected, length) = undisturbed();
    at_random_moments(2, |mutator| {
        let bench = Bench::new();
        let serving = Serving::start(&bench);
        let body = json!({ "text": EXPERIMENT, "file_name": "kills.toml", "backend": "sim" }).to_string();
        let at = moment(mutator, length);
        let begun = std::thread::scope(|scope| {
            let begun = scope.spawn(|| serving.ask("POST", "/runs", &body));
            std::thread::sleep(at);
            let id = serving.0.id().to_string();
            assert!(Command::new("kill").args(["-9", &id]).status().unwrap().success());
            begun.join().unwrap()
        });
        drop(serving);
        let before = runs(&bench);
        if let Some(begun) = &begun {
            assert!(before.iter().any(|run| run["id"] == begun["run"]), "{begun} is lost: {before:?}");
        }
        let serving = Serving::start(&bench);
        let job = match before.first() {
            None => serving.ask("POST", "/runs", &body),
            Some(run) if run["status"] == "partial" => serving.ask("POST", "/runs/1/resume", "{}"),
            Some(_) => return assert_same(&bench, &expected),
        };
        let job = job.unwrap();
        let path = format!("/jobs/{}", job["job"].as_str().unwrap_or_else(|| panic!("{job}")));
        let began = Instant::now();
        loop {
            let state = serving.ask("GET", &path, "").unwrap();
            if state["state"] == "done" {
                break;
            }
            assert!(began.elapsed() < PATIENCE && state["state"] != "failed", "{state}");
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(serving);
        assert_same(&bench, &expected);
    });
}

/// The processes that were started in this folder.
fn processes(bench: &Bench) -> Vec<String> {
    let folder = bench.path("").to_string_lossy().into_owned();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let of_folder = all.filter_map(|entry| {
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        let is_ours = String::from_utf8_lossy(&environment).contains(&folder);
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        // A process that has ended and is waited for has none.
        (is_ours && !line.is_empty()).then(|| String::from_utf8_lossy(&line).replace('\0', " "))
    });
    of_folder.collect()
}

#[test]
fn a_wire_killed_at_any_moment_leaves_no_process_and_comes_up_again() {
    let link = "name = \"link\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\n";
    if Bench::with_wire("link.toml", link).is_none() {
        return;
    }
    at_random_moments(2, |mutator| {
        let bench = Bench::new();
        bench.write("link.toml", link);
        let up = ["wire", "up", "link.toml", "--foreground"];
        let mut wire = bench.command(&up).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let at = moment(mutator, Duration::from_millis(600));
        let program = program(&bench, mutator, at);
        let waited = program.as_ref().map_or(Duration::ZERO, |_| Duration::from_millis(250));
        std::thread::sleep(at.saturating_sub(waited));
        kill(&mut wire);
        if let Some(mut program) = program {
            kill(&mut program);
        }
        let began = Instant::now();
        while !processes(&bench).is_empty() {
            assert!(began.elapsed() < Duration::from_secs(5), "left after {at:?}: {:?}", processes(&bench));
            std::thread::sleep(Duration::from_millis(20));
        }
        // What is left of it is told, and the next one takes its place.
        bench.run(&["wire", "status"]).ok();
        bench.run(&["wire", "link.toml", "--", "true"]).ok();
        bench.run(&["wire", "down", "--stale"]);
        let status = bench.run(&["wire", "status", "--json"]).ok();
        let status: Value = serde_json::from_str(&status.out).unwrap();
        assert_eq!(status["wires"], json!([]), "killed after {at:?}");
        assert_eq!(processes(&bench), Vec::<String>::new());
    });
}

/// In half of the cases, a program on a host of the wire.
fn program(bench: &Bench, mutator: &mut Mutator, at: Duration) -> Option<Child> {
    if mutator.below(2) == 0 || at < Duration::from_millis(250) {
        return None;
    }
    std::thread::sleep(Duration::from_millis(250));
    let exec = ["wire", "exec", "b", "--", "sh", "-c", "setsid sleep 1000 & sleep 1000"];
    Some(bench.command(&exec).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}
