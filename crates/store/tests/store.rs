//! Runs as another crate sees them.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

mod scenarios;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use scenarios::{new_run, record, sequences, summary};
use trunkline_core::{Duration, Time};
use trunkline_metrics::{TraceSink, VoiceEvent, VoiceEventKind};
use trunkline_store::{Backend, Imported, Retention, RunFilter, Status, Store, StoreError};
use trunkline_testkit::alloc::{CountingAllocator, peak_during};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_run_is_written_in_parallel_interrupted_and_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Store::open(directory.path()).unwrap();
    scenarios::written_in_parallel_interrupted_and_resumed(directory.path(), &open);
}

#[test]
fn runs_are_found_compared_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    scenarios::found_compared_and_removed(directory.path(), &|| Store::open(directory.path()).unwrap());
}

#[test]
fn events_lie_beside_their_trace_as_soon_as_they_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let run = store.begin(new_run(Backend::Sim, "a = 1\n")).unwrap();
    let event = |kind, samples| VoiceEvent {
        member: 2,
        channel: 1,
        kind,
        at: Time::from_nanos(7_000),
        length: Duration::from_micros(125),
        samples,
    };
    let mut writer = run.begin_repetition(0, 0, &["bulk", "voice"]).unwrap();
    writer.event(1, &event(VoiceEventKind::CaptureOverflow, 1));
    writer.event(1, &event(VoiceEventKind::Underflow, 0));
    let traces = run.info().unwrap().directory.join("traces");
    let file = traces.join("p000-r00-voice.events.csv");
    let expected = "member,channel,event,at_ns,length_ns,samples\n\
                    2,1,capture-overflow,7000,125000,1\n2,1,underflow,7000,125000,0\n";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    assert!(!traces.join("p000-r00-bulk.events.csv").exists(), "nothing happened there");
    drop(writer);
    // It is measured anew, and nothing happens.
    run.begin_repetition(0, 0, &["bulk", "voice"]).unwrap().close().unwrap();
    assert!(!file.exists());
}

#[test]
fn repetitions_that_another_store_has_measured_are_taken_once_with_their_files() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, other) = (Store::open(here.path()).unwrap(), Store::open(there.path()).unwrap());
    let measured = other.begin(new_run(Backend::Sim, "a = 1\n")).unwrap();
    let mut writer = measured.begin_repetition(1, 0, &["voice"]).unwrap();
    (0..10).for_each(|sequence| writer.write(0, &record(sequence)));
    writer.close().unwrap().finish(&summary(false), &[]).unwrap();
    let from = measured.finish(Status::Partial).unwrap();
    let mut archive = Vec::new();
    other.export_measured(from.id, &mut archive).unwrap();

    let run = store.begin(new_run(Backend::Sim, "a = 1\n")).unwrap();
    let missing = run.missing().unwrap().len();
    let taken = |run: &trunkline_store::RunWriter| run.adopt_archive(archive.as_slice()).unwrap();
    assert_eq!((taken(&run).taken, taken(&run).known), (1, 1));
    assert_eq!(run.missing().unwrap().len(), missing - 1);
    let trace = |folder: &Path| std::fs::read(folder.join("traces/p001-r00-voice.parquet")).unwrap();
    let info = run.finish(Status::Partial).unwrap();
    assert_eq!(trace(&info.directory), trace(&from.directory));
    let left = std::fs::read_dir(here.path()).unwrap().flatten().map(|entry| entry.file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().starts_with("incoming-")));

    let differs = store.begin(new_run(Backend::Sim, "a = 2\n")).unwrap();
    let refused = differs.adopt_archive(archive.as_slice()).unwrap_err();
    assert!(matches!(refused, StoreError::Different { .. }) && refused.is_bad_input(), "{refused}");
}

