//! The near end of a part: from what a controller asks to how it ended.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration as StdDuration, Instant};

use jiff::Timestamp;
use trunkline_control::message::{Prepare, Purpose};
use trunkline_control::{
    Connection, FrameWriter, FromAgent, Held, PartId, PeerError, Refusal, RefusalKind, Service, Share,
};
use trunkline_core::Duration;
use trunkline_live::part::{Gate, NearPart};
use trunkline_live::{Channel, FarEnd, Limited, LiveError, LiveOptions, run_near};
use trunkline_metrics::DriverOutcome;

use super::Daemon;
use super::connected::Controller;
use super::parts::{Part, Place, named};
use super::plan::{Planned, attempt, plan};
use super::recorder::{Pen, Recording, Watch};
use crate::counters::Outcome;
use crate::notices::Audience;
use crate::spool::{End, Ending, Meta, PartSpool, SpoolError};
use crate::traces::{Parent, Span};

/// How long the far end has to answer, and every other step of the set-up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A part that is not started is dropped so long after its controller has left.
const ORPHANED: StdDuration = StdDuration::from_secs(60);

/// The memory that a request takes of its controller's share.
pub(super) struct Taken {
    /// Until it is judged.
    pub(super) judging: Held,
    /// The message, until the part is over.
    pub(super) message: Option<Held>,
    /// The share of its controller, from which the buffers of its engines are taken.
    pub(super) share: Share,
}

/// Executes a part in a thread of its own. The controller is answered when its sockets are open, or when that is not to be.
pub(super) fn prepare(
    daemon: &Arc<Daemon>,
    controller: &Controller,
    request: Prepare,
    taken: Taken,
    answer: FrameWriter,
) -> Result<(), Refusal> {
    let (of_part, controller) = (Arc::clone(daemon), controller.clone());
    let work = move || {
        let part = request.part.clone();
        let Taken { judging, message: _message, share } = taken;
        let admitted = admit(&of_part, &controller, &share, request, &answer);
        drop(judging);
        if let Err(refusal) = admitted.map(Job::run) {
            of_part.counters.part(Outcome::Refused);
            of_part.notices.log(&format!("refused {}: {}", controller.name, refusal.why));
            // Who has left need not know.
            let _ = answer.send(&FromAgent::Refused { part: Some(part), refusal });
        }
    };
    daemon.spawn_deep("part", work).map_err(|error| Refusal::new(RefusalKind::Environment, error.to_string()))
}

/// What becomes of a part that may be executed.
fn admit(
    daemon: &Arc<Daemon>,
    controller: &Controller,
    share: &Share,
    request: Prepare,
    answer: &FrameWriter,
) -> Result<Job, Refusal> {
    let (planned, place) = plan(daemon, controller, share, &request)?;
    let meta = Meta {
        part: request.part.clone(),
        controller: controller.fingerprint,
        controller_name: controller.name.clone(),
        experiment: planned.experiment.clone(),
        began: Timestamp::now(),
    };
    let spool = create(daemon, meta)?;
    let controller = controller.clone();
    Ok(Job { daemon: Arc::clone(daemon), controller, place, spool, answer: answer.clone(), planned, request })
}

fn create(daemon: &Daemon, meta: Meta) -> Result<Arc<PartSpool>, Refusal> {
    loop {
        match daemon.spool.create(meta.clone()) {
            Ok(spool) => return Ok(spool),
            Err(error) => {
                let kind = match error {
                    SpoolError::Full(_) => RefusalKind::DiskFull,
                    SpoolError::Exists => RefusalKind::Part,
                    SpoolError::Run(_) => RefusalKind::Input,
                    _ => RefusalKind::Environment,
                };
                if let (RefusalKind::DiskFull, Some(old)) = (kind, daemon.make_room()) {
                    daemon.notices.tell_to(old.0, old.1);
                    continue;
                }
                let host = &daemon.config.name;
                return Err(Refusal::new(kind, format!("{host} cannot store the results: {error}")));
            }
        }
    }
}

/// A part on its way.
struct Job {
    daemon: Arc<Daemon>,
    controller: Controller,
    place: Place,
    spool: Arc<PartSpool>,
    answer: FrameWriter,
    planned: Planned,
    request: Prepare,
}

