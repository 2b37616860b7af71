//! The parts that are being executed: what they hold, how far they are, and how they are told what to do.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant};

use trunkline_control::facts::Busy;
use trunkline_control::{Closer, Fingerprint, PartId, Refusal, RefusalKind};
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_live::Ceiling;

use crate::config::Config;
use crate::permission::{self, Demand, Grant, Held};
use crate::traces::Parent;

/// Which end of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum End {
    Near,
    Far,
}

/// How far a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its sockets are being opened.
    Connecting,
    /// It waits to be started.
    Prepared,
    /// It was told when to start, in nanoseconds of this host's monotonic clock.
    Started(u64),
    /// It will not start, or not go on.
    Stopped,
}

/// How a part is called in logs.
pub(super) fn named(part: &PartId) -> String {
    let run = part.run.get(..8).unwrap_or_default();
    format!("{run}/{}/{}/{}", part.point, part.repetition, part.pair)
}

/// A part that is being executed.
pub(crate) struct Part {
    pub(crate) id: PartId,
    pub(crate) end: End,
    pub(crate) controller: Fingerprint,
    pub(crate) controller_name: String,
    pub(crate) grant: Grant,
    /// What its paced flows send.
    paced: Rate,
    /// What its greedy flows send at once, at most.
    pub(crate) burst: Bytes,
    /// What its greedy flows share with those of other parts.
    pub(crate) ceilings: Vec<Arc<Ceiling>>,
    /// When it was admitted.
    pub(crate) since: Instant,
    /// How long it takes at most, once it has started.
    pub(crate) duration: Duration,
    /// What streams of it are parts of.
    trace: Mutex<Parent>,
    stage: Mutex<Stage>,
    changed: Condvar,
    end_sending: AtomicBool,
    sources_over: AtomicBool,
    /// Nanoseconds since its start.
    done: AtomicU64,
    /// Ends the connection that it lives on, which no flag can.
    closer: Mutex<Option<Closer>>,
}

/// All parts that are being executed.
#[derive(Debug, Default)]
pub(crate) struct Parts(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    parts: BTreeMap<(PartId, End), Arc<Part>>,
    /// What greedy flows share: those of a controller, and without one all.
    shared: BTreeMap<Option<Fingerprint>, Shared>,
}

/// A limit of the owner: what parts with a pace leave of it is for greedy flows.
#[derive(Debug)]
struct Shared {
    limit: Rate,
    ceiling: Arc<Ceiling>,
}

impl Table {
    /// The ceilings of a controller's greedy flows.
    fn ceilings(&mut self, limits: [(Option<Fingerprint>, Option<Rate>); 2]) -> Vec<Arc<Ceiling>> {
        let ceiling = |(of, limit): (Option<Fingerprint>, Option<Rate>)| {
            let limit = limit?;
            let new = || Shared { limit, ceiling: Arc::new(Ceiling::new(limit)) };
            Some(Arc::clone(&self.shared.entry(of).or_insert_with(new).ceiling))
        };
        limits.into_iter().filter_map(ceiling).collect()
    }

    /// Gives greedy flows what the others leave, whenever those come or go.
    fn share(&mut self) {
        let parts = &self.parts;
        for (of, Shared { limit, ceiling }) in &self.shared {
            let own = parts.values().filter(|part| of.is_none_or(|of| part.controller == of));
            let left = own.fold(limit.bits_per_second(), |left, part| {
                left.saturating_sub(part.paced.bits_per_second())
            });
            ceiling.set(Rate::from_bits_per_second(left));
        }
        self.shared.retain(|_, shared| Arc::strong_count(&shared.ceiling) > 1);
    }
}

/// A part that is among those being executed until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    part: Arc<Part>,
    parts: Arc<Parts>,
}

impl Parts {
    /// Takes a part in, if its controller may have what it asks for.
    pub(crate) fn admit(
        self: &Arc<Parts>,
        config: &Config,
        (id, end): (PartId, End),
        (controller, name): (Fingerprint, &str),
        demand: &Demand,
    ) -> Result<Place, Refusal> {
        let mut table = self.lock();
        let parts = &table.parts;
        if parts.contains_key(&(id.clone(), end)) {
            return Err(Refusal::new(
                RefusalKind::Part,
                format!("this part is already running on {}", config.name),
            ));
        }
        let all: Held = parts.values().map(|part| &part.grant).collect();
        let own = parts.values().filter(|part| part.controller == controller);
        let own: Held = own.map(|part| &part.grant).collect();
        let grant = permission::judge(config, name, demand, &own, &all)?;
        let limits = [(Some(controller), config.permission(name).rate), (None, config.limits.rate)];
        let ceilings = demand.greedy.as_ref().map(|_| table.ceilings(limits)).unwrap_or_default();
        let part = Arc::new(Part {
            id: id.clone(),
            end,
            controller,
            controller_name: name.to_owned(),
            grant,
            paced: demand.rate,
            burst: demand.greedy.as_ref().map(|greedy| greedy.burst).unwrap_or_default(),
            ceilings,
            since: Instant::now(),
            duration: demand.duration,
            trace: Mutex::default(),
            stage: Mutex::new(Stage::Connecting),
            changed: Condvar::new(),
            end_sending: AtomicBool::new(false),
            sources_over: AtomicBool::new(false),
            done: AtomicU64::new(0),
            closer: Mutex::default(),
        });
        table.parts.insert((id, end), Arc::clone(&part));
        table.share();
        Ok(Place { part, parts: Arc::clone(self) })
    }

