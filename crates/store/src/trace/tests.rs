use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use trunkline_core::Time;
use trunkline_metrics::{Fate, Record};

use super::background::{OpenTraces, TraceWriter};
use super::file::{TraceFile, TraceKeys, Workshop, is_unfinished, repair};
use super::row::{FATES, encode};
use super::{Arrival, read_latencies, read_trace};

pub(super) fn keys() -> TraceKeys {
    TraceKeys { run: 1, point: 2, repetition: 3, flow: "voice".to_owned() }
}

fn all(path: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    read_trace(path, &mut |record| records.push(*record)).unwrap();
    records
}

fn bytes(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(encode).collect()
}

pub(super) fn record() -> impl Strategy<Value = Record> {
    let time = || prop_oneof![any::<u64>(), 0..100_000_u64, Just(u64::MAX)].prop_map(Time::from_nanos);
    let maybe = || proptest::option::of(time());
    let fate = (0..FATES.len()).prop_map(|fate| FATES[fate].0);
    (any::<u32>(), any::<u16>(), any::<u32>(), time(), maybe(), maybe(), maybe(), any::<u32>(), fate)
        .prop_map(|(member, channel, sequence, due, sent, received, reflected, payload, fate)| Record {
            member,
            channel,
            sequence,
            due,
            sent,
            received,
            reflected,
            payload,
            fate,
        })
}

/// The `n`th record of an orderly flow.
pub(super) fn nth(n: u32) -> Record {
    let at = |plus| Time::from_nanos(u64::from(n) * 1_000_000 + plus);
    Record {
        member: n % 3,
        channel: (n % 2) as u16,
        sequence: n / 6,
        due: at(0),
        sent: (n % 11 != 10).then(|| at(200)),
        received: (n % 7 != 6).then(|| at(51_000_000)),
        reflected: (n % 5 == 4).then(|| at(25_000_000)),
        payload: 80,
        // Those that the first format had.
        fate: FATES[n as usize % 5].0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(
        records in proptest::collection::vec(record(), 0..300),
        chunk in 1..40_usize,
        group_rows in 1..100_usize,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let mut workshop = Workshop::new().unwrap();
        let mut file = TraceFile::create(path.clone(), keys()).unwrap();
        for chunk in records.chunks(chunk) {
            file.append(&bytes(chunk), group_rows, &mut workshop).unwrap();
        }
        file.finish(&mut workshop).unwrap();
        prop_assert_eq!(all(&path), records);
        prop_assert!(!is_unfinished(&path));
    }

    /// Whatever was appended before the kill is there after the repair, whatever byte the last write came to.
    #[test]
    fn what_a_kill_leaves_is_repaired(
        records in proptest::collection::vec(record(), 1..200),
        group_rows in 1..100_usize,
        torn in 0..200_usize,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let mut workshop = Workshop::new().unwrap();
        let mut file = TraceFile::create(path.clone(), keys()).unwrap();
        for chunk in records.chunks(7) {
            file.append(&bytes(chunk), group_rows, &mut workshop).unwrap();
        }
        // Dropped, not finished; and the next group and the next block are cut short.
        drop(file);
        for suffix in ["part", "groups", "journal"] {
            use std::io::Write;
            let path = directory.path().join(format!("t.parquet.{suffix}"));
            std::fs::File::options().append(true).open(path).unwrap().write_all(&vec![0x5a; torn]).unwrap();
        }
        repair(&path, &keys()).unwrap();
        prop_assert_eq!(all(&path), records);
        prop_assert!(!is_unfinished(&path));
    }
}

#[test]
fn rows_that_are_in_a_group_and_in_the_journal_are_taken_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let journal = directory.path().join("t.parquet.journal");
    let records: Vec<Record> = (0..20).map(nth).collect();
    let mut workshop = Workshop::new().unwrap();
    let mut file = TraceFile::create(path.clone(), keys()).unwrap();
    file.append(&bytes(&records[..15]), 100, &mut workshop).unwrap();
    let before = std::fs::read(&journal).unwrap();
    file.append(&bytes(&records[15..]), 20, &mut workshop).unwrap();
    drop(file);
    // Killed after the group was entered and before the journal was cleared.
    std::fs::write(&journal, before).unwrap();
    repair(&path, &keys()).unwrap();
    assert_eq!(all(&path), records);
}