#[test]
fn of_a_torn_archive_nothing_is_taken() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, other) = (Store::open(here.path()).unwrap(), measured(there.path()));
    let mut archive = Vec::new();
    other.export_measured(1, &mut archive).unwrap();
    let run = store.begin(new_run(Backend::Sim, "a = 1\n")).unwrap();
    let missing = run.missing().unwrap();
    // Before the last file, in the middle of it, and without the end of the archive.
    let second_last = archive.len() - 1024 - 3 * 512;
    for length in [second_last, second_last / 2] {
        run.adopt_archive(&archive[..length]).unwrap_err();
        assert_eq!(run.missing().unwrap(), missing);
    }
    assert_eq!(run.adopt_archive(archive.as_slice()).unwrap().taken, 4);
    let info = run.finish(Status::Complete).unwrap();
    let (sent, got) = (other.run(1).unwrap(), store.run(info.id).unwrap());
    for (sent, got) in sent.points.iter().zip(&got.points) {
        for (sent, got) in sent.repetitions.iter().zip(&got.repetitions) {
            assert_eq!(sent.summary, got.summary);
            let bytes = |path: &Path| std::fs::read(path).unwrap();
            assert_eq!(bytes(&sent.traces[0].1), bytes(&got.traces[0].1));
            assert_eq!(bytes(&sent.audio[0]), bytes(&got.audio[0]));
        }
    }
    let left =
        files_below(&info.directory).into_iter().find(|path| path.extension().is_some_and(|e| e == "part"));
    assert_eq!(left, None);
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// A store with one measured and tagged run.
fn measured(directory: &Path) -> Store {
    let store = Store::open(directory).unwrap();
    let run = store.begin(new_run(Backend::Sim, "a = 1\n")).unwrap();
    for (point, repetition) in run.missing().unwrap() {
        let mut writer = run.begin_repetition(point, repetition, &["voice"]).unwrap();
        writer.write(0, &record(point + 7));
        let audio = writer.audio_directory().join("voice-0-0.wav");
        std::fs::create_dir_all(audio.parent().unwrap()).unwrap();
        std::fs::write(&audio, "RIFF").unwrap();
        writer.close().unwrap().finish(&summary(false), &[audio]).unwrap();
    }
    run.finish(Status::Complete).unwrap();
    store.tag(1, "reference", true).unwrap();
    store
}

#[test]
fn a_run_goes_from_store_to_store_as_it_is() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let from = measured(here.path());
    let mut archive = Vec::new();
    from.export(1, &mut archive).unwrap();
    let to = Store::open(there.path()).unwrap();
    to.begin(new_run(Backend::Live, "b = 2\n")).unwrap().finish(Status::Partial).unwrap();
    assert_eq!(to.import(archive.as_slice()).unwrap(), Imported::New(2));
    assert_eq!(to.import(archive.as_slice()).unwrap(), Imported::Known(2));

    let (mut sent, mut got) = (from.run(1).unwrap(), to.run(2).unwrap());
    assert_eq!(got.info.directory, there.path().join("runs/2-voice-beside-bulk-sim"));
    assert_eq!(sequences(&got.points[1].repetitions[1].traces[0].1), [8]);
    assert_eq!(std::fs::read(&got.points[0].repetitions[0].audio[0]).unwrap(), b"RIFF");
    // But for its number and its place it is the same.
    for run in [&mut sent, &mut got] {
        (run.info.id, run.info.directory) = (0, PathBuf::new());
        for repetition in run.points.iter_mut().flat_map(|point| &mut point.repetitions) {
            (repetition.traces, repetition.audio) = (Vec::new(), Vec::new());
        }
    }
    assert_eq!(sent, got);
}

