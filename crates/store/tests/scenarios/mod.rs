//! What every store does, whatever keeps its rows.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]
#![allow(dead_code, unreachable_pub, reason = "every test program uses a part of this")]

use std::path::{Path, PathBuf};

use trunkline_core::{Duration, Time};
use trunkline_experiment::{Axis, NamedFiles};
use trunkline_metrics::{Fate, Record, RepetitionSummary, TraceSink};
use trunkline_store::{Backend, NewRun, Status, Store, StoreError, StoredRun, read_trace};

pub fn new_run(backend: Backend, text: &str) -> NewRun {
    let numbers = Some(vec![1.0, 2.0]);
    let values = vec!["1".to_owned(), "2".to_owned()];
    NewRun {
        name: "Voice beside bulk!".to_owned(),
        backend,
        text: text.to_owned(),
        file: PathBuf::from("voice.toml"),
        named: NamedFiles::default(),
        settings: vec!["seed=18446744073709551615".to_owned()],
        shard: None,
        axes: vec![Axis { key: "flow.voice.count".to_owned(), values, numbers, unit: String::new() }],
        limits: Vec::new(),
        seed: u64::MAX,
        repetitions: 2,
        points: vec![(0, vec![0]), (1, vec![1])],
        repetition_length: Duration::from_secs(30),
        machine: "test".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

pub fn record(n: u32) -> Record {
    let at = |plus: u64| Time::from_nanos(u64::from(n) * 1000 + plus);
    Record {
        member: 0,
        channel: 1,
        sequence: n,
        due: at(0),
        sent: Some(at(1)),
        received: Some(at(70)),
        reflected: None,
        payload: 80,
        fate: Fate::Received,
    }
}

pub fn sequences(path: &Path) -> Vec<u32> {
    let mut read = Vec::new();
    read_trace(path, &mut |record| read.push(record.sequence)).unwrap();
    read
}

pub fn summary(partial: bool) -> RepetitionSummary {
    RepetitionSummary { duration: Duration::from_secs(30), partial, ..RepetitionSummary::default() }
}

/// Of a run that is written by two threads, interrupted, and finished later.
pub fn written_in_parallel_interrupted_and_resumed(directory: &Path, open: &dyn Fn() -> Store) {
    let store = open();
    let run = store.begin(new_run(Backend::Sim, "a = 1\n")).unwrap();
    assert_eq!(run.missing().unwrap(), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    std::thread::scope(|scope| {
        for point in 0..2 {
            let run = &run;
            scope.spawn(move || {
                let mut writer = run.begin_repetition(point, 0, &["voice", "Voice"]).unwrap();
                (0..10_000).for_each(|n| writer.write((n % 2) as usize, &record(n)));
                let audio = writer.audio_directory().join("a.wav");
                let closed = writer.close().unwrap();
                assert_eq!(sequences(&closed.traces()[0].1), (0..10_000).step_by(2).collect::<Vec<_>>());
                closed.finish(&summary(point == 1), &[audio]).unwrap();
            });
        }
    });
    assert!(matches!(store.resume(1), Err(StoreError::InUse { id: 1 })));
    assert!(matches!(store.remove(1), Err(StoreError::InUse { id: 1 })));
    // A second opening leaves a living run alone.
    assert_eq!(open().runs().unwrap()[0].status, Status::Running);
    // A driver failed: the repetition is dropped.
    let mut dropped = run.begin_repetition(0, 1, &["voice"]).unwrap();
    dropped.write(0, &record(5));
    drop(dropped);
    let info = run.finish(Status::Partial).unwrap();
    assert_eq!((info.status, info.repetitions_done, info.points), (Status::Partial, 1, 2));
    assert_eq!(info.directory, directory.join("runs/1-voice-beside-bulk-sim"));

    let stored = store.run(store.find("latest").unwrap()).unwrap();
    assert_eq!((stored.info.seed, stored.text.as_str()), (u64::MAX, "a = 1\n"));
    assert_eq!(stored.info.settings, ["seed=18446744073709551615"]);
    assert_eq!(stored.points[1].choice, [1]);
    assert_eq!(stored.points[1].repetitions[0].summary, Some(summary(true)));
    assert_eq!(stored.points[0].repetitions[0].audio, [info.directory.join("audio/p000-r00/a.wav")]);
    assert_eq!(stored.points[0].repetitions[1].summary, None);
    assert_eq!(sequences(&stored.points[0].repetitions[1].traces[0].1), [5]);
    let mut points = Vec::new();
    store.walk(1, |point| points.push(point)).unwrap();
    assert_eq!(StoredRun { points, ..store.outline(1).unwrap() }, stored);
    assert!(matches!(store.walk(2, drop), Err(StoreError::NoSuchRun { .. })));

    let run = store.resume(1).unwrap();
    assert_eq!(run.missing().unwrap(), [(1, 0), (0, 1), (1, 1)]);
    assert!(matches!(run.begin_repetition(0, 0, &["voice"]), Err(StoreError::NotMissing { .. })));
    for (point, repetition) in run.missing().unwrap() {
        let mut writer = run.begin_repetition(point, repetition, &["voice"]).unwrap();
        writer.write(0, &record(9));
        writer.sync().unwrap();
        writer.check().unwrap();
        writer.close().unwrap().finish(&summary(false), &[]).unwrap();
    }
    let info = run.finish(Status::Complete).unwrap();
    assert_eq!((info.status, info.repetitions_done), (Status::Complete, 4));
    let stored = store.run(1).unwrap();
    assert_eq!(stored.points[1].repetitions[0].traces.len(), 1);
    assert_eq!(sequences(&stored.points[1].repetitions[0].traces[0].1), [9]);
    let files = std::fs::read_dir(info.directory.join("traces")).unwrap().count();
    assert_eq!(files, 5, "two traces of the first repetition, one of each other, and nothing beside them");
    assert!(matches!(store.resume(1), Err(StoreError::Complete { id: 1 })));
}

/// Of several runs of two experiments.
pub fn found_compared_and_removed(directory: &Path, open: &dyn Fn() -> Store) {
    let store = open();
    let ended =
        |backend, text, status| store.begin(new_run(backend, text)).unwrap().finish(status).unwrap().id;
    let complete = ended(Backend::Sim, "a = 1\r\nb = 2\r\n", Status::Complete);
    ended(Backend::Sim, "a = 1\nb = 2\n", Status::Partial);
    ended(Backend::Sim, "another = 1\n", Status::Complete);
    let live = ended(Backend::Live, "a = 1\nb = 2\n", Status::Complete);
    let counterpart = store.counterpart(&store.run(live).unwrap()).unwrap();
    assert_eq!(counterpart.map(|run| run.info.id), Some(complete));
    assert_eq!(store.counterpart(&store.run(3).unwrap()).unwrap(), None);
    let wire = ended(Backend::Wire, "a = 1\nb = 2\n", Status::Complete);
    let beside = |id| store.counterpart(&store.run(id).unwrap()).unwrap().map(|run| run.info.id);
    assert_eq!([beside(wire), beside(live), beside(complete)], [Some(complete), Some(complete), Some(wire)]);

    assert_eq!(store.find("2").unwrap(), 2);
    assert_eq!(store.find("4-voice-beside-bulk-live").unwrap(), 4);
    let error = store.find("4-voice-beside-bulk-liv").unwrap_err().to_string();
    assert!(error.contains("did you mean `4-voice-beside-bulk-live`"), "{error}");
    assert!(store.find("77").unwrap_err().to_string().contains("there is no run `77`"));

    store.remove(4).unwrap();
    assert!(!directory.join("runs/4-voice-beside-bulk-live").exists());
    assert!(store.run(4).is_err());
    assert_eq!(ended(Backend::Live, "c = 1", Status::Complete), 6, "a number is not given again");
}
