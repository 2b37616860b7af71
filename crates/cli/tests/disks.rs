//! Stores on disks that cannot be written, and on disks that are full.

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use support::{Bench, Ran};
use trunkline_testkit::programs::is_installed;
use trunkline_testkit::skips::{Missing, skip_without};

const EXPERIMENT: &str = r#"
name = "calls"
duration = "200 ms"
repetitions = 3
hosts = { a = {}, b = {} }
link.trunk = { between = ["a", "b"], rate = "2 Mbit/s", delay = "5 ms" }
flow.voice = { from = "a", to = "b", transport = "udp", source = { kind = "voice" } }
limits = { "flow.voice.loss" = "< 1 %" }
"#;

/// The program in a mount namespace of its own, after `mounts`; `None`, as a skip, where there can be none.
fn mounted(bench: &Bench, mounts: &str, arguments: &[&str]) -> Option<Ran> {
    Some(in_mounts(bench, mounts, arguments)?.output().expect("unshare starts").into())
}

/// The same, not yet started.
fn in_mounts(bench: &Bench, mounts: &str, arguments: &[&str]) -> Option<Command> {
    let flags = ["--user", "--map-root-user", "--mount"];
    if !is_installed("unshare", "the Debian package `util-linux`") {
        return None;
    }
    let tried = Command::new("unshare").args(flags).arg("true").output().expect("it is installed");
    if !tried.status.success() {
        skip_without(Missing::Namespaces, &String::from_utf8_lossy(&tried.stderr));
        return None;
    }
    let program = bench.command(arguments);
    let mut command = Command::new("unshare");
    command.args(flags).args(["sh", "-c", &format!("{mounts} && exec \"$0\" \"$@\"")]);
    command.arg(program.get_program()).args(program.get_args());
    command.current_dir(bench.path("")).stdin(Stdio::null());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(command)
}

const READ_ONLY: &str = "mount --bind store store && mount -o remount,bind,ro store";

#[test]
fn a_read_only_store_can_be_looked_at_and_not_written() {
    let bench = Bench::new();
    bench.write("calls.toml", EXPERIMENT);
    bench.run(&["run", "calls.toml"]).ok();
    bench.run(&["run", "calls.toml", "--no-report"]).ok();
    let before = support::files_below(&bench.store());
    let Some(runs) = mounted(&bench, READ_ONLY, &["runs", "--json"]) else { return };
    assert_eq!(runs.ok().json()["runs"].as_array().unwrap().len(), 2);

    let report = mounted(&bench, READ_ONLY, &["report", "latest", "--json"]).unwrap().ok();
    assert_eq!(report.json()["runs"][0]["outcome"], "holds");
    assert!(report.err.contains("--html"), "where the report can be written: {}", report.err);
    let report = mounted(&bench, READ_ONLY, &["report", "1", "--html", "r.html"]).unwrap().ok();
    assert!(report.out.contains("r.html"), "{report:#?}");
    let html = std::fs::read_to_string(bench.path("r.html")).unwrap();
    assert!(
        html.contains("<script id=\"saved\"") && html.contains("Verdict"),
        "the page's views, and the report"
    );
    mounted(&bench, READ_ONLY, &["runs", "compare", "1", "2"]).unwrap().ok();

    for arguments in [&["run", "calls.toml"][..], &["runs", "tag", "1", "x"], &["runs", "remove", "1"]] {
        let refused = mounted(&bench, READ_ONLY, arguments).unwrap();
        assert_eq!(refused.code, Some(1), "{refused:#?}");
        assert!(refused.err.contains("is read-only"), "{}", refused.err);
        assert!(refused.err.contains("--store"), "{}", refused.err);
    }
    assert_eq!(support::files_below(&bench.store()), before);
}

#[test]
fn a_read_only_copy_of_a_store_in_use_has_what_was_stored_until_then() {
    let bench = Bench::new();
    bench.write("calls.toml", EXPERIMENT);
    bench.run(&["run", "calls.toml"]).ok();
    bench.write(
        "long.toml",
        EXPERIMENT.replace("200 ms", "1000 s").replace("repetitions = 3", "repetitions = 500"),
    );
    let mut running = bench.start(&["run", "long.toml", "--jobs", "1"]);
    let log = bench.store().join("trunkline.db-wal");
    for _ in 0..2000 {
        let runs = bench.run(&["runs", "--json"]).ok().json();
        if runs["runs"].as_array().is_some_and(|runs| runs.len() == 2) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // Killed, it leaves its log, which nobody can take into the database of a read-only store.
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(std::fs::metadata(&log).is_ok_and(|meta| meta.len() > 0));
    let _ = std::fs::remove_file(bench.store().join("trunkline.db-shm"));
    let Some(runs) = mounted(&bench, READ_ONLY, &["runs", "--json"]) else { return };
    let runs = runs.ok().json();
    assert_eq!(runs["runs"][0]["status"], "complete");
    assert_eq!(runs["runs"][1]["status"], "partial", "its process is dead: {runs}");
}

#[test]
fn a_read_only_store_of_an_earlier_version_can_be_looked_at() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.store().join("runs")).unwrap();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/data/schema-1.sql");
    let script = std::fs::read_to_string(schema).unwrap();
    let database = rusqlite::Connection::open(bench.store().join("trunkline.db")).unwrap();
    database.execute_batch(&script).unwrap();
    drop(database);
    let before = std::fs::read(bench.store().join("trunkline.db")).unwrap();
    let Some(runs) = mounted(&bench, READ_ONLY, &["runs", "--json"]) else { return };
    assert!(!runs.ok().json()["runs"].as_array().unwrap().is_empty());
    assert_eq!(std::fs::read(bench.store().join("trunkline.db")).unwrap(), before);
}

#[test]
fn a_full_disk_is_called_full() {
    let bench = Bench::new();
    bench.write("calls.toml", EXPERIMENT);
    std::fs::create_dir(bench.store()).unwrap();
    for size in ["8k", "40k", "72k", "120k", "200k"] {
        let mount = format!("mount -t tmpfs -o size={size} none store");
        let Some(ran) = mounted(&bench, &mount, &["run", "calls.toml"]) else { return };
        assert_eq!(ran.code, Some(1), "{size}: {ran:#?}");
        assert!(ran.err.contains("is full"), "{size}: {}", ran.err);
        assert!(!ran.err.contains("disk I/O error"), "{size}: {}", ran.err);
    }
}

#[test]
fn an_exact_recording_on_a_full_disk_ends_at_both_ends() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("full")).unwrap();
    let arguments = ["receive", "--listen", "127.0.0.1:0", "--to", "full/take.wav", "--exact", "--once"];
    let mount = "mount -t tmpfs -o size=200k none full";
    let arguments = [&arguments[..], &["--min-free", "0 B"]].concat();
    let Some(mut command) = in_mounts(&bench, mount, &arguments) else { return };
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut receiver = command.spawn().expect("unshare starts");
    let mut said = BufReader::new(receiver.stderr.take().expect("it is piped"));
    let mut waiting = String::new();
    said.read_line(&mut waiting).expect("it says where it is");
    let address = waiting.trim().rsplit(' ').next().unwrap_or_default();
    // Without an end of its own.
    let sent = bench.run(&["send", address, "--from", "tone:440", "--transport", "tcp"]);
    assert_eq!(sent.code, Some(1), "{sent:#?}");
    assert!(sent.err.contains("No space left on device"), "{}", sent.err);
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("it ends");
    assert_eq!(receiver.wait().unwrap().code(), Some(1), "{rest}");
    assert!(rest.contains("No space left on device"), "{rest}");
}
