//! `trunkline runs`

mod merge;

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use trunkline_report::output::RunSummary;
use trunkline_store::{Imported, Retention, RunFilter, RunInfo, Status, Store, StoreError};

use super::open_store;
use crate::args::Global;
use crate::args::runs::{Choice, RunStatus, Runs, RunsCommand};
use crate::json::{
    ComparisonOutput, ExportOutput, ImportOutput, ImportedRun, RemovedOutput, RunTagsOutput, RunsOutput,
};
use crate::output::{self, Failure};

pub(super) fn runs(global: &Global, arguments: &Runs) -> Result<u8, Failure> {
    let store = open_store(global)?;
    match &arguments.command {
        None => list(global, &store, &arguments.choice),
        Some(RunsCommand::Tag { run, tags, remove }) => tag(global, &store, run, tags, !remove),
        Some(RunsCommand::Compare { run, with, all }) => compare(global, &store, [run, with], *all),
        Some(RunsCommand::Export { run, to }) => export(global, &store, run, to.as_deref()),
        Some(RunsCommand::Import { files }) => import(global, &store, files),
        Some(RunsCommand::Merge { parts }) => merge::merge(global, &store, parts),
        Some(RunsCommand::Remove { runs }) => remove(global, &store, runs),
        Some(RunsCommand::Prune { within, latest, dry_run }) => {
            prune(global, &store, Retention { latest: *latest, within: *within }, *dry_run)
        }
    }
}

