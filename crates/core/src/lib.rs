//! What every other crate of Trunkline is written in: [`Time`] and [`Duration`] in integer nanoseconds, [`Rate`],
//! [`Bytes`] and [`Ratio`], the [`Packet`] that a link carries, identifiers, [named random streams](random), and the
//! [parameter tables](schema) from which the experiment file, its reference and its error messages are made.
//!
//! Nothing here reads a clock, a socket, a file or a global random generator, and nothing above may do so either
//! until the drivers (`docs/architecture.md`).

pub mod custom;
pub mod delivery_trace;
pub mod distribution;
pub mod packet;
pub mod quantity;
pub mod random;
pub mod ranges;
pub mod rtp;
pub mod schema;
pub mod series;
pub mod time;

pub use custom::Custom;
pub use delivery_trace::DeliveryTrace;
pub use distribution::Distribution;
pub use packet::{Address, Destination, Ecn, FlowId, Packet, PacketId, Port};
pub use quantity::{Amount, Bytes, QuantityError, Rate, Ratio, count};
pub use random::{Seed, Stream};
pub use ranges::Ranges;
pub use series::{OverTime, Series};
pub use time::{Duration, Time};

/// The sentence for what this build leaves out: the field's name of it, and the Cargo feature that brings it.
#[must_use]
pub fn not_built(what: &str, feature: &str) -> String {
    format!(
        "this build of Trunkline has no {what}: build it with `--features {feature}` or `--features full`, or install a \
         package"
    )
}
