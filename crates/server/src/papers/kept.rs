//! What we found of studies, kept beside the runs: `papers/NAME/results.json`, and the figures as files.
//!
//! Tables of a study may be repeated one by one, and a job may be stopped: what is found takes the place of what was kept,
//! cell by cell, and the rest stays.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use trunkline_papers::{Results, Study};

use super::shown;
use crate::api::{ApiError, PaperGoal, PaperRow, PaperTable, StudyResult};
use crate::app::App;
use crate::whole;

/// What is kept of a study, if anything is.
pub(super) fn read(app: &App, study: &Study) -> Result<Option<StudyResult>, ApiError> {
    let path = folder(app, study).join(RESULTS);
    match fs::read(&path) {
        // What another version has kept in another way counts as nothing.
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&path, &error)),
    }
}

/// Keeps what was found now with what is kept already, and returns both.
pub(super) fn keep(app: &App, results: &Results) -> Result<StudyResult, ApiError> {
    let study = results.study;
    let (found, judged) = (shown::tables(results), shown::goals(results));
    let before = read(app, study)?;
    let (tables, goals) = match before {
        None => (found, judged),
        Some(before) => {
            let tables = merged(&before.tables, &found);
            (tables, merged_goals(before.goals, judged))
        }
    };
    let kept = StudyResult { paper: study.name.clone(), tables, goals, stopped: results.stopped };
    let folder = folder(app, study);
    // Of what was not measured there is nothing to draw: its figure from before stays.
    trunkline_papers::write(results, &folder).map_err(ApiError::environment)?;
    let path = folder.join(RESULTS);
    let bytes = serde_json::to_vec(&kept).map_err(ApiError::environment)?;
    whole::write(&path, &bytes).map_err(|error| {
        ApiError::environment(format_args!("`{}` cannot be written: {error}", path.display()))
    })?;
    Ok(kept)
}

/// A study with our values: those found here, and elsewhere those that the program came with.
pub(super) fn ours(app: &App, study: &'static Study) -> Result<(Results, Option<StudyResult>), ApiError> {
    let kept = read(app, study)?;
    let mut results = trunkline_papers::accepted(study).map_err(super::repeat::failure)?;
    shown::fill(&mut results, kept.as_ref().map_or(&[], |kept| &kept.tables));
    Ok((results, kept))
}

/// A figure: drawn from our values, or as it was drawn when the study was repeated.
pub(super) fn figure(
    app: &App,
    study: &'static Study,
    figure: &str,
    kind: &str,
) -> Result<Vec<u8>, ApiError> {
    if kind == "svg"
        && let Some(svg) = trunkline_papers::picture(&ours(app, study)?.0, figure)
    {
        return Ok(svg.into_bytes());
    }
    let file = format!("{figure}.{kind}");
    let path = folder(app, study).join(&file);
    fs::read(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => ApiError::not_found(format_args!(
            "no stored results for `{file}`: repeat the study with `POST /papers/{}`",
            study.name
        )),
        _ => unreadable(&path, &error),
    })
}

/// True if a figure was drawn when the study was repeated.
pub(super) fn has_figure(app: &App, study: &Study, figure: &str) -> bool {
    folder(app, study).join(format!("{figure}.svg")).is_file()
}

const RESULTS: &str = "results.json";

fn folder(app: &App, study: &Study) -> PathBuf {
    app.store.directory().join("papers").join(&study.name)
}

fn unreadable(path: &Path, error: &std::io::Error) -> ApiError {
    ApiError::environment(format_args!("`{}` cannot be read: {error}", path.display()))
}

/// The tables of `before`, with the cells of `now` in place of theirs where those have something of ours; tables that only
/// one of the two has stay as they are.
fn merged(before: &[PaperTable], now: &[PaperTable]) -> Vec<PaperTable> {
    let with = |old: &PaperTable| match now.iter().find(|table| table.name == old.name) {
        Some(new) => with_ours(old, new),
        None => old.clone(),
    };
    let is_new = |table: &&PaperTable| !before.iter().any(|old| old.name == table.name);
    before.iter().map(with).chain(now.iter().filter(is_new).cloned()).collect()
}