#[test]
fn what_is_no_archive_leaves_no_run() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut archive = Vec::new();
    measured(here.path()).export(1, &mut archive).unwrap();
    let to = Store::open(there.path()).unwrap();
    let refused = |archive: &[u8]| {
        let error = to.import(archive).unwrap_err();
        assert!(matches!(error, StoreError::NoArchive { .. } | StoreError::Io { .. }), "{error}");
        assert_eq!(to.runs().unwrap(), [], "{error}");
        error.to_string()
    };
    refused(b"");
    refused(b"no archive");
    // Cut in the middle of a file, and in the description.
    refused(&archive[..archive.len() / 2]);
    refused(&archive[..700]);
    // Links, and names that lead out of the run's folder.
    let json_length = u64::from_str_radix(std::str::from_utf8(&archive[124..135]).unwrap(), 8).unwrap();
    let after = 512 + json_length.next_multiple_of(512) as usize;
    for name in ["../outside", "/outside", "files/../../outside", "elsewhere"] {
        let mut hostile = archive[..after].to_vec();
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(4);
        header.set_mode(0o644);
        header.set_cksum();
        hostile.extend_from_slice(header.as_bytes());
        hostile.extend_from_slice(&[b'x'; 512]);
        let error = refused(&hostile);
        assert!(error.contains("is not a file of a run"), "{error}");
    }
    assert_eq!(std::fs::read_dir(there.path().join("runs")).unwrap().count(), 0);
}

/// An archive with this description and no files.
fn archive_of(description: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_size(description.len() as u64);
    header.set_mode(0o644);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, "run.json", description).unwrap();
    archive.into_inner().unwrap()
}

#[test]
fn importing_takes_little_more_memory_than_the_archive_has() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut archive = Vec::new();
    measured(here.path()).export(1, &mut archive).unwrap();
    let length = u64::from_str_radix(std::str::from_utf8(&archive[124..135]).unwrap(), 8).unwrap() as usize;
    let description: serde_json::Value = serde_json::from_slice(&archive[512..512 + length]).unwrap();
    let to = Store::open(there.path()).unwrap();
    let import = |what: &str, factor: u64, description: &[u8]| {
        let archive = archive_of(description);
        let (peak, imported) = peak_during(|| to.import(archive.as_slice()));
        let most = factor * archive.len() as u64 + (1 << 20);
        assert!(peak <= most, "{what}: {peak} bytes for {}, {imported:?}", archive.len());
        imported.map_err(|error| error.to_string())
    };
    // As an attack found it: 37 MB took 410 MB.
    let nothing = format!("{{\"trunkline\":1,\"x\":[{}0]}}", "[],".repeat(300_000));
    assert!(import("no run", 3, nothing.as_bytes()).unwrap_err().contains("`run`"));
    let later = import("a later version", 3, b"{\"trunkline\":2,\"run\":{}}").unwrap_err();
    assert!(later.contains("update Trunkline"), "{later}");
    // Many points that are as short as they can be, and as they are.
    for (what, factor, is_short) in [("short repetitions", 16, true), ("whole repetitions", 6, false)] {
        let mut many = description.clone();
        let mut point = many["run"]["points"][0].clone();
        if is_short {
            point["repetitions"] = serde_json::json!([
                { "index": 0, "partial": true, "summary": null, "traces": [], "audio": [] }
            ]);
        }
        let points = (0..4_000).map(|index| {
            point["index"] = index.into();
            point.clone()
        });
        many["run"]["points"] = points.collect();
        many["run"]["info"]["key"] = format!("{:032x}", u128::from(is_short)).into();
        import(what, factor, &serde_json::to_vec(&many).unwrap()).unwrap();
    }
}

/// Long names and extensions of a tar archive are read before the entry that they belong to.
#[test]
fn names_of_any_length_in_an_archive_take_little_memory() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut archive = Vec::new();
    measured(here.path()).export(1, &mut archive).unwrap();
    let length = u64::from_str_radix(std::str::from_utf8(&archive[124..135]).unwrap(), 8).unwrap();
    archive.truncate(512 + length.next_multiple_of(512) as usize);
    let to = Store::open(there.path()).unwrap();
    for kind in [tar::EntryType::GNULongName, tar::EntryType::GNULongLink, tar::EntryType::XHeader] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(64 << 20);
        header.set_cksum();
        let name = std::io::repeat(b'a').take(64 << 20);
        let hostile = archive.chain(header.as_bytes().as_slice()).chain(name);
        let (peak, imported) = peak_during(|| to.import(hostile));
        assert!(peak < 8 << 20, "{kind:?}: {peak} bytes");
        let error = imported.unwrap_err().to_string();
        assert!(error.contains("longer than 1 MiB"), "{error}");
    }
    assert_eq!(std::fs::read_dir(there.path().join("runs")).unwrap().count(), 0);
}

