//! The server of a team's database is killed, again and again: no repetition is lost, and none is measured twice.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]
#![cfg(all(target_os = "linux", feature = "postgres"))]

mod scenarios;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use scenarios::{new_run, record, sequences, summary};
use trunkline_metrics::TraceSink as _;
use trunkline_store::{Backend, NewRun, RunWriter, Status, Store, StoreError};
use trunkline_testkit::postgres::PostgresServer;
use trunkline_testkit::real_time::in_real_time;

const RECORDS: u32 = 500;

fn points(count: usize) -> NewRun {
    NewRun {
        points: (0..).zip((0..count).map(|point| vec![point])).collect(),
        repetitions: 1,
        ..new_run(Backend::Sim, "a = 1\n")
    }
}

/// Measures a repetition; its number of records tells it from others.
fn measure(run: &RunWriter, point: u32) -> Result<(), StoreError> {
    let mut writer = run.begin_repetition(point, 0, &["voice"])?;
    (0..RECORDS + point).for_each(|n| writer.write(0, &record(n)));
    let audio = writer.audio_directory().join("a.wav");
    writer.close()?.finish(&summary(false), &[audio])
}

/// That each point has exactly one repetition with the trace that was measured of it.
fn check(store: &Store, id: u64, count: usize) {
    let run = store.run(id).unwrap();
    assert_eq!((run.info.status, run.info.repetitions_done as usize), (Status::Complete, count));
    for point in &run.points {
        let [only] = &point.repetitions[..] else { panic!("point {} {:?}", point.index, point.repetitions) };
        assert!(!only.partial && only.summary == Some(summary(false)));
        assert_eq!((only.traces.len(), only.audio.len()), (1, 1));
        assert_eq!(sequences(&only.traces[0].1).len() as u32, RECORDS + point.index);
    }
}

/// Kills the server while `work` goes on, so many times at moments of chance, and starts it again.
fn killed(server: &PostgresServer, times: u32, work: impl FnOnce(&AtomicBool)) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut chance = 12_345_u64;
            for _ in 0..times {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                std::thread::sleep(Duration::from_millis(20 + (chance >> 33) % 200));
                server.kill();
                std::thread::sleep(Duration::from_millis((chance >> 40) % 100));
                server.start_again();
            }
            over.store(true, Ordering::Relaxed);
        });
        work(&over);
    });
}

#[test]
fn a_run_outlives_its_database() {
    let Some(server) = PostgresServer::start() else { return };
    let files = tempfile::tempdir().unwrap();
    let store = Store::connect(&server.url(), files.path()).unwrap();
    let mut measured: BTreeMap<u32, u32> = BTreeMap::new();
    let mut runs = 0;
    killed(&server, 4, |over| {
        // As many runs as it takes until the last kill, and one after it.
        loop {
            let is_last = over.load(Ordering::Relaxed);
            let run = store.begin(points(30)).unwrap();
            for (point, _) in run.missing().unwrap() {
                *measured.entry(point).or_default() += 1;
                measure(&run, point).unwrap();
            }
            assert_eq!(run.missing().unwrap(), []);
            assert_eq!(run.finish(Status::Complete).unwrap().status, Status::Complete);
            runs += 1;
            if is_last {
                break;
            }
        }
    });
    assert!(measured.values().all(|times| *times == runs), "each once in each run: {measured:?}");
    let all = store.runs().unwrap();
    assert_eq!(all.len(), runs as usize);
    all.iter().for_each(|run| check(&store, run.id, 30));
}

/// Somebody looks while the server is back and the process that measures has not noticed yet.
#[test]
fn a_run_that_was_taken_for_interrupted_goes_on() {
    let Some(server) = PostgresServer::start() else { return };
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::connect(&server.url(), here.path()).unwrap();
    let run = store.begin(points(3)).unwrap();
    let id = run.info().unwrap().id;
    measure(&run, 0).unwrap();
    server.kill();
    server.start_again();
    let other = Store::connect(&server.url(), there.path()).unwrap();
    assert_eq!(other.run(id).unwrap().info.status, Status::Partial, "its lock went with the server");
    measure(&run, 1).unwrap();
    assert_eq!(other.run(id).unwrap().info.status, Status::Running);
    assert!(matches!(other.resume(id), Err(StoreError::InUse { .. })), "it has its lock again");
    measure(&run, 2).unwrap();
    run.finish(Status::Complete).unwrap();
    check(&store, id, 3);
}

/// Somebody resumes it in that moment: then it is theirs.
#[test]
fn a_run_that_was_taken_over_is_left_alone() {
    let Some(server) = PostgresServer::start() else { return };
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url = format!("{}&connect_timeout=1", server.url());
    let store = Store::connect(&url, here.path()).unwrap();
    let run = store.begin(points(2)).unwrap();
    let id = run.info().unwrap().id;
    measure(&run, 0).unwrap();
    server.kill();
    server.start_again();
    let other = Store::connect(&url, there.path()).unwrap();
    let theirs = other.resume(id).unwrap();
    let error = measure(&run, 1).unwrap_err();
    assert!(matches!(error, StoreError::InUse { id: of } if of == id), "{error}");
    drop(run);
    assert_eq!(theirs.missing().unwrap(), [(1, 0)]);
    measure(&theirs, 1).unwrap();
    theirs.finish(Status::Complete).unwrap();
    assert_eq!(other.run(id).unwrap().info.repetitions_done, 2);
}

#[test]
fn a_database_that_stays_away_ends_the_run_and_it_is_resumed() {
    in_real_time(|| {
        let Some(server) = PostgresServer::start() else { return };
        let files = tempfile::tempdir().unwrap();
        let url = format!("{}&connect_timeout=1", server.url());
        let store = Store::connect(&url, files.path()).unwrap();
        let run = store.begin(points(3)).unwrap();
        measure(&run, 0).unwrap();
        let mut writer = run.begin_repetition(1, 0, &["voice"]).unwrap();
        (0..RECORDS).for_each(|n| writer.write(0, &record(n)));
        let closed = writer.close().unwrap();
        let trace = closed.traces()[0].1.clone();
        server.kill();
        let error = closed.finish(&summary(false), &[]).unwrap_err().to_string();
        assert!(error.contains("unreachable for 1 s") && error.contains("--resume"), "{error}");
        assert!(!error.contains("tester"), "{error}");
        // It is not waited for again.
        let before = Instant::now();
        assert!(run.finish(Status::Partial).is_err());
        assert!(before.elapsed() < Duration::from_secs(20), "a second wait would be as long as the first");
        assert_eq!(sequences(&trace).len() as u32, RECORDS, "what was measured stays");
        drop(store);

        server.start_again();
        resumed(&url, files.path());
    });
}

fn resumed(url: &str, files: &Path) {
    let store = Store::connect(url, files).unwrap();
    let info = &store.runs().unwrap()[0];
    assert_eq!((info.status, info.repetitions_done), (Status::Partial, 1));
    let run = store.resume(info.id).unwrap();
    assert_eq!(run.missing().unwrap(), [(1, 0), (2, 0)]);
    measure(&run, 1).unwrap();
    measure(&run, 2).unwrap();
    run.finish(Status::Complete).unwrap();
    check(&store, info.id, 3);
}
