//! From observations to chunks on disk, under the eyes of the owner's limits.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use trunkline_control::{Refusal, RefusalKind};
use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_experiment::{Flow, Progress, Supervisor};
use trunkline_live::on_network;
use trunkline_live::packed::Packer;
use trunkline_metrics::{Observation, Recorder};

use super::Daemon;
use super::parts::Part;
use crate::meter::Meter;
use crate::notices::Audience;
use crate::spool::{PartSpool, SpoolError};

/// A chunk is closed when it has become this large.
const LARGE: usize = 64 << 10;
/// Or this old: what is watched live comes ten times a second.
const OLD: std::time::Duration = std::time::Duration::from_millis(100);

/// Records a part. It and its [`Watch`] are used by one thread.
pub(super) struct Recording<'p> {
    daemon: &'p Daemon,
    part: &'p Part,
    spool: &'p Arc<PartSpool>,
    /// Those of the part, by their first ids.
    flows: &'p [Flow],
    state: RefCell<State>,
}

struct State {
    packer: Packer,
    closed: Instant,
    meter: Option<Meter>,
    failure: Option<Refusal>,
    /// The disk takes nothing any more.
    is_lost: bool,
}

/// The recording as the driver's recorder.
pub(super) struct Pen<'r, 'p>(pub(super) &'r Recording<'p>);

/// The recording as the driver's supervisor.
pub(super) struct Watch<'r, 'p>(pub(super) &'r Recording<'p>);

impl<'p> Recording<'p> {
    pub(super) fn new(
        daemon: &'p Daemon,
        part: &'p Part,
        spool: &'p Arc<PartSpool>,
        flows: &'p [Flow],
    ) -> Recording<'p> {
        let state = State {
            packer: Packer::new(),
            closed: Instant::now(),
            meter: part.grant.most.map(|rate| Meter::new(rate, part.burst)),
            failure: None,
            is_lost: false,
        };
        Recording { daemon, part, spool, flows, state: RefCell::new(state) }
    }

    /// Nothing more comes: the last chunk is kept. Says why the part had to end, if it had to.
    pub(super) fn finish(self) -> Option<Refusal> {
        self.keep(&mut self.state.borrow_mut());
        self.state.into_inner().failure
    }

    /// Closes the chunk.
    fn keep(&self, state: &mut State) {
        state.closed = Instant::now();
        if state.packer.is_empty() {
            return;
        }
        let observations = state.packer.observations();
        let chunk = state.packer.take();
        if state.is_lost {
            // What comes after the end of the disk is lost, and the part says so.
            return;
        }
        let observed = u32::try_from(observations).unwrap_or(u32::MAX);
        let mut kept = self.spool.append(&chunk, observed);
        while let Err(SpoolError::Full(_)) = kept {
            let Some(old) = self.daemon.make_room() else { break };
            self.daemon.notices.tell_to(old.0, old.1);
            kept = self.spool.append(&chunk, observed);
        }
        match kept {
            Ok(_) => self.daemon.counters.recorded(observations, chunk.len()),
            // Nobody wants it: there is nobody to tell.
            Err(SpoolError::Discarded) => self.part.stop(),
            Err(error) => {
                let host = &self.daemon.config.name;
                let (kind, why) = match error {
                    SpoolError::Full(why) => (RefusalKind::DiskFull, why),
                    error => (RefusalKind::Environment, error.to_string()),
                };
                let why = format!("{host} cannot store the results: {why}; the results so far are kept");
                self.daemon.notices.tell_to(Audience::Controller(self.part.controller), why.clone());
                state.is_lost = true;
                state.failure.get_or_insert(Refusal::new(kind, why));
            }
        }
    }

    fn sent(&self, state: &mut State, at: Time, member: FlowId, message: Bytes) {
        let behind = self.flows.partition_point(|flow| flow.meta.first <= member);
        let Some(flow) = self.flows[..behind].last() else { return };
        let on_network = on_network(flow, message);
        self.daemon.counters.sent(on_network);
        let Some(meter) = &mut state.meter else { return };
        if let Err(exceeded) = meter.sent(at, on_network)
            && state.failure.is_none()
        {
            let host = &self.daemon.config.name;
            let why = format!(
                "the part sends more than the {} that the owner of {host} allows, although its saturating \
                flows were slowed down; give them a fixed rate, smaller messages or fewer members, or ask \
                the owner for more",
                exceeded.allowed
            );
            state.failure = Some(Refusal::new(RefusalKind::Limit, why));
        }
    }
}

impl Recorder for Pen<'_, '_> {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        let state = &mut *self.0.state.borrow_mut();
        if let Observation::Sent { payload, .. } = what {
            self.0.sent(state, at, flow, payload);
        }
        state.packer.record(at, flow, what);
        if state.packer.len() >= LARGE {
            self.0.keep(state);
        }
    }

    fn payload(&mut self, flow: FlowId, channel: u16, sequence: u32, payload: &[u8]) {
        let state = &mut *self.0.state.borrow_mut();
        state.packer.payload(flow, channel, sequence, payload);
        if state.packer.len() >= LARGE {
            self.0.keep(state);
        }
    }

    fn end_measurement(&mut self, at: Time) {
        self.0.state.borrow_mut().packer.end_measurement(at);
    }
}

impl Supervisor for Watch<'_, '_> {
    fn progress(&mut self, done: Duration) -> Progress {
        self.0.part.progress(done);
        let state = &mut *self.0.state.borrow_mut();
        if state.closed.elapsed() >= OLD {
            self.0.keep(state);
        }
        if state.failure.is_some() || self.0.part.is_stopped() { Progress::Stop } else { Progress::Continue }
    }
}

impl Daemon {
    /// Disk is short: deletes the oldest part whose time is over, and says so. `None` if there is none.
    pub(super) fn make_room(&self) -> Option<(Audience, String)> {
        let gone = self.spool.make_room(Timestamp::now())?;
        let text = format!(
            "disk space ran short: unacknowledged records from {} for {} (`{}`, point {}, repetition {}) were \
            deleted",
            gone.began, gone.controller_name, gone.experiment, gone.part.point, gone.part.repetition
        );
        Some((Audience::Controller(gone.controller), text))
    }
}
