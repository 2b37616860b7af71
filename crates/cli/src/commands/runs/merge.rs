//! `trunkline runs merge`

use std::path::Path;

use trunkline_store::{Status, Store, StoreError};

use super::failure;
use crate::args::Global;
use crate::json::{MergeOutput, MergedPart};
use crate::output::{self, Failure};

pub(super) fn merge(global: &Global, store: &Store, places: &[String]) -> Result<u8, Failure> {
    let is_store = |place: &&String| Path::new(place).join("trunkline.db").is_file();
    let opened = places
        .iter()
        .filter(is_store)
        .map(|place| Ok((place, Store::open(Path::new(place)).map_err(failure)?)));
    let opened: Vec<(&String, Store)> = opened.collect::<Result<_, Failure>>()?;
    let mut parts: Vec<(&String, &Store, u64)> = Vec::new();
    for place in places {
        match opened.iter().find(|(known, _)| *known == place) {
            Some((_, other)) => {
                let runs = other.runs().map_err(failure)?;
                parts.extend(runs.iter().map(|run| (place, other, run.id)));
            }
            None => parts.push((place, store, store.find(place).map_err(|error| not_found(place, error))?)),
        }
    }
    let stored: Vec<(&Store, u64)> = parts.iter().map(|(_, store, id)| (*store, *id)).collect();
    if stored.is_empty() {
        return Err(Failure::input("there are no runs in these stores"));
    }
    let merged = store.merge(&stored).map_err(failure)?;
    let run = &merged.run;
    let each = parts.iter().zip(&merged.parts);
    let each = each.map(|((part, _, id), adopted)| MergedPart {
        part: (*part).clone(),
        run: *id,
        taken: adopted.taken,
        known: adopted.known,
    });
    if global.json {
        let complete = run.status == Status::Complete;
        output::print_json(&MergeOutput {
            run: run.id,
            complete,
            missing: merged.missing,
            parts: each.collect(),
        });
    } else {
        for MergedPart { part, run, taken, known } in each {
            let known =
                if known == 0 { String::new() } else { format!(", {known} that an earlier part has") };
            output::print(format_args!("{part}, run {run}: {taken} repetitions{known}"));
        }
        output::print(format_args!("merged: run {}, {} repetitions", run.id, run.repetitions_done));
    }
    if merged.missing == 0 {
        return Ok(output::DONE);
    }
    output::warn(format_args!(
        "run {id} is partial: {} repetitions are missing; measure them with `trunkline run --resume {id}`",
        merged.missing,
        id = run.id
    ));
    Ok(output::ENVIRONMENT)
}

/// The error about a place that is not a part.
fn not_found(place: &str, error: StoreError) -> Failure {
    match error {
        StoreError::NoSuchRun { store, .. } | StoreError::NoRuns { store, .. } => {
            Failure::input(format_args!(
                "`{place}` is neither the folder of a store (it has no `trunkline.db`) nor a run of `{}`; expected what \
                 `trunkline run --shard` made: the folder of its `--store`, or the number or the folder's name of its run",
                store.display()
            ))
        }
        error => failure(error),
    }
}
