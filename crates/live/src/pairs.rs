//! Several sessions with a common start: one for each pair of places between which flows run.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline_core::{Duration, FlowId, Seed, Time};
use trunkline_experiment::{Progress, Scenario, Supervisor};
use trunkline_metrics::{DriverOutcome, FlowOutcome, Observation, Recorder};

use crate::error::LiveError;
use crate::observed::observed;
use crate::options::LiveOptions;
use crate::part::only;
use crate::place::{self, Place};
use crate::run::{awaited, session};
use crate::session::Company;
use crate::start::Start;

/// Flows from one place to another.
pub struct Pair<'p> {
    /// Their indices in the scenario.
    pub flows: Vec<usize>,
    /// Where their sources are, and the address of our sockets there.
    pub near: (&'p dyn Place, IpAddr),
    /// Where their sinks are, and the address of the far end's sockets there.
    pub far: (&'p dyn Place, IpAddr),
}

/// As [`run`](crate::run), with every flow in one of these pairs. All places have this machine's clock. What the options
/// say of addresses does not count, and their port should be 0.
///
/// # Errors
/// As `run`'s. A session that fails ends the others; what they have measured is kept.
pub fn run_pairs(
    scenario: &Scenario,
    seed: Seed,
    pairs: &[Pair<'_>],
    options: &LiveOptions,
    recorder: &mut (dyn Recorder + Send),
    supervisor: &mut (dyn Supervisor + Send),
) -> Result<DriverOutcome, LiveError> {
    crate::check::refuse_simulated(scenario)?;
    let start = Start::of(pairs.len(), awaited(scenario));
    let recorder = Mutex::new(recorder);
    let watch = Mutex::new(Watch { supervisor, latest: Duration::ZERO, is_measured: false });
    let one = |pair: &Pair<'_>| {
        let abandon = AbandonOnDrop(&start);
        let own = only(scenario, &pair.flows);
        let build = |flow: usize, member| own.build_source(flow, member, seed);
        let ((near, near_address), (far, address)) = (pair.near, pair.far);
        let options = LiveOptions { address, near_address: Some(near_address), ..options.clone() };
        let (mut recorder, mut supervisor) = (Shared(&recorder), Sharing { watch: &watch, start: &start });
        let company = Company { start: &start, gate: None };
        let measure = || session(&own, &build, &options, (far, company), &mut recorder, &mut supervisor);
        let outcome =
            place::at(near, measure).map_err(LiveError::system("cannot enter the near end's host"))??;
        core::mem::forget(abandon);
        Ok(outcome)
    };
    observed(&start, || {
        let ended: Vec<Result<DriverOutcome, LiveError>> = std::thread::scope(|scope| {
            let sessions: Vec<_> = pairs.iter().map(|pair| scope.spawn(|| one(pair))).collect();
            let ended = sessions.into_iter().map(|session| session.join());
            ended.map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        together(scenario.flows.len(), pairs, ended)
    })
}

/// What the sessions have come to as one run.
fn together(
    flows: usize,
    pairs: &[Pair<'_>],
    ended: Vec<Result<DriverOutcome, LiveError>>,
) -> Result<DriverOutcome, LiveError> {
    let mut whole = DriverOutcome { flows: vec![FlowOutcome::default(); flows], ..DriverOutcome::default() };
    let mut lost = None;
    for (pair, ended) in pairs.iter().zip(ended) {
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(LiveError::FarEndLost { reason, outcome }) => {
                lost.get_or_insert(reason);
                *outcome
            }
            // The one that was the first to fail says why.
            Err(LiveError::Abandoned) => continue,
            Err(error) => return Err(error),
        };
        whole.duration = whole.duration.max(outcome.duration);
        whole.partial |= outcome.partial;
        for (flow, outcome) in pair.flows.iter().zip(outcome.flows) {
            whole.flows[*flow] = outcome;
        }
    }
    match lost {
        None => Ok(whole),
        Some(reason) => Err(LiveError::FarEndLost { reason, outcome: Box::new(whole) }),
    }
}

struct AbandonOnDrop<'s>(&'s Start);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// The recorder of all sessions.
struct Shared<'s, 'r>(&'s Mutex<&'r mut (dyn Recorder + Send)>);

impl Recorder for Shared<'_, '_> {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        locked(self.0).record(at, flow, what);
    }

    fn payload(&mut self, flow: FlowId, channel: u16, sequence: u32, payload: &[u8]) {
        locked(self.0).payload(flow, channel, sequence, payload);
    }

    fn end_measurement(&mut self, at: Time) {
        locked(self.0).end_measurement(at);
    }
}

/// Who is told how far they are: as far as the one that is ahead.
struct Watch<'r> {
    supervisor: &'r mut (dyn Supervisor + Send),
    latest: Duration,
    is_measured: bool,
}

struct Sharing<'s, 'r> {
    watch: &'s Mutex<Watch<'r>>,
    start: &'s Start,
}

impl Supervisor for Sharing<'_, '_> {
    fn progress(&mut self, done: Duration) -> Progress {
        let mut watch = locked(self.watch);
        watch.latest = watch.latest.max(done);
        let done = watch.latest;
        match self.start.is_abandoned() {
            true => Progress::Stop,
            false => watch.supervisor.progress(done),
        }
    }

    fn measured(&mut self, at: Duration) {
        let mut watch = locked(self.watch);
        if !core::mem::replace(&mut watch.is_measured, true) {
            watch.supervisor.measured(at);
        }
    }
}

fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