#[test]
fn runs_are_marked_chosen_and_kept_for_a_while() {
    let directory = tempfile::tempdir().unwrap();
    let store = measured(directory.path());
    for backend in [Backend::Sim, Backend::Live] {
        store.begin(new_run(backend, "a = 1\n")).unwrap().finish(Status::Partial).unwrap();
    }
    store.tag(1, "before the change", true).unwrap();
    store.tag(1, "reference", true).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs[0].tags, ["before the change", "reference"]);
    let chosen = |filter: RunFilter| -> Vec<u64> {
        runs.iter().filter(|run| filter.matches(run)).map(|run| run.id).collect()
    };
    assert_eq!(chosen(RunFilter::default()), [1, 2, 3]);
    assert_eq!(chosen(RunFilter { name: Some("BESIDE".to_owned()), ..RunFilter::default() }), [1, 2, 3]);
    assert_eq!(chosen(RunFilter { backend: Some(Backend::Live), ..RunFilter::default() }), [3]);
    assert_eq!(chosen(RunFilter { status: Some(Status::Partial), ..RunFilter::default() }), [2, 3]);
    assert_eq!(chosen(RunFilter { tags: vec!["reference".to_owned()], ..RunFilter::default() }), [1]);
    assert_eq!(chosen(RunFilter { since: Some(runs[1].started), ..RunFilter::default() }), [2, 3]);
    assert_eq!(chosen(RunFilter { before: Some(runs[1].started), ..RunFilter::default() }), [1]);

    let hours = |hours: i64| jiff::SignedDuration::from_hours(hours);
    let tomorrow = runs[2].started + hours(24);
    let expired = |latest, within| Retention { latest, within: hours(within) }.expired(&runs, tomorrow);
    assert_eq!(expired(0, 1), [2, 3], "one has tags");
    assert_eq!(expired(1, 1), [] as [u64; 0], "each is the latest of its backend");
    assert_eq!(expired(0, 48), [] as [u64; 0]);
    store.tag(1, "reference", false).unwrap();
    store.tag(1, "before the change", false).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(Retention { latest: 1, within: hours(1) }.expired(&runs, tomorrow), [1]);
    assert!(matches!(store.tag(99, "x", true), Err(StoreError::NoSuchRun { .. })));
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(Store::open(directory.path()).unwrap());
    let path = directory.path().join("trunkline.db");
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = Store::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("has format 99") && error.contains("update Trunkline"), "{error}");
}

/// A file of a measured run, and its bytes.
fn trace_of(directory: &Path) -> (PathBuf, Vec<u8>) {
    let path = Store::open(directory).unwrap().run(1).unwrap().points[0].repetitions[0].traces[0].1.clone();
    let bytes = std::fs::read(&path).unwrap();
    (path, bytes)
}

