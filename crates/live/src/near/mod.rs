//! The near end's threads: one that sends for all UDP flows, one that receives what comes back to them, one or two per
//! TCP conversation, and one per flow over protocol engines.

mod answers;
pub(crate) mod engine;
pub(crate) mod tcp;
pub(crate) mod udp_receive;
pub(crate) mod udp_send;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;

use trunkline_core::{Duration, FlowId, Time};
use trunkline_flows::{Observer, oversize_counter};
use trunkline_io::{MonotonicClock, clock, pace};
use trunkline_metrics::Observation;
use trunkline_transport::framing::Key;

use crate::engine::Counters;
use crate::events::{Input, Outbox, Pool};
#[cfg(doc)]
use crate::start::Start;
pub(crate) use answers::Answers;

/// Counts conversations that ended before the run did; with why they did behind it, those of that kind.
pub(crate) const BROKEN: &str = "connections-broken";

/// What all threads of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Common<'r> {
    pub(crate) clock: MonotonicClock,
    /// Nothing is due at or after this.
    pub(crate) stop: Time,
    pub(crate) key: Key,
    pub(crate) stage: &'r Stage,
    pub(crate) inbox: SyncSender<Input>,
    pub(crate) pool: Pool,
}

impl Common<'_> {
    /// Whether time zero has come. Before that the clock shows zero too, and what is due then would leave early.
    pub(crate) fn has_begun(&self) -> bool {
        clock::raw_now() >= self.clock.epoch()
    }

    /// Waits for time zero, or until nothing is to be sent any more; spins over the last stretch.
    pub(crate) fn wait_for_begin(&self, spin: Duration) {
        let wake = self.clock.epoch().saturating_sub(spin.as_nanos());
        while !self.has_begun() && self.stage.is_sending() {
            let now = clock::raw_now();
            if now < wake {
                pace::sleep_until_raw(wake.min(now + LOOK.as_nanos()));
            } else {
                core::hint::spin_loop();
            }
        }
    }

    /// Whether the run is over because its time is: not stopped, and not broken off. Before that a source without a
    /// pace of its own has always something due.
    pub(crate) fn is_at_its_end(&self) -> bool {
        self.stage.is_over() && self.clock.now() >= self.stop
    }

    /// Where the thread that sends puts what it observes.
    pub(crate) fn departures(&self, sender: usize) -> Outbox {
        Outbox::new(self.inbox.clone(), self.pool.clone(), sender, true)
    }

    /// Where a thread that receives what `sender` sent puts what it observes.
    pub(crate) fn arrivals(&self, sender: usize) -> Outbox {
        Outbox::new(self.inbox.clone(), self.pool.clone(), sender, false)
    }
}

/// Takes the observations of a thread that sends, and adds how long each call took.
pub(crate) struct Departures {
    /// Until all members are done with sending.
    pub(crate) outbox: Option<Outbox>,
    /// What is counted beside what transports count.
    pub(crate) counters: Counters,
    clock: MonotonicClock,
}

impl Departures {
    fn of(sender: usize, common: &Common<'_>) -> Departures {
        let outbox = Some(common.departures(sender));
        Departures { outbox, counters: Counters::new(), clock: common.clock }
    }

    /// Passes on what is old enough.
    fn tick(&mut self, now: Time) {
        if let Some(outbox) = &mut self.outbox {
            outbox.tick(now);
        }
    }
}

impl Observer for Departures {
    fn observe(&mut self, at: Time, flow: FlowId, what: Observation, _: Option<&[u8]>) {
        let Some(outbox) = &mut self.outbox else { return };
        outbox.push(at, flow, what, None);
        if let Observation::Sent { due, .. } = what {
            let took_nanos = self.clock.now().since(at).as_nanos();
            let call = Observation::SendCall { error_nanos: at.since(due).as_nanos(), took_nanos };
            outbox.push(at, flow, call, None);
        }
    }

    fn oversize(&mut self, largest: usize) {
        *self.counters.entry(oversize_counter(largest)).or_default() += 1;
    }
}

/// How far the run is. Every thread looks at it at least every [`LOOK`].
#[derive(Debug)]
pub(crate) struct Stage {
    reached: AtomicU8,
    /// How many sources are not over of those with which the sending ends, see [`Start::awaited`].
    awaited: Arc<AtomicU32>,
}

/// No thread waits longer than this without looking at the stage.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

impl Stage {
    const STOPPED: u8 = 1;
    const OVER: u8 = 2;

    /// Of a session whose sending ends when none of these sources is left.
    pub(crate) fn new(awaited: &Arc<AtomicU32>) -> Stage {
        Stage { reached: AtomicU8::new(0), awaited: Arc::clone(awaited) }
    }

    /// One of the sources with which the sending ends is over.
    pub(crate) fn one_is_over(&self) {
        self.awaited.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether all sources are over with which the sending ends.
    pub(crate) fn all_are_over(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) == 0
    }

    /// Sources are not asked any more, whatever they have due; what is on its way may arrive.
    pub(crate) fn stop(&self) {
        self.reached.fetch_max(Stage::STOPPED, Ordering::Relaxed);
    }

    /// Everything ends.
    pub(crate) fn end(&self) {
        self.reached.store(Stage::OVER, Ordering::Relaxed);
    }

    /// Whether sources may still send.
    pub(crate) fn is_sending(&self) -> bool {
        self.reached.load(Ordering::Relaxed) < Stage::STOPPED
    }

    /// Whether threads are to end.
    pub(crate) fn is_over(&self) -> bool {
        self.reached.load(Ordering::Relaxed) >= Stage::OVER
    }
}
