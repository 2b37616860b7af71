//! The daemon: who is connected, what is executed, and what is looked at once a second.

mod far;
mod near;
pub(crate) mod parts;
mod recorder;
mod session;
pub(crate) mod status;
mod stream;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use jiff::Timestamp;
use trunkline_control::message::Purpose;
use trunkline_control::{
    Closer, Connection, ControlError, Fingerprint, Identity, Incoming, Pairing, Peers, Refusal, RefusalKind,
};
use trunkline_core::Duration;

use crate::agent::{CONTROLLERS, SPOOL, Settled, Stop};
use crate::clocks::{ClockWatch, Jump, Readings};
use crate::config::Config;
use crate::counters::{Connection as Became, Counters};
use crate::error::AgentError;
use crate::notices::Notices;
use crate::spool::{End, Ending, Spool};
use crate::traces::{Parent, Span, Traces};
use session::Controller;

/// How long somebody who connects has for the handshake, and then for the greeting.
const GREETING: Duration = Duration::from_secs(10);
/// How often it is looked at whether the daemon is to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(250);
/// How long parts have to end in order when it is, and streams to tell so.
const FAREWELL: StdDuration = StdDuration::from_secs(10);
/// So many connections may be open at once, and so many of them by whom we do not know yet.
const MOST: usize = 1024;
const STRANGERS: u64 = 64;
/// Threads need little: what is large is on the heap. Records of one part pass through one thread.
const STACK: usize = 512 << 10;

/// What all threads of an agent share.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) config: Config,
    pub(crate) identity: Identity,
    port: u16,
    peers: Peers,
    pairing: Pairing,
    pub(crate) spool: Spool,
    pub(crate) parts: Arc<parts::Parts>,
    offers: far::Offers,
    sessions: Mutex<BTreeMap<u64, Open>>,
    strangers: AtomicU64,
    pub(crate) notices: Notices,
    pub(crate) counters: Counters,
    pub(crate) traces: Traces,
    host: status::Host,
    since: Timestamp,
    stop: Stop,
    /// Processor time over the last seconds, in millionths of a core.
    load: AtomicU64,
}

/// A connection of somebody who is known.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    fingerprint: Fingerprint,
    /// Of a controller; `None` of another agent.
    controller: Option<String>,
    closer: Closer,
}

impl Open {
    pub(crate) fn is_controller(&self) -> bool {
        self.controller.is_some()
    }
}

/// Somebody who has connected and is not known yet: only so many have a thread at once.
struct Stranger(Arc<Daemon>);

