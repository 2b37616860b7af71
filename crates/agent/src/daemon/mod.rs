//! The daemon: who is connected, what is executed, and what is looked at once a second.

mod connected;
mod door;
mod far;
pub(crate) mod lobby;
mod near;
pub(crate) mod parts;
mod plan;
mod recorder;
mod session;
pub(crate) mod status;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use jiff::Timestamp;
use trunkline_control::{Fingerprint, Identity, Memory, Pairing, Peers, Refusal, RefusalKind, Service};
use trunkline_core::{Bytes, Duration};
use trunkline_io::admission::Admission;

use crate::clocks::{ClockWatch, Jump, Readings};
use crate::config::Config;
use crate::counters::Counters;
use crate::error::AgentError;
use crate::memory;
use crate::notices::{Audience, Notices};
use crate::outbound::Outbound;
use crate::settings::{CONTROLLERS, SPOOL, Settled, Stop};
use crate::spool::{End, Ending, Spool};
use crate::traces::Traces;
use connected::Open;

/// How often it is looked at whether the daemon is to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(250);
/// How long parts have to end in order when it is, and streams to tell so.
const FAREWELL: StdDuration = StdDuration::from_secs(10);
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
    strangers: Arc<Admission>,
    pub(crate) memory: Memory,
    pub(crate) outbound: Outbound,
    pub(crate) notices: Notices,
    pub(crate) counters: Counters,
    pub(crate) traces: Traces,
    host: status::Host,
    since: Timestamp,
    stop: Stop,
    /// Processor time over the last seconds, in millionths of a core.
    load: AtomicU64,
}

impl Daemon {
    pub(crate) fn open(settings: Settled, address: SocketAddr, stop: Stop) -> Result<Daemon, AgentError> {
        let Settled { config, state, notices, identity } = settings;
        let limits = &config.limits;
        let (spool, unreadable) = Spool::open(&state.join(SPOOL), limits.disk, limits.keep)?;
        unreadable.into_iter().for_each(|text| notices.tell(text));
        let host = status::Host::look();
        let memory = memory::for_controllers(&config, host.memory());
        let traces = config.traces.as_deref().map(|collector| Traces::to(collector, &config.name));
        Ok(Daemon {
            peers: Peers::open(&state.join(CONTROLLERS))?,
            pairing: Pairing::open(&Service::AGENT, &state)?,
            port: address.port(),
            traces: traces.transpose()?.unwrap_or_default(),
            host,
            memory,
            spool,
            config,
            identity,
            notices,
            stop,
            parts: Arc::default(),
            offers: far::Offers::default(),
            sessions: Mutex::default(),
            strangers: Admission::new(door::STRANGERS),
            outbound: Outbound::default(),
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
                "the agent on {} was stopped during the measurement; {chunks} chunks of records have survived",
                self.config.name
            );
            self.notices.tell_to(Audience::Controller(spool.meta().controller), text);
            let how = Ending::Failed { refusal: Refusal::new(RefusalKind::Environment, why), outcome: None };
            if let Err(error) = spool.finish(End { at: Timestamp::now(), how }) {
                self.notices.tell(format!("cannot store the outcome of a part: {error}"));
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

    /// Once a second: clocks, tokens, the disk, and controllers that were revoked.
    pub(crate) fn keep_house(&self) {
        let mut clocks = ClockWatch::default();
        let mut cpu = (Instant::now(), trunkline_io::process::cpu_time());
        let mut is_disk_failing = false;
        let mut missing = BTreeSet::new();
        while !self.is_stopping() {
            for jump in clocks.look(Readings::now()) {
                self.jumped(jump);
            }
            self.offers.expire(Instant::now());
            far::cut_overdue(self);
            self.shut_out_revoked();
            self.share_disk();
            missing = self.discard_of_revoked(&missing);
            let synced = self.spool.sync();
            if let (Err(error), false) = (&synced, is_disk_failing) {
                self.notices.tell(format!("the stored results could not be synced to disk: {error}"));
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
                self.notices.tell_to(
                    Audience::All,
                    format!(
                        "this host was suspended for {by}{meanwhile}: its clock lost that time relative to \
                        others"
                    ),
                );
            }
            Jump::Forward(by) => {
                self.counters.wall_stepped();
                self.notices.tell_to(
                    Audience::All,
                    format!(
                        "the wall clock was set forward by \
                    {by}{meanwhile}; measurements do not depend on it"
                    ),
                );
            }
            Jump::Back(by) => {
                self.counters.wall_stepped();
                self.notices.tell_to(
                    Audience::All,
                    format!(
                        "the wall clock was set back by {by}{meanwhile}; measurements do not depend on it"
                    ),
                );
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

    /// Where several controllers are enrolled, each leaves the others something of the disk.
    fn share_disk(&self) {
        // A folder that cannot be read for a moment changes nothing.
        if let Ok(controllers) = self.peers.list() {
            self.spool.set_shared(controllers.len() > 1);
        }
    }

    /// Ends and deletes the parts of controllers that are not enrolled now and were not at the last call: a controller that
    /// enrols under another name is missing for a moment. Returns the keys that are missing now.
    fn discard_of_revoked(&self, missing_before: &BTreeSet<Fingerprint>) -> BTreeSet<Fingerprint> {
        let (running, kept) = (self.parts.list(), self.spool.list());
        let owners = running.iter().map(|part| part.controller);
        let owners: BTreeSet<_> = owners.chain(kept.iter().map(|spool| spool.meta().controller)).collect();
        // A folder of controllers that cannot be read for a moment revokes nobody.
        let is_missing = |owner: &Fingerprint| matches!(self.peers.find(owner), Ok(None));
        let missing: BTreeSet<_> = owners.into_iter().filter(is_missing).collect();
        let is_revoked = |owner: &Fingerprint| missing.contains(owner) && missing_before.contains(owner);
        running.iter().filter(|part| is_revoked(&part.controller)).for_each(|part| part.stop());
        let (mut parts, mut bytes) = (0, 0);
        for spool in kept.iter().filter(|spool| is_revoked(&spool.meta().controller)) {
            let size = spool.bytes().count();
            // What cannot be deleted is tried again.
            if self.spool.discard(&spool.meta().part).is_ok() {
                parts += 1;
                bytes += size;
            }
        }
        if parts > 0 {
            let text = format!(
                "{parts} parts of controllers that were revoked are deleted, {} on disk",
                Bytes(bytes)
            );
            self.notices.tell(text);
        }
        missing
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
            self.notices.tell(format!("the stored results could not be synced to disk: {error}"));
        }
        self.sessions().values().for_each(|open| open.closer.close());
        self.traces.flush();
        self.notices.log(&format!("{} has stopped", self.config.name));
    }
}

fn start(thread: thread::Builder, work: impl FnOnce() + Send + 'static) -> Result<(), AgentError> {
    thread.spawn(work).map(|_| ()).map_err(AgentError::system("cannot start a thread"))
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
            "part {} of {} (`{}`) was interrupted when the agent stopped; {chunks} chunks have survived",
            parts::named(&meta.part),
            meta.controller_name,
            meta.experiment
        );
        Recovered { chunks, text }
    }
}
