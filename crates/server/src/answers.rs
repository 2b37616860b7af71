//! Answers of runs for lists, kept in memory: the results of a run are read once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use trunkline_report::output::RunAnswer;
use trunkline_store::{RunInfo, Status, Store};

/// Time in which a list reads results. At least one run is read, so that the next list has more answers.
const BUDGET: Duration = Duration::from_millis(150);
/// Answers that are kept.
const MAX_KEPT: usize = 10_000;

/// Answers by the key of the run, each with the number of repetitions that it covers.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<HashMap<String, (u32, RunAnswer)>>);

impl Answers {
    /// The answers of these runs, as far as they are known or can be read in time.
    pub(crate) fn of(&self, store: &Store, runs: &[RunInfo]) -> Vec<Option<RunAnswer>> {
        let until = Instant::now() + BUDGET;
        let answer = |run: &RunInfo| match run.status {
            Status::Running => None,
            Status::Complete | Status::Partial => self.known(run).or_else(|| {
                let read = || Some(trunkline_report::run_answer(&store.run(run.id).ok()?));
                let answer = (Instant::now() < until).then(read).flatten()?;
                self.keep(run, &answer);
                Some(answer)
            }),
        };
        runs.iter().map(answer).collect()
    }

    fn known(&self, run: &RunInfo) -> Option<RunAnswer> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, answer) = kept.get(&run.key)?;
        (*done == run.repetitions_done).then(|| answer.clone())
    }

    fn keep(&self, run: &RunInfo, answer: &RunAnswer) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(run.key.clone(), (run.repetitions_done, answer.clone()));
    }
}