impl Job {
    fn run(self) {
        let Job { daemon, controller, place, spool, answer, planned, request } = self;
        let part = Arc::clone(place.part());
        let _settled = Settled { daemon: &daemon, spool: &spool };
        let mut span = daemon.traces.span("part", &Parent::of(request.traceparent.as_deref()), &about(&part));
        part.traced(span.as_parent());
        let gate = PartGate::new(&daemon, &part, &answer, span.as_parent());
        let recording = Recording::new(&daemon, &part, &spool, &planned.scenario.flows);
        let measured = connect(&daemon, &controller, &planned, &request).and_then(|connection| {
            part.lives_on(connection.closer());
            let _ = gate.far.set(connection.peer_address().ip().to_canonical());
            let options = options(connection, planned.limited.clone());
            let near =
                NearPart { scenario: &planned.scenario, seed: planned.seed, options: &options, gate: &gate };
            run_near(near, &mut Pen(&recording), &mut Watch(&recording)).map_err(Failed::Live)
        });
        gate.next_step("settle");
        let stopped_by = recording.finish();
        let host = &daemon.config.name;
        let ending = match (measured, stopped_by) {
            (Err(failed), _) if !gate.is_ready() => {
                let refusal = failed.refusal(&daemon, part.is_stopped());
                span.failed(&refusal.why);
                daemon.counters.part(Outcome::Refused);
                daemon.notices.log(&format!("part {} cannot start: {}", named(&part.id), refusal.why));
                drop(place);
                let _ = daemon.spool.discard(&part.id);
                let _ = answer.send(&FromAgent::Refused { part: Some(part.id.clone()), refusal });
                return;
            }
            (Err(_), None) if !gate.has_begun() && !daemon.is_connected(&part.controller) => {
                daemon.notices.log(&format!(
                    "part {} was never started, and no controller waits for it",
                    named(&part.id)
                ));
                let _ = daemon.spool.discard(&part.id);
                return;
            }
            (Ok(outcome), None) if !daemon.is_stopping() => finished(&outcome),
            (Ok(outcome), refusal) => {
                let refusal = refusal.unwrap_or_else(|| {
                    let why = format!(
                        "the agent on {host} was stopped during the measurement; the results so \
                        far are kept"
                    );
                    Refusal::new(RefusalKind::Environment, why)
                });
                Ending::Failed { refusal, outcome: json(&outcome) }
            }
            (Err(failed), refusal) => {
                let outcome = failed.outcome().and_then(json);
                let refusal = refusal.unwrap_or_else(|| failed.refusal(&daemon, part.is_stopped()));
                Ending::Failed { refusal, outcome }
            }
        };
        match &ending {
            Ending::Finished { .. } => daemon.counters.part(Outcome::Finished),
            Ending::Failed { refusal, .. } => {
                span.failed(&refusal.why);
                daemon.counters.part(Outcome::Failed);
                let (id, name, why) = (named(&part.id), &part.controller_name, &refusal.why);
                let text = format!("part {id} of {name} failed: {why}");
                daemon.notices.tell_to(Audience::Controller(part.controller), text);
            }
        }
        // What it held is free before anybody hears that it is over.
        drop(place);
        end(&daemon, &spool, ending);
    }
}

/// What its span says of a part.
fn about(part: &Part) -> [(&'static str, String); 5] {
    let PartId { run, point, repetition, pair, .. } = &part.id;
    [
        ("trunkline.run", run.clone()),
        ("trunkline.point", point.to_string()),
        ("trunkline.repetition", repetition.to_string()),
        ("trunkline.pair", pair.to_string()),
        ("trunkline.controller", part.controller_name.clone()),
    ]
}

fn end(daemon: &Daemon, spool: &PartSpool, how: Ending) {
    if let Err(error) = spool.finish(End { at: Timestamp::now(), how }) {
        daemon.notices.tell(format!("cannot store the outcome of a part: {error}"));
    }
}

/// Whoever waits for the end of a part hears of it even if its thread breaks down.
struct Settled<'j> {
    daemon: &'j Daemon,
    spool: &'j PartSpool,
}

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        if self.spool.end().is_none() {
            let why = format!("the agent on {} failed on this part", self.daemon.config.name);
            let refusal = Refusal::new(RefusalKind::Environment, why);
            end(self.daemon, self.spool, Ending::Failed { refusal, outcome: None });
        }
    }
}

/// Connects with the far end, and shows that it may.
fn connect(
    daemon: &Daemon,
    controller: &Controller,
    planned: &Planned,
    request: &Prepare,
) -> Result<Connection, Failed> {
    let mut last = None;
    for far in &planned.far {
        let attempt = attempt(daemon, controller).map_err(Failed::Refused)?;
        let connected = trunkline_control::connect(
            &far.to_string(),
            &daemon.identity,
            &request.far.fingerprint,
            PATIENCE,
        );
        match connected {
            Ok(mut connection) => {
                attempt.succeeded();
                let purpose = Purpose::Join { token: request.far.token.clone() };
                connection.introduce(purpose, PATIENCE).map_err(Failed::Far)?;
                return Ok(connection);
            }
            Err(error) => last = Some(error),
        }
    }
    let nowhere = || PeerError::Address {
        service: &Service::AGENT,
        address: request.far.address.clone(),
        reason: "it has no address".to_owned(),
    };
    Err(Failed::Far(last.unwrap_or_else(nowhere)))
}

fn options(connection: Connection, limited: Limited) -> LiveOptions {
    let (far, near) = (connection.peer_address().ip(), connection.local_address().ip());
    let (from, to) = connection.split();
    let mut options = LiveOptions::new(FarEnd::Channel(Channel::new(from, to)));
    options.limited = limited;
    options.address = far.to_canonical();
    options.near_address = Some(near.to_canonical());
    options
}

