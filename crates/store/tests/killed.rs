//! A process that measures is killed, or runs out of disk: what it had recorded is there afterwards.
//!
//! The child is this test program, started again with the store's folder in `TRUNKLINE_STORE_CHILD`.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use trunkline_core::{Duration, Time};
use trunkline_experiment::NamedFiles;
use trunkline_metrics::{Fate, Record, RepetitionSummary, TraceSink};
use trunkline_store::{Backend, NewRun, RunWriter, Status, Store, read_trace};

const CHILD: &str = "TRUNKLINE_STORE_CHILD";
/// How many repetitions the child completes before the one in which it dies.
const COMPLETE: &str = "TRUNKLINE_STORE_CHILD_COMPLETE";
/// Records of a complete repetition: more than a row group.
const RECORDS: u32 = 150_000;

fn record(n: u32) -> Record {
    Record {
        member: 0,
        channel: 0,
        sequence: n,
        due: Time::from_nanos(u64::from(n) * 1000),
        sent: Some(Time::from_nanos(u64::from(n) * 1000 + 5)),
        received: None,
        reflected: None,
        payload: 80,
        fate: Fate::Lost,
    }
}

/// Measures a repetition to its end.
fn measure(run: &RunWriter, repetition: u32) {
    let mut writer = run.begin_repetition(0, repetition, &["voice"]).unwrap();
    (0..RECORDS).for_each(|n| writer.write(0, &record(n)));
    writer.close().unwrap().finish(&RepetitionSummary::default(), &[]).unwrap();
}

/// Not a test: the child's life. Without the variable it does nothing.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let store = Store::open(Path::new(&directory)).unwrap();
    let complete = std::env::var(COMPLETE).map_or(0, |number| number.parse().unwrap());
    let new = NewRun {
        name: "killed".to_owned(),
        backend: Backend::Sim,
        text: String::new(),
        file: PathBuf::new(),
        named: NamedFiles::default(),
        settings: Vec::new(),
        shard: None,
        axes: Vec::new(),
        limits: Vec::new(),
        seed: 1,
        repetitions: complete + 1,
        points: vec![(0, vec![])],
        repetition_length: Duration::from_secs(1),
        machine: String::new(),
        version: String::new(),
    };
    let run = store.begin(new).unwrap();
    for repetition in 0..complete {
        measure(&run, repetition);
    }
    let mut writer = run.begin_repetition(0, complete, &["voice"]).unwrap();
    let mut n = 0;
    loop {
        for _ in 0..7_001 {
            writer.write(0, &record(n));
            n += 1;
        }
        match writer.sync() {
            Ok(()) => println!("synced {n}"),
            Err(error) => {
                println!("failed: {error}");
                assert!(writer.close().is_err());
                return;
            }
        }
    }
}

fn start(directory: &Path, shell: &str, complete: u32) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", &format!("{shell} exec \"$0\" --exact child --nocapture")])
        .arg(program)
        .env(CHILD, directory)
        .env(COMPLETE, complete.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The number in a line `synced N`, wherever the test harness begins it.
fn synced(line: &str) -> Option<u32> {
    line.split_once("synced ")?.1.trim().parse().ok()
}

/// How many records a trace has, in order and without a gap.
fn records(trace: &Path) -> u32 {
    let mut count = 0;
    read_trace(trace, &mut |read| {
        assert_eq!(*read, record(count));
        count += 1;
    })
    .unwrap();
    count
}

/// Opens the store as the next process does; how many records are there, in order and without a gap.
fn recovered(directory: &Path) -> u32 {
    let store = Store::open(directory).unwrap();
    let run = store.run(store.find("latest").unwrap()).unwrap();
    assert_eq!(run.info.status, Status::Partial);
    assert!(run.points[0].repetitions[0].partial);
    let trace = &run.points[0].repetitions[0].traces[0].1;
    let count = records(trace);
    assert_eq!(std::fs::read_dir(trace.parent().unwrap()).unwrap().count(), 1, "only the trace is left");
    assert_eq!(store.resume(run.info.id).unwrap().missing().unwrap(), [(0, 0)]);
    count
}

#[test]
fn a_killed_process_loses_nothing_that_was_on_disk() {
    // Before the first row group, around it (131,072 rows), after some; the moment within is the scheduler's.
    for kill_after in [1, 5, 18, 19, 20, 60] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = start(directory.path(), "", 0);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut safe = 0;
        for n in lines.by_ref().map_while(Result::ok).filter_map(|line| synced(&line)).take(kill_after) {
            safe = n;
        }
        child.kill().unwrap();
        // What it had printed before it died counts too.
        safe = lines.map_while(Result::ok).filter_map(|line| synced(&line)).last().unwrap_or(safe);
        child.wait().unwrap();
        assert!(safe > 0);
        let found = recovered(directory.path());
        assert!(found >= safe, "{found} records of at least {safe} after {kill_after} lines");
    }
}

#[test]
fn a_run_killed_in_its_second_repetition_is_resumed_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(directory.path(), "", 1);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.by_ref().filter_map(|line| synced(&line)).nth(25).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    let store = Store::open(directory.path()).unwrap();
    let killed = store.run(1).unwrap();
    assert_eq!((killed.info.status, killed.info.repetitions_done), (Status::Partial, 1));
    let [first, second] = &killed.points[0].repetitions[..] else { panic!("{killed:?}") };
    assert!(!first.partial && first.summary.is_some());
    assert!(second.partial && second.summary.is_none());
    assert_eq!(records(&first.traces[0].1), RECORDS);
    assert!(records(&second.traces[0].1) > RECORDS, "so that what is measured anew is seen to be new");

    let run = store.resume(1).unwrap();
    assert_eq!(run.missing().unwrap(), [(0, 1)]);
    measure(&run, 1);
    assert_eq!(run.finish(Status::Complete).unwrap().status, Status::Complete);

    let resumed = Store::open(directory.path()).unwrap().run(1).unwrap();
    assert_eq!((resumed.info.status, resumed.info.repetitions_done), (Status::Complete, 2));
    for repetition in &resumed.points[0].repetitions {
        assert!(!repetition.partial && repetition.summary.is_some());
        assert_eq!(records(&repetition.traces[0].1), RECORDS);
    }
    let traces = std::fs::read_dir(resumed.info.directory.join("traces")).unwrap().count();
    assert_eq!(traces, 2, "the traces and nothing beside them");
}

#[test]
fn a_full_disk_keeps_what_was_recorded() {
    // Files may not grow beyond 4 MiB (in units of 512 bytes in sh); the write that tries fails.
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(directory.path(), "trap '' XFSZ; ulimit -f 8192;", 0);
    let lines: Vec<String> =
        BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok).collect();
    assert!(child.wait().unwrap().success(), "no panic: {lines:?}");
    let safe = lines.iter().rev().find_map(|line| synced(line)).unwrap();
    assert!(
        lines.iter().any(|line| line.contains("failed: `") && line.contains("cannot be written")),
        "{lines:?}"
    );
    let found = recovered(directory.path());
    assert!(found >= safe, "{found} records of at least {safe}");
}
