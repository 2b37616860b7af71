use std::path::PathBuf;

use proptest::prelude::*;
use trunkline_core::{Duration, Time};
use trunkline_metrics::{Fate, Record};

use super::file::{TraceFile, Workshop};
use super::row::encode;
use super::tests::{keys, nth, record};
use super::{LatencySeries, latency_cdf, latency_series};

/// A trace of these records in groups of so many rows.
fn trace(directory: &tempfile::TempDir, records: &[Record], group_rows: usize) -> PathBuf {
    let mut workshop = Workshop::new().unwrap();
    let mut file = TraceFile::create(directory.path().join("t.parquet"), keys()).unwrap();
    for chunk in records.chunks(group_rows.min(4096)) {
        let bytes: Vec<u8> = chunk.iter().flat_map(encode).collect();
        file.append(&bytes, group_rows, &mut workshop).unwrap();
    }
    file.finish(&mut workshop).unwrap()
}

const ALL: usize = LatencySeries::EXACT_UP_TO;

/// What a series of these records should be, if all are in it.
fn exact(records: &[Record], from: Time, to: Time) -> LatencySeries {
    let within = |at: &Time| from <= *at && *at < to;
    let mut series = LatencySeries { is_exact: true, ..LatencySeries::default() };
    for record in records.iter().filter(|record| record.fate != Fate::Duplicate) {
        match (record.sent, record.received) {
            (Some(sent), Some(received)) if within(&sent) => series.points.push((sent, received.since(sent))),
            (Some(_), Some(_)) => {}
            _ if record.fate == Fate::Lost && within(&record.due) => {
                series.lost.push(record.due);
            }
            _ => {}
        }
    }
    series.points.sort_unstable();
    series.lost.sort_unstable();
    (series.counted, series.lost_counted) = (series.points.len() as u64, series.lost.len() as u64);
    series
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is in the trace and whatever its groups say of themselves, a range holds what lies in it.
    #[test]
    fn a_range_holds_what_lies_in_it(
        records in proptest::collection::vec(record(), 0..300),
        group_rows in 1..100_usize,
        range in (any::<u64>(), any::<u64>()),
        near in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = trace(&directory, &records, group_rows);
        let scale = |n: u64| Time::from_nanos(if near { n % 100_000 } else { n });
        let (from, to) = (scale(range.0.min(range.1)), scale(range.0.max(range.1)));
        prop_assert_eq!(latency_series(&path, Some((from, to)), 7, ALL).unwrap(), exact(&records, from, to));
    }

    #[test]
    fn a_distribution_holds_every_latency(records in proptest::collection::vec(record(), 0..300)) {
        let directory = tempfile::tempdir().unwrap();
        let path = trace(&directory, &records, 40);
        let mut latencies: Vec<Duration> =
            exact(&records, Time::ZERO, Time::MAX).points.iter().map(|point| point.1).collect();
        latencies.extend(records.iter().filter(|r| r.sent == Some(Time::MAX) && r.fate != Fate::Duplicate)
            .filter_map(|r| Some(r.received?.since(r.sent?))));
        latencies.sort_unstable();
        let cdf = latency_cdf(&path, latencies.len() + 1).unwrap();
        prop_assert_eq!(cdf.count as usize, latencies.len());
        // With a point for each rank, all of them are points.
        if let Some(last) = latencies.last() {
            prop_assert_eq!(cdf.points.last().map(|point| point.latency), Some(*last));
            prop_assert!(cdf.points.is_sorted_by(|a, b| a.latency <= b.latency && a.share < b.share));
            prop_assert!(cdf.points.iter().all(|point| latencies.binary_search(&point.latency).is_ok()));
        }
    }
}

#[test]
fn all_of_a_short_trace_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..20_000).map(nth).collect();
    let path = trace(&directory, &records, 5_000);
    assert_eq!(latency_series(&path, None, 100, ALL).unwrap(), exact(&records, Time::ZERO, Time::MAX));
}

#[test]
fn of_a_long_trace_no_peak_is_missing() {
    const RECORDS: u32 = 200_000;
    let directory = tempfile::tempdir().unwrap();
    let mut records: Vec<Record> = (0..RECORDS).map(nth).collect();
    for record in &mut records {
        let extra = Duration::from_nanos(u64::from(record.sequence.wrapping_mul(2_654_435_761) % 1_000_003));
        record.received = record.received.map(|received| received + extra);
    }
    let path = trace(&directory, &records, 30_000);
    let all = exact(&records, Time::ZERO, Time::MAX);
    let buckets = 500;
    let series = latency_series(&path, None, buckets, ALL).unwrap();
    assert_eq!(
        (series.is_exact, series.counted, series.lost_counted),
        (false, all.counted, all.lost_counted)
    );
    assert!(series.points.is_sorted() && series.points.len() <= 4 * buckets, "{}", series.points.len());
    assert!(series.points.iter().all(|point| all.points.binary_search(point).is_ok()), "every point is one");
    let length = (1_000_000 * u64::from(RECORDS)).div_ceil(buckets as u64);
    let extremes = |points: &[(Time, Duration)], bucket: u64| {
        let within = points.iter().filter(|point| point.0.as_nanos() / length == bucket);
        let latencies: Vec<Duration> = within.map(|point| point.1).collect();
        (latencies.iter().min().copied(), latencies.iter().max().copied())
    };
    // The first message was due at zero, and the last nanosecond belongs to the last bucket: the buckets are nearly these.
    let alike = (0..buckets as u64).filter(|&n| extremes(&series.points, n) == extremes(&all.points, n));
    assert!(alike.count() > buckets * 9 / 10);
    assert_eq!(series.points.iter().map(|point| point.1).max(), all.points.iter().map(|point| point.1).max());
    assert_eq!(series.lost.len(), all.lost.len(), "there are few enough to tell each");
    // A closer look shows each.
    let (from, to) = (Time::from_nanos(50_000_000_000), Time::from_nanos(90_000_000_000));
    assert_eq!(latency_series(&path, Some((from, to)), buckets, ALL).unwrap(), exact(&records, from, to));
}

#[test]
fn of_many_lost_messages_one_of_each_bucket_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let lost = |n: u32| Record { received: None, fate: Fate::Lost, ..nth(n) };
    let records: Vec<Record> = (0..60_000).map(lost).collect();
    let series = latency_series(&trace(&directory, &records, 30_000), None, 600, ALL).unwrap();
    assert_eq!((series.counted, series.lost_counted, series.lost.len()), (0, 60_000, 600));
    assert!(series.is_exact && series.points.is_empty() && series.lost.is_sorted());
}

#[test]
fn fewer_latencies_than_usual_are_told_one_by_one_if_so_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..2_000).map(nth).collect();
    let path = trace(&directory, &records, 5_000);
    let series = latency_series(&path, None, 100, 400).unwrap();
    assert!(!series.is_exact && series.points.len() <= 400, "{}", series.points.len());
    assert!(latency_series(&path, None, 100, 2_000).unwrap().is_exact);
}