fn with_ours(old: &PaperTable, new: &PaperTable) -> PaperTable {
    let mut rows: Vec<PaperRow> = new.rows.clone();
    for row in &mut rows {
        let before = old.rows.iter().find(|old| old.keys == row.keys);
        for (place, cell) in row.cells.iter_mut().enumerate() {
            let before = before.and_then(|row| row.cells.get(place));
            if let Some(before) = before.filter(|before| cell.ours.is_none() && before.ours.is_some()) {
                (cell.ours, cell.error) = (before.ours, before.error);
            }
        }
    }
    PaperTable { ours: rows.iter().any(shown::has_ours), on: new.on.or(old.on), rows, ..new.clone() }
}

/// A goal that was judged again is judged as now.
fn merged_goals(before: Vec<PaperGoal>, now: Vec<PaperGoal>) -> Vec<PaperGoal> {
    let mut goals = before;
    for goal in now {
        match goals.iter_mut().find(|old| old.title == goal.title) {
            Some(old) => *old = goal,
            None => goals.push(goal),
        }
    }
    goals
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::api::{Backend, PaperCell};

    fn table(name: &str, ours: &[Option<f64>]) -> PaperTable {
        let cell = |ours: &Option<f64>| PaperCell {
            published: None,
            doubtful: false,
            ours: *ours,
            error: None,
            class: None,
            repeats: false,
        };
        let row = |(place, ours): (usize, &Option<f64>)| PaperRow {
            keys: BTreeMap::from([("n".to_owned(), place.into())]),
            cells: vec![cell(ours)],
            note: None,
        };
        PaperTable {
            name: name.to_owned(),
            title: String::new(),
            keys: vec!["n".to_owned()],
            columns: Vec::new(),
            rows: ours.iter().enumerate().map(row).collect(),
            ours: ours.iter().any(Option::is_some),
            on: None,
            here: false,
        }
    }

    fn ours(tables: &[PaperTable]) -> Vec<(String, bool, Vec<Option<f64>>)> {
        let cells = |table: &PaperTable| table.rows.iter().map(|row| row.cells[0].ours).collect();
        tables.iter().map(|table| (table.name.clone(), table.ours, cells(table))).collect()
    }

    #[test]
    fn what_is_found_takes_the_place_of_what_was_kept_and_the_rest_stays() {
        let before = [table("a", &[Some(1.0), Some(2.0)]), table("b", &[Some(3.0)])];
        let now = [table("a", &[Some(9.0), None]), table("c", &[None])];
        let expected = [
            ("a".to_owned(), true, vec![Some(9.0), Some(2.0)]),
            ("b".to_owned(), true, vec![Some(3.0)]),
            ("c".to_owned(), false, vec![None]),
        ];
        assert_eq!(ours(&merged(&before, &now)), expected);
    }

    #[test]
    fn a_table_tells_how_its_figures_were_had_last() {
        let on = |on, ours| PaperTable { on, ..table("a", &[ours]) };
        let last = |before, now| merged(&[before], &[now])[0].on;
        let simulated = || on(Some(Backend::Sim), Some(1.0));
        assert_eq!(last(simulated(), on(Some(Backend::Wire), Some(2.0))), Some(Backend::Wire));
        assert_eq!(last(simulated(), on(None, None)), Some(Backend::Sim));
    }

    #[test]
    fn a_goal_is_judged_as_it_was_last() {
        let goal = |title: &str, met| PaperGoal { title: title.to_owned(), met, found: String::new() };
        let goals = merged_goals(
            vec![goal("a", None), goal("b", Some(true))],
            vec![goal("a", Some(false)), goal("c", None)],
        );
        let met: Vec<_> = goals.iter().map(|goal| (goal.title.as_str(), goal.met)).collect();
        assert_eq!(met, [("a", Some(false)), ("b", Some(true)), ("c", None)]);
    }
}
