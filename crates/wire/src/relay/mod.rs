//! Drives the medium of one link by the monotonic clock.

mod command;
mod counters;

pub use command::{Capture, Change, LINK_DOWN, RelayCommand, RelayEnded, RelayHandle};
pub use counters::{FlowCounters, FlowDirection, FlowKey, PortCounters, RelayCounters, Volume};
