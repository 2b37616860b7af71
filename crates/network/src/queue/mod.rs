//! Queues: which waiting packet leaves next.

mod channels;
mod codel;
mod counted;
mod drr;
mod dualpi2;
mod ecn;
mod fifo;
mod fq_codel;
mod longest;
mod periodic;
mod pie;
mod priority;
mod round_robin;
mod slab;
mod sojourns;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod workload;

use trunkline_core::schema::{Parameter, Values};
use trunkline_core::{Bytes, Packet, Stream, Time};

use crate::fate::Fates;

pub use codel::{Codel, CodelConfig};
pub use counted::{Counted, QueueCounters};
pub use drr::Drr;
pub use dualpi2::{DualPi2, DualPi2Config};
pub use fifo::Fifo;
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use pie::{Pie, PieConfig};
pub use priority::Priority;
pub use round_robin::RoundRobin;
pub use sojourns::Sojourns;

/// Every queue that an experiment file can name. The file's reference and its reader, the property tests and the
/// benches iterate over this list; the first is the default.
pub const KINDS: &[QueueKind] = &[
    fifo::KIND,
    round_robin::KIND,
    drr::KIND,
    priority::KIND,
    codel::KIND,
    fq_codel::KIND,
    pie::KIND,
    dualpi2::KIND,
];

/// The queue of that name.
pub fn find(name: &str) -> Option<&'static QueueKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Decides which waiting packet leaves next.
///
/// A discipline may drop other packets than the one offered and several at once (FQ-CoDel, CoDel), hence fates and not
/// a verdict. There is no `peek`: what a caller may look at, it must also take.
pub trait Queue: Send {
    /// Takes `packet` at `now`, or drops it or others, each once and with the size it came with. Sets nothing but the packet's own marks.
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates);

    /// Hands out the packet that leaves at `now`.
    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Dequeued;

    /// What waits.
    fn backlog(&self) -> Backlog;
}

/// The answer of [`Queue::dequeue`].
#[derive(Debug, PartialEq, Eq)]
pub enum Dequeued {
    /// This packet leaves now.
    Packet(Packet),
    /// Nothing waits.
    Empty,
    /// Something waits, but may not leave before this time, which is later than the call's.
    NotBefore(Time),
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Bytes at the network layer.
    pub bytes: Bytes,
}

/// A discipline that an experiment file can name: `queue = { kind = "fifo", limit = "64 KiB" }`.
pub struct QueueKind {
    /// The word in the file.
    pub name: &'static str,
    /// One paragraph: what it does and where it is defined.
    pub doc: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Builds one from its values and a random stream of its own.
    pub build: fn(&Values, Stream) -> Box<dyn Queue>,
}
