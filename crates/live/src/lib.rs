//! Runs a point of an experiment on real sockets: the kernel's UDP and TCP, our own protocols over UDP, the real clock,
//! the network as it is.
//!
//! [`run`] is the near end: it sends what the sources want, on time, and gathers what is observed. The [`far_end`]
//! answers it from a process of its own: it reflects, or sinks and reports what arrived. The two talk over a pair of
//! pipes (`protocol`), for which a control connection to another host can stand in. Links of the file do not apply.
//!
//! **Time.** Both processes read the same monotonic clock, relative to an epoch that the near end sets once all is
//! open: [`Time::ZERO`](trunkline_core::Time::ZERO) is the start of the sources, so traces look like the simulator's.
//! Times are stamped in user space at both ends, before the call that sends and after the call that receives, so that
//! a round trip holds the same things in both directions; `kernel_stamps` moves the stamp of arrival into the kernel.
//! Datagrams handed over in one call share its stamp.
//!
//! **Threads.** One sends for all UDP flows, one receives what comes back to them; every TCP conversation has its own;
//! every flow over a protocol engine of ours (`engine`) has one at either end.
//! Observations travel in recycled batches over a bounded channel to the caller's thread, which alone calls the
//! recorder. What was sent is recorded before its arrival.
//!
//! [`run_pairs`] measures between several pairs of places of this machine, in a session for each.

mod ceiling;
mod channel;
mod check;
mod collect;
pub mod engine;
mod error;
mod events;
pub mod far_end;
mod link;
mod near;
mod observed;
mod options;
pub mod packed;
mod pairs;
pub mod part;
mod place;
mod protocol;
mod relation;
mod run;
mod session;
mod setup;
mod start;
mod threads;

pub use ceiling::{Ceiling, Limited, in_packets, on_network};
pub use channel::Channel;
pub use check::{check, kernel_stream, refuse_simulated, stream_setup};
pub use error::LiveError;
pub use options::{FarEnd, LiveOptions, Receive, Spin};
pub use pairs::{Pair, run_pairs};
pub use place::Place;
pub use run::{HELD_HERE, HELD_THERE, draw_key, run, run_near, run_with};

/// The machine in one line, for the report: processor, cores, system, the kernel's default congestion control.
pub fn machine_description() -> String {
    let machine = trunkline_io::Machine::describe();
    match trunkline_io::tcp::default_congestion_control() {
        Some(control) => format!("{machine}, TCP {control}"),
        None => machine.to_string(),
    }
}