#[test]
fn a_store_whose_database_is_missing_or_empty_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(measured(directory.path()));
    let (trace, bytes) = trace_of(directory.path());
    let database = directory.path().join("trunkline.db");
    let away = directory.path().join("away.db");
    std::fs::rename(&database, &away).unwrap();
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(directory.path().join(format!("trunkline.db{suffix}")));
    }
    let refused = || {
        let error = Store::open(directory.path()).unwrap_err();
        assert!(matches!(error, StoreError::Lost { runs: 1, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("trunkline.db") && text.contains("`--store`"), "{text}");
    };
    refused();
    assert!(!database.exists(), "nothing is begun anew");
    std::fs::write(&database, "").unwrap();
    refused();
    std::fs::rename(&away, &database).unwrap();
    assert_eq!(Store::open(directory.path()).unwrap().runs().unwrap().len(), 1);
    assert_eq!(std::fs::read(trace).unwrap(), bytes);
}

#[test]
fn a_folder_that_the_database_does_not_know_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    drop(Store::open(directory.path()).unwrap());
    let backup = directory.path().join("backup.db");
    let database = directory.path().join("trunkline.db");
    rusqlite::Connection::open(&database)
        .unwrap()
        .execute("VACUUM INTO ?1", [backup.to_str().unwrap()])
        .unwrap();
    drop(measured(directory.path()));
    let (trace, bytes) = trace_of(directory.path());
    // An old backup knows nothing of run 1. Another folder is of a process that has died before it measured.
    std::fs::rename(&backup, &database).unwrap();
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(directory.path().join(format!("trunkline.db{suffix}")));
    }
    let begun = directory.path().join("runs/2-voice-beside-bulk-sim");
    std::fs::create_dir_all(begun.join("traces")).unwrap();
    std::fs::write(begun.join("experiment.toml"), "left").unwrap();
    let store = Store::open(directory.path()).unwrap();
    let run = store.begin(new_run(Backend::Sim, "b = 2\n")).unwrap();
    assert_eq!(run.info().unwrap().id, 2, "1 has measurements, and the other 2 has none");
    assert_eq!(std::fs::read(trace).unwrap(), bytes);
    assert_eq!(std::fs::read_to_string(begun.join("experiment.toml")).unwrap(), "b = 2\n");
}

#[test]
fn a_database_whose_version_was_changed_is_called_damaged() {
    let directory = tempfile::tempdir().unwrap();
    drop(measured(directory.path()));
    let path = directory.path().join("trunkline.db");
    for version in [0, 1] {
        rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", version).unwrap();
        let error = Store::open(directory.path()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(&format!("`user_version` is {version}")), "{error}");
    }
}

#[test]
fn folders_that_the_store_makes_are_its_users_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let made = directory.path().join("new/store");
    drop(measured(&made));
    assert_eq!([mode(&made), mode(&made.join("runs"))], [0o700; 2]);
    assert_eq!(mode(directory.path()), 0o755, "what was there before is its owner's affair");
    // The folder was there before: who may read it has been decided.
    let shared = directory.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o750)).unwrap();
    drop(Store::open(&shared).unwrap());
    assert_eq!(mode(&shared), 0o750);
}

/// `schema-1.sql` is the dump of a store of the first version with one run: every later version must read it.
#[test]
fn the_golden_database_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/schema-1.sql");
    let connection = rusqlite::Connection::open(directory.path().join("trunkline.db")).unwrap();
    connection.execute_batch(&std::fs::read_to_string(golden).unwrap()).unwrap();
    drop(connection);
    let store = Store::open(directory.path()).unwrap();
    let run = store.run(1).unwrap();
    assert_eq!((run.info.name.as_str(), run.info.status), ("Voice beside bulk!", Status::Complete));
    assert_eq!(run.points[1].repetitions[0].summary, Some(summary(false)));
    assert_eq!(run.points[1].repetitions[0].traces[0].0, "voice");
    assert!(run.info.settings.is_empty());
    store.begin(new_run(Backend::Live, "x = 1")).unwrap().finish(Status::Partial).unwrap();
    assert_eq!(store.runs().unwrap().len(), 2);
}

/// Writes the store of which the golden dump of a new schema is made (`.dump` and `PRAGMA user_version`); the old ones
/// stay.
#[test]
#[ignore = "run by hand after a change of the schema, with TRUNKLINE_GOLDEN=<folder to write>"]
fn write_the_golden_store() {
    let store = Store::open(Path::new(&std::env::var_os("TRUNKLINE_GOLDEN").unwrap())).unwrap();
    let run = store.begin(new_run(Backend::Sim, "a = 1\n")).unwrap();
    for (point, repetition) in run.missing().unwrap() {
        let mut writer = run.begin_repetition(point, repetition, &["voice"]).unwrap();
        (0..100_000).for_each(|n| writer.write(0, &record(n)));
        let audio = writer.audio_directory().join("voice-0-0.wav");
        writer.close().unwrap().finish(&summary(false), &[audio]).unwrap();
    }
    run.finish(Status::Complete).unwrap();
}
