//! Drives the medium of one link by the monotonic clock: a thread that reads frames from the stations' devices, offers them
//! to the medium at the times at which they arrived, and writes them where and when the medium delivers them.
//!
//! Decisions are made in the link's virtual time, which is never ahead of what is known to have arrived: a thread that wakes
//! late delays packets, but drops and reorders none. That part, without clock and thread, is [`RelayCore`].

mod command;
mod counters;
mod due;
pub mod flows;
mod fuzz;
pub mod header;
mod run;
mod state;
mod stations;
#[cfg(test)]
mod tests;
mod too_big;

pub use command::{Capture, Change, LINK_DOWN, RelayCommand, RelayEnded, RelayHandle};
pub use counters::{FlowCounters, FlowDirection, FlowKey, PortCounters, RelayCounters, Volume};
#[doc(hidden)]
pub use fuzz::fuzz_frames;
pub(crate) use header::datagram;
pub use run::{RelayOptions, relay, start};
pub use state::{CoreConfig, RelayCore};
pub use stations::{Hop, Stations};