fn list(global: &Global, store: &Store, choice: &Choice) -> Result<u8, Failure> {
    let filter = filter(choice);
    let mut runs = store.runs().map_err(Failure::environment)?;
    let any = !runs.is_empty();
    runs.retain(|run| filter.matches(run));
    if global.json {
        output::print_json(&RunsOutput { runs: runs.iter().map(RunSummary::from).collect() });
        return Ok(output::DONE);
    }
    if runs.is_empty() {
        let which = if any { "such runs" } else { "runs" };
        output::note(format_args!("no {which} are stored in {}", store.directory().display()));
        return Ok(output::DONE);
    }
    let head = ["run", "started", "on", "status", "points", "measured", "name", "tags"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(runs.iter().map(row));
    output::print(output::table(&rows, output::screen()));
    Ok(output::DONE)
}

fn filter(choice: &Choice) -> RunFilter {
    RunFilter {
        name: choice.name.clone(),
        backend: choice.on.map(super::run::backend),
        status: choice.status.map(|status| match status {
            RunStatus::Running => Status::Running,
            RunStatus::Complete => Status::Complete,
            RunStatus::Partial => Status::Partial,
        }),
        tags: choice.tags.clone(),
        since: choice.since,
        before: choice.before,
    }
}

fn row(run: &RunInfo) -> Vec<String> {
    vec![
        run.id.to_string(),
        run.started.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        run.backend.name().to_owned(),
        match run.status {
            Status::Running => "running",
            Status::Complete => "complete",
            Status::Partial => "partial",
        }
        .to_owned()
            + &run.shard.map_or(String::new(), |shard| format!(", part {shard}")),
        run.points.to_string(),
        match run.status {
            // A plan repeats some points more often than others.
            Status::Complete => run.repetitions_done.to_string(),
            _ => {
                format!("{} of {}", run.repetitions_done, run.wanted())
            }
        },
        run.name.clone(),
        run.tags.join(", "),
    ]
}

fn tag(global: &Global, store: &Store, run: &str, tags: &[String], on: bool) -> Result<u8, Failure> {
    if let Some(wrong) = tags.iter().find(|tag| tag.trim().is_empty() || tag.contains(char::is_control)) {
        return Err(Failure::input(format_args!(
            "invalid tag `{}`: use one or two words",
            wrong.escape_debug()
        )));
    }
    let id = find(store, run)?;
    tags.iter().try_for_each(|tag| store.tag(id, tag.trim(), on)).map_err(Failure::environment)?;
    let info = store.run(id).map_err(Failure::environment)?.info;
    if global.json {
        output::print_json(&RunTagsOutput { run: id, tags: info.tags });
    } else if info.tags.is_empty() {
        output::print(format_args!("run {id} has no tags"));
    } else {
        output::print(format_args!("run {id}: {}", info.tags.join(", ")));
    }
    Ok(output::DONE)
}

fn compare(global: &Global, store: &Store, names: [&str; 2], all: bool) -> Result<u8, Failure> {
    let [run, with] = [find(store, names[0])?, find(store, names[1])?];
    if run == with {
        return Err(Failure::input(format_args!("both are run {run}; name two different runs")));
    }
    let [run, with] = [store.run(run), store.run(with)];
    let comparison =
        trunkline_report::compare(&run.map_err(Failure::environment)?, &with.map_err(Failure::environment)?);
    if global.json {
        output::print_json(&ComparisonOutput { comparison: (&comparison).into() });
    } else {
        let text = trunkline_report::terminal_comparison(&comparison, all, output::screen());
        output::print(text.trim_end());
    }
    Ok(output::DONE)
}

fn export(global: &Global, store: &Store, run: &str, to: Option<&Path>) -> Result<u8, Failure> {
    let id = find(store, run)?;
    let info = store.run(id).map_err(Failure::environment)?.info;
    let named = || PathBuf::from(info.directory.file_name().unwrap_or_default()).with_added_extension("tar");
    let path = to.map_or_else(named, Path::to_path_buf);
    let cannot = |error| Failure::unwritable(&path, &error);
    let file = BufWriter::new(File::create_new(&path).map_err(cannot)?);
    if let Err(error) = store.export(id, file) {
        // Half an archive is worse than none.
        let _ = std::fs::remove_file(&path);
        return Err(failure(error));
    }
    if global.json {
        output::print_json(&ExportOutput { run: id, archive: path.display().to_string() });
    } else {
        output::print(format_args!("run {id}: {}", path.display()));
    }
    Ok(output::DONE)
}

fn import(global: &Global, store: &Store, files: &[PathBuf]) -> Result<u8, Failure> {
    let mut imported = Vec::new();
    for path in files {
        let file = File::open(path).map_err(|error| {
            Failure::about(path, format_args!("{} cannot be read: {error}", path.display()))
        })?;
        let outcome = store
            .import(BufReader::new(file))
            .map_err(|error| Failure { message: format!("{}: {error}", path.display()), ..failure(error) })?;
        let (id, is_new) = match outcome {
            Imported::New(id) => (id, true),
            Imported::Known(id) => (id, false),
        };
        if !global.json {
            let known = if is_new { "" } else { " (it was here before)" };
            output::print(format_args!("{}: run {id}{known}", path.display()));
        }
        imported.push(ImportedRun { archive: path.display().to_string(), run: id, new: is_new });
    }
    if global.json {
        output::print_json(&ImportOutput { imported });
    }
    Ok(output::DONE)
}

fn remove(global: &Global, store: &Store, names: &[String]) -> Result<u8, Failure> {
    // All must be there before any is gone.
    let mut ids = names.iter().map(|name| find(store, name)).collect::<Result<Vec<u64>, Failure>>()?;
    // One that is named twice is removed once.
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(*id));
    removed(global, store, &ids, false)
}

fn prune(global: &Global, store: &Store, retention: Retention, dry_run: bool) -> Result<u8, Failure> {
    if retention.within < SignedDuration::ZERO {
        return Err(Failure::input("a duration cannot be negative"));
    }
    let runs = store.runs().map_err(Failure::environment)?;
    removed(global, store, &retention.expired(&runs, Timestamp::now()), dry_run)
}

fn removed(global: &Global, store: &Store, ids: &[u64], dry_run: bool) -> Result<u8, Failure> {
    if !dry_run {
        ids.iter().try_for_each(|id| store.remove(*id)).map_err(failure)?;
    }
    if global.json {
        output::print_json(&RemovedOutput { removed: ids.to_vec(), dry_run });
        return Ok(output::DONE);
    }
    let done = if dry_run { "would be removed" } else { "removed" };
    match ids {
        [] => output::print("no runs to remove"),
        [id] => output::print(format_args!("{done}: run {id}")),
        ids => {
            let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
            output::print(format_args!("{done}: runs {}", ids.join(", ")));
        }
    }
    Ok(output::DONE)
}

fn find(store: &Store, name: &str) -> Result<u64, Failure> {
    store.find(name).map_err(failure)
}

/// What the user can mend is bad input.
fn failure(error: StoreError) -> Failure {
    super::store_failure(error)
}