/// Why a part did not begin, or did not end as it should.
enum Failed {
    /// It was not tried.
    Refused(Refusal),
    Far(PeerError),
    Live(LiveError),
}

impl Failed {
    fn outcome(&self) -> Option<&DriverOutcome> {
        match self {
            Failed::Refused(_) | Failed::Far(_) => None,
            Failed::Live(error) => error.outcome(),
        }
    }

    fn refusal(&self, daemon: &Daemon, was_stopped: bool) -> Refusal {
        let host = &daemon.config.name;
        match self {
            Failed::Refused(refusal) | Failed::Far(PeerError::Refused { refusal, .. }) => refusal.clone(),
            Failed::Far(error) => {
                Refusal::new(RefusalKind::FarEnd, format!("{host} cannot reach the far end: {error}"))
            }
            Failed::Live(LiveError::Abandoned) if daemon.is_stopping() => {
                Refusal::new(RefusalKind::Stopping, format!("the agent on {host} is being stopped"))
            }
            Failed::Live(LiveError::Abandoned) => {
                let why = match was_stopped {
                    true => "it was stopped before it started",
                    false => "it was never started, and its controller has disconnected",
                };
                Refusal::new(RefusalKind::Part, why)
            }
            Failed::Live(LiveError::ClockJumped { by, .. }) => {
                let why = format!(
                    "{host}: its clock and that of the far end jumped by {by} relative to each other, as when \
                    a host is suspended or a virtual machine migrates"
                );
                Refusal::new(RefusalKind::Clock, why)
            }
            Failed::Live(LiveError::System { error, what })
                if let Some(memory) = daemon.config.limits.memory
                    && is_out_of_memory(error) =>
            {
                let why = format!(
                    "{host}: {what}: the agent's memory limit of {memory} is too small for this part and its \
                    other work; use fewer members, or ask the owner for more"
                );
                Refusal::new(RefusalKind::Limit, why)
            }
            Failed::Live(error) => {
                let kind = match error {
                    error if error.is_bad_input() => RefusalKind::Input,
                    LiveError::FarEndLost { .. }
                    | LiveError::NoAnswer { .. }
                    | LiveError::NotConnected { .. } => RefusalKind::FarEnd,
                    _ => RefusalKind::Environment,
                };
                Refusal::new(kind, format!("{host}: {error}"))
            }
        }
    }
}

/// What the system says where memory is short.
fn is_out_of_memory(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::OutOfMemory)
}

fn finished(outcome: &DriverOutcome) -> Ending {
    let clock_errors = outcome.flows.iter().map(|flow| flow.clock_error).collect();
    Ending::Finished { outcome: json(outcome).unwrap_or_default(), clock_errors }
}

fn json(outcome: &DriverOutcome) -> Option<String> {
    serde_json::to_string(outcome).ok()
}

/// Holds the part until its controller starts it.
struct PartGate<'j> {
    daemon: &'j Daemon,
    part: &'j Part,
    answer: &'j FrameWriter,
    /// Where the far end was found.
    far: OnceLock<IpAddr>,
    is_ready: AtomicBool,
    has_begun: AtomicBool,
    /// The span of the part, and that of its present step.
    trace: Parent,
    step: Mutex<Span>,
}

impl<'j> PartGate<'j> {
    fn new(daemon: &'j Daemon, part: &'j Part, answer: &'j FrameWriter, trace: Parent) -> PartGate<'j> {
        let (is_ready, has_begun) = (AtomicBool::new(false), AtomicBool::new(false));
        let step = Mutex::new(daemon.traces.span("prepare", &trace, &[]));
        PartGate { daemon, part, answer, far: OnceLock::new(), is_ready, has_begun, trace, step }
    }

    /// The step before is over.
    fn next_step(&self, name: &'static str) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) =
            self.daemon.traces.span(name, &self.trace, &[]);
    }

    /// Whether the controller was told that the part can begin.
    fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }
}

impl Gate for PartGate<'_> {
    fn ready(&self) {
        if let Some(&far) = self.far.get()
            && self.part.prepared()
        {
            self.is_ready.store(true, Ordering::Relaxed);
            self.next_step("wait");
            // If the controller has gone, the part is dropped after a while.
            let _ = self.answer.send(&FromAgent::Prepared { part: self.part.id.clone(), far });
        }
    }

    fn begin(&self) -> Option<u64> {
        let mut last_seen = Instant::now();
        loop {
            if let Some(at) = self.part.wait_for_start(StdDuration::from_millis(500)) {
                self.has_begun.store(true, Ordering::Relaxed);
                self.next_step("run");
                return Some(at);
            }
            if self.part.is_stopped() || self.daemon.is_stopping() {
                return None;
            }
            if self.daemon.is_connected(&self.part.controller) {
                last_seen = Instant::now();
            } else if last_seen.elapsed() > ORPHANED {
                return None;
            }
        }
    }

    fn sources_over(&self) {
        self.part.sources_over();
    }

    fn end_sending(&self) -> bool {
        self.part.is_sending_over()
    }
}