impl Stranger {
    fn of(daemon: &Arc<Daemon>) -> Stranger {
        daemon.strangers.fetch_add(1, Ordering::Relaxed);
        Stranger(Arc::clone(daemon))
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.strangers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the owner should know that somebody was not enrolled: a code was tried, or something is wrong here. What anybody
/// can bring about as often as they like would push everything else out of the notices.
fn concerns_owner(error: &ControlError) -> bool {
    match error {
        ControlError::Refused { refusal, .. } => {
            matches!(refusal.kind, RefusalKind::WrongCode | RefusalKind::CodeUsed | RefusalKind::Name)
        }
        error => matches!(error, ControlError::Damaged { .. } | ControlError::File { .. }),
    }
}

impl Daemon {
    pub(crate) fn open(settings: Settled, address: SocketAddr, stop: Stop) -> Result<Daemon, AgentError> {
        let Settled { config, state, notices, identity } = settings;
        let limits = &config.limits;
        let (spool, unreadable) = Spool::open(&state.join(SPOOL), limits.disk, limits.keep)?;
        unreadable.into_iter().for_each(|text| notices.tell(text));
        let traces = config.traces.as_deref().map(|collector| Traces::to(collector, &config.name));
        Ok(Daemon {
            peers: Peers::open(&state.join(CONTROLLERS))?,
            pairing: Pairing::open(&state)?,
            port: address.port(),
            traces: traces.transpose()?.unwrap_or_default(),
            host: status::Host::look(),
            spool,
            config,
            identity,
            notices,
            stop,
            parts: Arc::default(),
            offers: far::Offers::default(),
            sessions: Mutex::default(),
            strangers: AtomicU64::new(0),
            counters: Counters::default(),
            since: Timestamp::now(),
            load: AtomicU64::new(0),
        })
    }

    /// Parts that an earlier process has not ended are over.
    pub(crate) fn recover(&self) {
        for spool in self.spool.list().iter().filter(|spool| spool.end().is_none()) {
            let Recovered { chunks, text } = Recovered::of(spool);
            let why = format!(
                "the agent on {} was ended while it measured; {chunks} chunks of what was recorded have survived",
                self.config.name
            );
            self.notices.tell(text);
            let how = Ending::Failed { refusal: Refusal::new(RefusalKind::Environment, why), outcome: None };
            if let Err(error) = spool.finish(End { at: Timestamp::now(), how }) {
                self.notices.tell(format!("how a part ended cannot be kept: {error}"));
            }
        }
    }

    /// Starts a thread that waits most of the time, with a small stack.
    pub(crate) fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), AgentError> {
        start(thread::Builder::new().name(name.to_owned()).stack_size(STACK), work)
    }

    /// Starts a thread with a usual stack.
    pub(crate) fn spawn_deep(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), AgentError> {
        start(thread::Builder::new().name(name.to_owned()), work)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_told()
    }

    /// Whether a controller with this key is connected.
    pub(crate) fn is_connected(&self, controller: &Fingerprint) -> bool {
        self.sessions().values().any(|open| open.controller.is_some() && open.fingerprint == *controller)
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, BTreeMap<u64, Open>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the agent started.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// Processor time over the last seconds: 1 is one core.
    pub(crate) fn load(&self) -> f64 {
        self.load.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// Somebody has connected.
    pub(crate) fn receive(self: &Arc<Daemon>, incoming: Incoming) {
        let is_full = self.sessions().len() >= MOST || self.strangers.load(Ordering::Relaxed) >= STRANGERS;
        if is_full {
            self.counters.connection(Became::Refused);
            return;
        }
        let (daemon, stranger) = (Arc::clone(self), Stranger::of(self));
        if let Err(error) = self.spawn("connection", move || daemon.greet(incoming, stranger)) {
            self.notices.tell(error.to_string());
        }
    }

    /// Finds out who it is and what they want, and does that.
    fn greet(self: Arc<Daemon>, incoming: Incoming, stranger: Stranger) {
        let peer = incoming.peer_address();
        let mut span =
            self.traces.span("connection", &Parent::default(), &[("network.peer.address", peer.to_string())]);
        let greeted = incoming.handshake(GREETING).and_then(|mut connection| {
            let hello = connection.hear(GREETING)?;
            Ok((connection, hello.purpose))
        });
        let (connection, purpose) = match greeted {
            Ok(greeted) => greeted,
            Err(error) => {
                self.counters.connection(Became::Failed);
                span.failed(&error.to_string());
                return self.notices.log(&error.to_string());
            }
        };
        match purpose {
            Purpose::Control => self.control(connection, stranger, &mut span),
            Purpose::Pair => self.pair(connection, &mut span),
            Purpose::Join { token } => {
                // Counted among the sessions from now on.
                drop(stranger);
                span.know("trunkline.purpose", "join");
                let number = self.opened(&connection, None);
                match far::join(&self, connection, &token) {
                    Ok(()) => self.counters.connection(Became::Joined),
                    Err(refusal) => {
                        span.failed(&refusal.why);
                        self.counters.connection(Became::Refused);
                        self.notices.log(&format!("{peer} as a near end: {}", refusal.why));
                    }
                }
                self.sessions().remove(&number);
            }
        }
    }

    fn control(self: &Arc<Daemon>, mut connection: Connection, stranger: Stranger, span: &mut Span) {
        span.know("trunkline.purpose", "control");
        let (peer, fingerprint) = (connection.peer_address(), connection.peer_fingerprint());
        let controller = match self.known(&fingerprint) {
            Ok(controller) => controller,
            Err(refusal) => {
                self.counters.connection(Became::Refused);
                span.failed(&refusal.why);
                self.notices.log(&format!("refused {peer}: {}", refusal.why));
                // Who has left need not know.
                let _ = connection.refuse(refusal);
                return;
            }
        };
        if connection.welcome(&self.config.name).is_err() {
            return self.counters.connection(Became::Failed);
        }
        self.counters.connection(Became::Control);
        connection.trust();
        span.know("trunkline.controller", controller.name.as_str());
        let number = self.opened(&connection, Some(controller.name.clone()));
        drop(stranger);
        self.notices.log(&format!("{} has connected from {peer}", controller.name));
        let how = session::serve(self, connection, &controller);
        self.sessions().remove(&number);
        match how {
            Ok(()) => self.notices.log(&format!("{} has left", controller.name)),
            Err(error) => {
                span.failed(&error.to_string());
                self.notices.log(&format!("{}: {error}", controller.name));
            }
        }
    }

    fn pair(&self, connection: Connection, span: &mut Span) {
        span.know("trunkline.purpose", "pair");
        let peer = connection.peer_address();
        if connection.welcome(&self.config.name).is_err() {
            return self.counters.connection(Became::Failed);
        }
        match self.pairing.admit(connection, &self.peers, Timestamp::now(), GREETING) {
            Ok(controller) => {
                self.counters.connection(Became::Paired);
                self.notices.tell(format!(
                    "the controller {} at {peer} is enrolled, key {}",
                    controller.name, controller.fingerprint
                ));
            }
            Err(error) => {
                span.failed(&error.to_string());
                self.counters.connection(Became::Refused);
                let why = match &error {
                    ControlError::Refused { refusal, .. } => refusal.why.clone(),
                    error => error.to_string(),
                };
                let text = format!("{} has tried to enrol: {why}", peer.ip().to_canonical());
                match concerns_owner(&error) {
                    true => self.notices.tell(text),
                    false => self.notices.log(&text),
                }
            }
        }
    }

    /// Whose key this is.
    fn known(&self, fingerprint: &Fingerprint) -> Result<Controller, Refusal> {
        if *fingerprint == self.identity.fingerprint() {
            let name = self.config.name.clone();
            return Ok(Controller { name, fingerprint: *fingerprint, is_owner: true });
        }
        match self.peers.find(fingerprint) {
            Ok(Some(peer)) => Ok(Controller { name: peer.name, fingerprint: *fingerprint, is_owner: false }),
            Ok(None) => Err(Refusal::new(
                RefusalKind::NotEnrolled,
                format!(
                    "{} does not know this controller; run `trunkline agent pair` there, and here the command that it prints",
                    self.config.name
                ),
            )),
            Err(error) => {
                // What is wrong with our files is nothing for strangers.
                self.notices.tell(format!("whether a controller is known cannot be found out: {error}"));
                let why = format!(
                    "{} cannot find out whether it knows this controller; `trunkline agent status` there says why",
                    self.config.name
                );
                Err(Refusal::new(RefusalKind::Environment, why))
            }
        }
    }

    fn opened(&self, connection: &Connection, controller: Option<String>) -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let open =
            Open { fingerprint: connection.peer_fingerprint(), controller, closer: connection.closer() };
        self.sessions().insert(number, open);
        number
    }

    /// Once a second: clocks, tokens, the disk, and controllers that were revoked.
    pub(crate) fn keep_house(&self) {
        let mut clocks = ClockWatch::default();
        let mut cpu = (Instant::now(), trunkline_io::process::cpu_time());
        let mut is_disk_failing = false;
        while !self.is_stopping() {
            for jump in clocks.look(Readings::now()) {
                self.jumped(jump);
            }
            self.offers.expire(Instant::now());
            far::cut_overdue(self);
            self.shut_out_revoked();
            let synced = self.spool.sync();
            if let (Err(error), false) = (&synced, is_disk_failing) {
                self.notices.tell(format!("what is kept is not safe: {error}"));
            }
            is_disk_failing = synced.is_err();
            let now = (Instant::now(), trunkline_io::process::cpu_time());
            let (passed, used) = (now.0.duration_since(cpu.0), now.1.saturating_sub(cpu.1));
            if passed >= StdDuration::from_secs(2) {
                let load = used.as_secs_f64() / passed.as_secs_f64();
                self.load.store((load * 1e6) as u64, Ordering::Relaxed);
                cpu = now;
            }
            for _ in 0..4 {
                if self.is_stopping() {
                    return;
                }
                thread::sleep(LOOK.to_std());
            }
        }
    }

    fn jumped(&self, jump: Jump) {
        let running = self.parts.list().len();
        let meanwhile =
            if running > 0 { format!(" while {running} parts were measured") } else { String::new() };
        match jump {
            Jump::Slept(by) => {
                self.counters.slept();
                self.notices.tell(format!(
                    "this host slept for {by}{meanwhile}: its clock has lost that time against others"
                ));
            }
            Jump::Forward(by) => {
                self.counters.wall_stepped();
                self.notices.tell(format!("the wall clock was set forward by {by}{meanwhile}; what is measured does not depend on it"));
            }
            Jump::Back(by) => {
                self.counters.wall_stepped();
                self.notices.tell(format!(
                    "the wall clock was set back by {by}{meanwhile}; what is measured does not depend on it"
                ));
            }
        }
    }

    /// Who is no longer known is no longer served.
    fn shut_out_revoked(&self) {
        let open: Vec<Open> =
            self.sessions().values().filter(|open| open.controller.is_some()).cloned().collect();
        for Open { fingerprint, controller, closer } in open {
            // A folder that cannot be read for a moment revokes nobody.
            let is_revoked = fingerprint != self.identity.fingerprint()
                && matches!(self.peers.find(&fingerprint), Ok(None));
            if is_revoked {
                self.notices.tell(format!("the controller {} was revoked", controller.unwrap_or_default()));
                closer.close();
                let parts = self.parts.list();
                parts.iter().filter(|part| part.controller == fingerprint).for_each(|part| part.stop());
            }
        }
    }

    /// Ends what runs, in order.
    pub(crate) fn leave(&self) {
        let running = self.parts.list();
        if !running.is_empty() {
            self.notices.log(&format!("{} parts end early", running.len()));
        }
        running.iter().filter(|part| part.end == parts::End::Near).for_each(|part| part.stop());
        let until = Instant::now() + FAREWELL;
        // Far ends end with their near ends, unless those go on.
        let mut are_far_ends_told = false;
        while !self.parts.list().is_empty() && Instant::now() < until {
            let left = self.parts.list();
            if !are_far_ends_told && left.iter().all(|part| part.end == parts::End::Far) {
                left.iter().for_each(|part| part.stop());
                self.offers.expire(Instant::now());
                are_far_ends_told = true;
            }
            thread::sleep(StdDuration::from_millis(20));
        }
        // Whoever is attached has a moment to hear how parts ended.
        if !running.is_empty() {
            thread::sleep(StdDuration::from_millis(300));
        }
        if let Err(error) = self.spool.sync() {
            self.notices.tell(format!("what is kept is not safe: {error}"));
        }
        self.sessions().values().for_each(|open| open.closer.close());
        self.traces.flush();
        self.notices.log(&format!("{} has stopped", self.config.name));
    }
}

fn start(thread: thread::Builder, work: impl FnOnce() + Send + 'static) -> Result<(), AgentError> {
    thread.spawn(work).map(|_| ()).map_err(AgentError::system("a thread cannot be started"))
}

struct Recovered {
    chunks: u64,
    text: String,
}

impl Recovered {
    fn of(spool: &crate::spool::PartSpool) -> Recovered {
        let meta = spool.meta();
        let chunks = spool.extent().chunks;
        let text = format!(
            "part {} of {} (`{}`) was interrupted when the agent was ended; {chunks} chunks have survived",
            near::named(&meta.part),
            meta.controller_name,
            meta.experiment
        );
        Recovered { chunks, text }
    }
}
