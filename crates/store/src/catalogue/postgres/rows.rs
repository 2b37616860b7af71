//! Rows to values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use postgres::{Error, Row, Transaction};
use trunkline_core::Duration;

use crate::StoreError;
use crate::model::{Backend, RunInfo, Status, StoredPoint, StoredRepetition, StoredRun, status_name};

const INFO: &str = "
    SELECT id, name, backend, status, started, finished, version, machine, seed, repetitions, repetition_length_ns,
        folder, file, experiment_hash,
        (SELECT count(*) FROM point WHERE run = id),
        (SELECT count(*) FROM repetition WHERE run = id AND NOT partial),
        ARRAY(SELECT tag FROM tag WHERE run = id ORDER BY tag COLLATE \"C\"), key, text, axes, limits, settings, shard
    FROM run";

/// Every run, the oldest first.
pub(super) fn infos(transaction: &mut Transaction<'_>) -> Result<Vec<Row>, Error> {
    transaction.query(&format!("{INFO} ORDER BY id"), &[])
}

/// One run.
pub(super) fn info(transaction: &mut Transaction<'_>, id: u64) -> Result<Option<Row>, Error> {
    transaction.query_opt(&format!("{INFO} WHERE id = $1"), &[&(id as i64)])
}

pub(super) fn info_of(row: &Row, runs: &Path, place: &str) -> Result<RunInfo, StoreError> {
    let finished: Option<String> = row.get(5);
    let time = |text: &str| text.parse().map_err(|_| unreadable(place, format!("`{text}` is not a time")));
    Ok(RunInfo {
        id: row.get::<_, i64>(0) as u64,
        name: row.get(1),
        backend: named(row.get(2), place, &Backend::ALL, Backend::name)?,
        status: named(row.get(3), place, &[Status::Running, Status::Complete, Status::Partial], status_name)?,
        started: time(row.get(4))?,
        finished: finished.as_deref().map(time).transpose()?,
        version: row.get(6),
        machine: row.get(7),
        seed: row.get::<_, i64>(8) as u64,
        repetitions: row.get::<_, i64>(9) as u32,
        points: row.get::<_, i64>(14) as u32,
        repetitions_done: row.get::<_, i64>(15) as u32,
        repetition_length: Duration::from_nanos(row.get::<_, i64>(10) as u64),
        directory: runs.join(row.get::<_, String>(11)),
        file: PathBuf::from(row.get::<_, String>(12)),
        experiment_hash: row.get(13),
        tags: row.get(16),
        key: row.get(17),
        settings: json(place, row.get(21))?,
        shard: row
            .get::<_, Option<String>>(22)
            .map(|text| text.parse())
            .transpose()
            .map_err(|error: String| unreadable(place, error))?,
    })
}

/// Points whose results are read at once.
const POINTS: usize = 256;

/// Gives `point` the points of a run with their results as of one moment, a few at a time. Returns the run without them.
pub(super) fn walk(
    transaction: &mut Transaction<'_>,
    id: u64,
    (runs, place): (&Path, &str),
    point: &mut dyn FnMut(StoredPoint),
) -> Result<Result<Option<StoredRun>, StoreError>, Error> {
    transaction.batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")?;
    let Some(info) = info(transaction, id)? else { return Ok(Ok(None)) };
    let rows = transaction.query("SELECT point, choice FROM point WHERE run = $1", &[&(id as i64)])?;
    let read = || -> Result<_, StoreError> {
        let run = outline(&info, runs, place)?;
        let choice = |row: &Row| Ok((json::<Vec<usize>>(place, row.get(1))?, row.get::<_, i64>(0)));
        let mut points = rows.iter().map(choice).collect::<Result<Vec<_>, StoreError>>()?;
        // A search does not find its points in the product's order.
        points.sort_unstable();
        Ok((run, points))
    };
    let (run, points) = match read() {
        Ok(read) => read,
        Err(error) => return Ok(Err(error)),
    };
    for points in points.chunks(POINTS) {
        let numbers: Vec<i64> = points.iter().map(|(_, number)| *number).collect();
        let mut query = |text: &str| transaction.query(text, &[&(id as i64), &numbers]);
        let repetitions = query(
            "SELECT point, repetition, partial, summary FROM repetition WHERE run = $1 AND point = ANY($2)
             ORDER BY point, repetition",
        )?;
        let artefacts = query(
            "SELECT point, repetition, kind, flow, path FROM artefact WHERE run = $1 AND point = ANY($2)
             ORDER BY point, repetition, kind COLLATE \"C\", place",
        )?;
        match stored(points, &repetitions, &artefacts, &run.info.directory, place) {
            Ok(points) => points.into_iter().for_each(&mut *point),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(Some(run)))
}

/// A run without its points.
pub(super) fn outline(row: &Row, runs: &Path, place: &str) -> Result<StoredRun, StoreError> {
    let (text, axes, limits) = (row.get(18), row.get(19), row.get(20));
    let (axes, limits) = (json(place, axes)?, json(place, limits)?);
    Ok(StoredRun { info: info_of(row, runs, place)?, text, axes, limits, points: Vec::new() })
}

/// Points with their results, in their order.
fn stored(
    points: &[(Vec<usize>, i64)],
    repetitions: &[Row],
    artefacts: &[Row],
    directory: &Path,
    place: &str,
) -> Result<Vec<StoredPoint>, StoreError> {
    let number = |row: &Row, column: usize| row.get::<_, i64>(column) as u32;
    let mut found: BTreeMap<u32, Vec<StoredRepetition>> = BTreeMap::new();
    for row in repetitions {
        let summary: Option<&str> = row.get(3);
        found.entry(number(row, 0)).or_default().push(StoredRepetition {
            index: number(row, 1),
            partial: row.get(2),
            summary: summary.map(|text| json(place, text)).transpose()?,
            traces: Vec::new(),
            audio: Vec::new(),
        });
    }
    for row in artefacts {
        let repetitions = found.get_mut(&number(row, 0));
        let mut repetitions = repetitions.into_iter().flatten();
        let Some(repetition) = repetitions.find(|found| found.index == number(row, 1)) else { continue };
        let path = directory.join(row.get::<_, &str>(4));
        match row.get::<_, Option<String>>(3) {
            Some(flow) if row.get::<_, &str>(2) == "trace" => repetition.traces.push((flow, path)),
            _ => repetition.audio.push(path),
        }
    }
    let point = |(choice, number): &(Vec<usize>, i64)| {
        let index = *number as u32;
        StoredPoint { index, choice: choice.clone(), repetitions: found.remove(&index).unwrap_or_default() }
    };
    Ok(points.iter().map(point).collect())
}

fn named<T: Copy>(text: &str, place: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, StoreError> {
    let found = all.iter().copied().find(|value| name(*value) == text);
    found.ok_or_else(|| unreadable(place, format!("`{text}` is not known")))
}

fn json<T: serde::de::DeserializeOwned>(place: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| unreadable(place, error.to_string()))
}

fn unreadable(place: &str, why: String) -> StoreError {
    StoreError::Damaged { path: PathBuf::from(place), why }
}
