//! Results of plans and probes, kept in the store: a file for each job, which outlives the server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Ended, MOST_ENDED};
use crate::api::{self, JobKind, JobState};
use crate::whole;

/// The folder in the store.
const FOLDER: &str = "jobs";

/// The kinds of jobs whose results are kept here: studies keep their tables, and runs everything.
pub(super) const KEPT: [JobKind; 2] = [JobKind::Plan, JobKind::Probe];

/// A job that has ended.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) job: api::Job,
    pub(super) result: Value,
}

/// Keeps a job, as it is shown, that ends with a result, and no more than the newest.
pub(super) fn keep(store: &Path, job: api::Job, ended: &Ended) -> io::Result<()> {
    let (state, result) = match ended {
        Ended::Done(Some(result)) => (JobState::Done, result),
        Ended::Stopped(Some(result)) => (JobState::Stopped, result),
        Ended::Done(None) | Ended::Stopped(None) => return Ok(()),
    };
    let job = api::Job { state, ended: Some(Timestamp::now().to_string()), ..job };
    if !KEPT.contains(&job.kind) {
        return Ok(());
    }
    let path = store.join(FOLDER).join(format!("{}.json", job.id));
    whole::write(&path, &serde_json::to_vec(&Kept { job, result: result.clone() })?)?;
    newest(store);
    Ok(())
}

/// Reads the newest jobs that are kept, the oldest first.
pub(super) fn read(store: &Path) -> Vec<Kept> {
    // A job that another version has kept in another form is left out.
    newest(store).iter().filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect()
}

/// The files of the newest jobs, the oldest first. Removes the others.
fn newest(store: &Path) -> Vec<PathBuf> {
    // A store without this folder has none.
    let entries = fs::read_dir(store.join(FOLDER)).into_iter().flatten().flatten();
    let is_one = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
    let mut files: Vec<_> = entries
        .filter(|entry| is_one(&entry.path()))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    let newest = files.split_off(files.len().saturating_sub(MOST_ENDED));
    for (_, old) in files {
        // Another server may have removed it already.
        let _ = fs::remove_file(old);
    }
    newest.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Job, Needs, NewJob};
    use super::*;

    fn job(id: usize, kind: JobKind) -> Job {
        Job::new(format!("a-{id}"), NewJob { kind, title: "a call".into(), needs: Needs::Cores })
    }

    #[test]
    fn a_result_is_read_again_as_the_job_was() {
        let store = tempfile::tempdir().expect("a folder");
        let ends = [
            (1, JobKind::Plan, Ended::Done(Some(1.into()))),
            (2, JobKind::Probe, Ended::Stopped(Some(2.into()))),
            (3, JobKind::Probe, Ended::Done(None)),
            (4, JobKind::Paper, Ended::Done(Some(4.into()))),
        ];
        for (id, kind, ended) in ends {
            keep(store.path(), job(id, kind).shown(), &ended).expect("it is kept");
        }
        fs::write(store.path().join("jobs/a-5.json"), "{}").expect("written");
        let read: Vec<Job> = read(store.path()).into_iter().map(Job::kept).collect();
        let shown: Vec<_> = read.iter().map(|job| (job.id(), job.state(), job.result())).collect();
        assert_eq!(
            shown,
            [("a-1", JobState::Done, Some(1.into())), ("a-2", JobState::Stopped, Some(2.into()))]
        );
        assert_eq!(read[0].shown().result.as_deref(), Some("/api/v1/jobs/a-1/result"));
        assert_eq!(read[0].shown().title, "a call");
        // Who watches it learns that it is over.
        assert!(read[0].watch(None).news().iter().any(|event| event.name == "end"));
    }

    #[test]
    fn a_result_that_cannot_be_stored_is_said_to_be_lost() {
        let store = tempfile::tempdir().expect("a folder");
        fs::write(store.path().join(FOLDER), "no folder").expect("written");
        let ended = Ended::Done(Some(1.into()));
        let job = job(1, JobKind::Plan);
        let error = keep(store.path(), job.shown(), &ended).expect_err("there is no folder");
        job.is_unsaved(error.to_string());
        job.ended(Ok(ended));
        assert_eq!((job.shown().unsaved, job.is_kept()), (Some(error.to_string()), false));
    }

    #[test]
    fn only_the_newest_are_kept() {
        let store = tempfile::tempdir().expect("a folder");
        for id in 0..MOST_ENDED + 3 {
            keep(store.path(), job(id, JobKind::Plan).shown(), &Ended::Done(Some(id.into())))
                .expect("it is kept");
        }
        assert_eq!(fs::read_dir(store.path().join(FOLDER)).expect("the folder").count(), MOST_ENDED);
        assert_eq!(read(store.path()).len(), MOST_ENDED);
    }
}