    /// A part that is being executed.
    pub(crate) fn find(&self, id: &PartId, end: End) -> Option<Arc<Part>> {
        self.lock().parts.get(&(id.clone(), end)).cloned()
    }

    pub(crate) fn list(&self) -> Vec<Arc<Part>> {
        self.lock().parts.values().cloned().collect()
    }

    /// What is in use: by everybody, or by a controller.
    pub(crate) fn busy(&self, of: Option<&Fingerprint>) -> Busy {
        let table = self.lock();
        let shown = table.parts.values().filter(|part| of.is_none_or(|of| part.controller == *of));
        let held: Held = shown.map(|part| &part.grant).collect();
        Busy {
            parts: u32::try_from(held.parts).unwrap_or(u32::MAX),
            conversations: held.conversations,
            rate: held.rate,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(crate) fn part(&self) -> &Arc<Part> {
        &self.part
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.parts.lock();
        table.parts.remove(&(self.part.id.clone(), self.part.end));
        table.share();
    }
}

impl Part {
    pub(crate) fn stage(&self) -> Stage {
        *self.lock()
    }

    /// Its sockets are open. False if it was stopped before.
    pub(crate) fn prepared(&self) -> bool {
        let mut stage = self.lock();
        if *stage == Stage::Connecting {
            *stage = Stage::Prepared;
        }
        *stage == Stage::Prepared
    }

    /// Lets it start at a moment of this host's monotonic clock. False if it is not prepared.
    pub(crate) fn start(&self, at: u64) -> bool {
        let mut stage = self.lock();
        let is_prepared = *stage == Stage::Prepared;
        if is_prepared {
            *stage = Stage::Started(at);
            self.changed.notify_all();
        }
        is_prepared
    }

    /// Ends it; what was measured is kept.
    pub(crate) fn stop(&self) {
        *self.lock() = Stage::Stopped;
        self.changed.notify_all();
        // The near end of a part ends in order, with what the far end still has to report.
        if self.end == End::Far {
            self.cut();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stage() == Stage::Stopped
    }

    /// Waits a while to be started; `None` if it was not.
    pub(crate) fn wait_for_start(&self, patience: StdDuration) -> Option<u64> {
        let waits = |stage: &mut Stage| matches!(stage, Stage::Connecting | Stage::Prepared);
        let waited = self.changed.wait_timeout_while(self.lock(), patience, waits);
        match *waited.unwrap_or_else(PoisonError::into_inner).0 {
            Stage::Started(at) => Some(at),
            _ => None,
        }
    }

    /// The sources elsewhere are over with which the sending ends.
    pub(crate) fn end_sending(&self) {
        self.end_sending.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_sending_over(&self) -> bool {
        self.end_sending.load(Ordering::Relaxed)
    }

    /// Its own sources are.
    pub(crate) fn sources_over(&self) {
        self.sources_over.store(true, Ordering::Release);
    }

    pub(crate) fn are_sources_over(&self) -> bool {
        self.sources_over.load(Ordering::Acquire)
    }

    pub(crate) fn progress(&self, done: Duration) {
        self.done.store(done.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn done(&self) -> Duration {
        Duration::from_nanos(self.done.load(Ordering::Relaxed))
    }

    /// What ends it at once.
    pub(crate) fn lives_on(&self, closer: Closer) {
        *self.closer.lock().unwrap_or_else(PoisonError::into_inner) = Some(closer);
        if self.end == End::Far && self.is_stopped() {
            self.cut();
        }
    }

    /// The span of this part.
    pub(crate) fn trace(&self) -> Parent {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn traced(&self, parent: Parent) {
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = parent;
    }

    /// Ends the connection between its ends.
    pub(crate) fn cut(&self) {
        if let Some(closer) = &*self.closer.lock().unwrap_or_else(PoisonError::into_inner) {
            closer.close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("id", &self.id)
            .field("end", &self.end)
            .field("stage", &self.stage())
            .finish()
    }
}
