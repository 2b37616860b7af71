//! Links, media, queues and impairments as pure state machines: they are given the time and packets, and hand out
//! deliveries and fates. The simulator drives them in virtual time, the wire by the monotonic clock; neither changes
//! what they do.
//!
//! The contract of every type here (`docs/architecture.md`, "rules of a pure type"):
//! 1. Time is an argument and never decreases; equal times are legal.
//! 2. After any input, drain [`Outcome`] before the next.
//! 3. `next_event` after draining at `t` is `None` or later than `t`.
//! 4. **Split property**: `advance(t2)` gives exactly what `advance(t1); advance(t2)` gives, for every `t1 < t2`.
//! 5. Whoever drops, marks, corrupts or duplicates a packet says so at that moment, with the cause.

//!
//! Three parts of a link stay apart, since mixing them is the classic mistake of emulators: the [queue] decides which
//! packet leaves and alone has a limit, the [serial line](serial) transmits one packet at a time, and the
//! [impairments](impairment) act on what has been transmitted.
//!
//! What an experiment file can name stands in registries with its parameters: [`queue::KINDS`], [`medium::KINDS`],
//! [`impairment::LOSS_KINDS`]. Whatever is listed there is read, documented, tested and benched.

pub mod atm;
pub mod bucket;
mod buckets;
mod busy;
pub mod ethernet;
pub mod fate;
pub mod fddi;
pub mod gcra;
pub mod host;
pub mod impairment;
pub mod medium;
mod point_to_point;
pub mod queue;
pub mod serial;
pub mod t1;
pub mod trace;
pub mod wifi;

pub use busy::BusyTime;
pub use fate::{DropCause, Fate, Fates, MarkCause};
pub use impairment::{Impairments, Loss};
pub use medium::{Change, Delivery, Figure, Fixed, Medium, MediumCounters, Outcome};
pub use point_to_point::PointToPoint;
pub use queue::{Backlog, Dequeued, Queue};
pub use serial::{SerialConfig, SerialLink};
