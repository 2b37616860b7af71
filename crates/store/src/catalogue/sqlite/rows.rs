//! Rows to values.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use trunkline_core::Duration;

use crate::model::{Backend, RunInfo, Status, StoredPoint, StoredRepetition, StoredRun, status_name};

const INFO: &str = "
    SELECT id, name, backend, status, started, finished, version, machine, seed, repetitions, repetition_length_ns,
        folder, file, experiment_hash,
        (SELECT count(*) FROM point WHERE run = id),
        (SELECT count(*) FROM repetition WHERE run = id AND NOT partial),
        (SELECT json_group_array(tag ORDER BY tag) FROM tag WHERE run = id), key, settings, shard
    FROM run";

/// Every run, the oldest first.
pub(super) fn infos(connection: &Connection, runs: &Path) -> rusqlite::Result<Vec<RunInfo>> {
    let mut statement = connection.prepare(&format!("{INFO} ORDER BY id"))?;
    statement.query_map([], |row| info_of(row, runs))?.collect()
}

/// One run.
pub(super) fn info(connection: &Connection, runs: &Path, id: u64) -> rusqlite::Result<Option<RunInfo>> {
    connection.query_row(&format!("{INFO} WHERE id = ?1"), [id as i64], |row| info_of(row, runs)).optional()
}

fn info_of(row: &Row<'_>, runs: &Path) -> rusqlite::Result<RunInfo> {
    let folder: String = row.get(11)?;
    let finished: Option<String> = row.get(5)?;
    Ok(RunInfo {
        id: row.get::<_, i64>(0)? as u64,
        name: row.get(1)?,
        backend: named(row, 2, &Backend::ALL, Backend::name)?,
        status: named(row, 3, &[Status::Running, Status::Complete, Status::Partial], status_name)?,
        started: timestamp(4, &row.get::<_, String>(4)?)?,
        finished: finished.map(|text| timestamp(5, &text)).transpose()?,
        version: row.get(6)?,
        machine: row.get(7)?,
        seed: row.get::<_, i64>(8)? as u64,
        repetitions: row.get(9)?,
        points: row.get(14)?,
        repetitions_done: row.get(15)?,
        repetition_length: Duration::from_nanos(row.get::<_, i64>(10)? as u64),
        directory: runs.join(folder),
        file: PathBuf::from(row.get::<_, String>(12)?),
        experiment_hash: row.get(13)?,
        tags: json(16, &row.get::<_, String>(16)?)?,
        key: row.get(17)?,
        settings: json(18, &row.get::<_, String>(18)?)?,
        shard: row
            .get::<_, Option<String>>(19)?
            .map(|text| text.parse())
            .transpose()
            .map_err(|error: String| unreadable(19, error.into()))?,
    })
}

fn named<T: Copy>(
    row: &Row<'_>,
    column: usize,
    all: &[T],
    name: fn(T) -> &'static str,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    all.iter()
        .copied()
        .find(|value| name(*value) == text)
        .ok_or_else(|| unreadable(column, format!("`{text}`").into()))
}

fn timestamp(column: usize, text: &str) -> rusqlite::Result<Timestamp> {
    text.parse().map_err(|error: jiff::Error| unreadable(column, error.into()))
}

fn json<T: serde::de::DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| unreadable(column, error.into()))
}

fn unreadable(column: usize, why: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why)
}

/// A run without its points.
pub(super) fn outline(connection: &Connection, runs: &Path, id: u64) -> rusqlite::Result<Option<StoredRun>> {
    let Some(info) = info(connection, runs, id)? else { return Ok(None) };
    let (text, axes, limits) =
        connection.query_row("SELECT text, axes, limits FROM run WHERE id = ?1", [id as i64], |row| {
            Ok((row.get(0)?, json(1, &row.get::<_, String>(1)?)?, json(2, &row.get::<_, String>(2)?)?))
        })?;
    Ok(Some(StoredRun { info, text, axes, limits, points: Vec::new() }))
}

/// The same; `point` is given the points one by one, in the product's order and as of one moment.
pub(super) fn walk(
    connection: &Connection,
    runs: &Path,
    id: u64,
    point: &mut dyn FnMut(StoredPoint),
) -> rusqlite::Result<Option<StoredRun>> {
    let Some(run) = outline(connection, runs, id)? else { return Ok(None) };
    let mut statement =
        connection.prepare("SELECT point, choice FROM point WHERE run = ?1 ORDER BY point")?;
    let key = |row: &Row<'_>| Ok((json::<Vec<usize>>(1, &row.get::<_, String>(1)?)?, row.get(0)?));
    let mut points: Vec<(_, u32)> = statement.query_map([id as i64], key)?.collect::<Result<_, _>>()?;
    // A search does not find its points in the product's order.
    points.sort();
    for (choice, index) in points {
        point(StoredPoint { index, choice, repetitions: repetitions(connection, &run.info, index)? });
    }
    Ok(Some(run))
}

fn repetitions(
    connection: &Connection,
    run: &RunInfo,
    point: u32,
) -> rusqlite::Result<Vec<StoredRepetition>> {
    let mut statement = connection.prepare_cached(
        "SELECT repetition, partial, summary FROM repetition WHERE run = ?1 AND point = ?2 ORDER BY repetition",
    )?;
    let mut artefacts = connection.prepare_cached(
        "SELECT kind, flow, path FROM artefact WHERE run = ?1 AND point = ?2 AND repetition = ?3 ORDER BY kind, place",
    )?;
    let mut found = Vec::new();
    let mut rows = statement.query(params![run.id as i64, point])?;
    while let Some(row) = rows.next()? {
        let summary: Option<String> = row.get(2)?;
        let mut repetition = StoredRepetition {
            index: row.get(0)?,
            partial: row.get(1)?,
            summary: summary.map(|text| json(2, &text)).transpose()?,
            traces: Vec::new(),
            audio: Vec::new(),
        };
        let mut rows = artefacts.query(params![run.id as i64, point, repetition.index])?;
        while let Some(row) = rows.next()? {
            let path = run.directory.join(row.get::<_, String>(2)?);
            match row.get::<_, Option<String>>(1)? {
                Some(flow) if row.get::<_, String>(0)? == "trace" => repetition.traces.push((flow, path)),
                _ => repetition.audio.push(path),
            }
        }
        found.push(repetition);
    }
    Ok(found)
}