#[test]
fn a_cut_group_is_taken_from_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let records: Vec<Record> = (0..30).map(nth).collect();
    let mut workshop = Workshop::new().unwrap();
    let mut file = TraceFile::create(path.clone(), keys()).unwrap();
    file.append(&bytes(&records[..20]), 20, &mut workshop).unwrap();
    file.append(&bytes(&records[20..]), 20, &mut workshop).unwrap();
    drop(file);
    // The second repair finds what the first would have left, had it been killed before its footer was whole.
    let part = directory.path().join("t.parquet.part");
    let mut half = std::fs::read(&part).unwrap();
    half.extend_from_slice(b"PAR1 half a group");
    std::fs::write(&part, half).unwrap();
    repair(&path, &keys()).unwrap();
    assert_eq!(all(&path), records);
    repair(&path, &keys()).unwrap();
    assert_eq!(all(&path), records);
}

#[test]
fn a_trace_that_was_not_begun_becomes_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    assert!(is_unfinished(&path));
    repair(&path, &keys()).unwrap();
    assert_eq!(all(&path), []);
    assert!(!is_unfinished(&path));
}

#[test]
fn latencies_are_those_of_messages_sent_and_received() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let records: Vec<Record> = (0..500).map(nth).collect();
    let mut workshop = Workshop::new().unwrap();
    let mut file = TraceFile::create(path.clone(), keys()).unwrap();
    file.append(&bytes(&records), 200, &mut workshop).unwrap();
    file.finish(&mut workshop).unwrap();
    let mut read = Vec::new();
    read_latencies(&path, &mut |arrival| read.push(arrival)).unwrap();
    let expected: Vec<Arrival> = records
        .iter()
        .filter_map(|r| Some(Arrival { due: r.due, sent: r.sent?, received: r.received?, fate: r.fate }))
        .collect();
    assert_eq!(read, expected);
    assert!(expected.len() < 500);
}

#[test]
fn the_background_keeps_the_order_of_every_flow() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    let files = paths.iter().map(|path| TraceFile::create(path.clone(), keys()).unwrap()).collect();
    let open = OpenTraces::default();
    let mut writer = TraceWriter::start(files, Arc::clone(&open)).unwrap();
    for n in 0..30_000 {
        writer.write((n % 2) as usize, &nth(n));
        if n % 9_000 == 0 {
            writer.sync().unwrap();
        }
    }
    writer.write(7, &nth(0));
    writer.close().unwrap();
    for (flow, path) in paths.iter().enumerate() {
        let expected: Vec<Record> = (0..30_000).filter(|n| n % 2 == flow as u32).map(nth).collect();
        assert!(all(path) == expected);
    }
    assert_eq!(open.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn a_file_that_is_no_trace_is_refused_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    std::fs::write(&path, b"PAR1 not at all PAR1").unwrap();
    let error = read_trace(&path, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("t.parquet` is damaged"), "{error}");
}

/// Files that earlier versions wrote: every later one must read them. The format is the same in both; the first has
/// dictionaries where the second has differences.
#[test]
fn the_golden_traces_are_read() {
    for name in ["trace-format-1.parquet", "trace-format-1-delta.parquet"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        let expected: Vec<Record> = (0..100).map(nth).collect();
        assert_eq!(all(&path), expected, "{name}");
        assert_eq!(expected[4].fate, Fate::Refused);
    }
}

/// Writes the golden trace of a new format or encoding; the old ones stay.
#[test]
#[ignore = "run by hand after a change of the format, with TRUNKLINE_GOLDEN=<file to write>"]
fn write_the_golden_trace() {
    let path = std::path::PathBuf::from(std::env::var_os("TRUNKLINE_GOLDEN").unwrap());
    let records: Vec<Record> = (0..100).map(nth).collect();
    let mut workshop = Workshop::new().unwrap();
    let mut file = TraceFile::create(path, keys()).unwrap();
    for records in records.chunks(30) {
        file.append(&bytes(records), 60, &mut workshop).unwrap();
    }
    file.finish(&mut workshop).unwrap();
}
