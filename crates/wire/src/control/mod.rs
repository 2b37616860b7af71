//! Control of a running wire: what its socket answers, and who asks.
//!
//! The socket speaks lines of JSON, a [`Request`] and then a [`Reply`] each, and to `GET /metrics` of HTTP it answers with the
//! text that Prometheus reads: `curl --unix-socket PATH http://wire/metrics`.

mod client;
mod controller;
mod fuzz;
mod prometheus;
mod rates;
mod server;
mod snapshot;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use client::Client;
pub use controller::{ControlledLink, Controller, Drive};
#[doc(hidden)]
pub use fuzz::fuzz_control;
pub use rates::{DirectionRates, FlowRates, Rates};
pub use server::ControlServer;
pub use snapshot::{DirectionSnapshot, FlowSide, FlowSnapshot, LinkSnapshot, Packets, Sojourn, WireSnapshot};

/// What a wire can be asked: a line of JSON, `"counters"` or `{"set":{"key":"trunk.rate","value":"5mbit"}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What its links have counted.
    Counters,
    /// A key of a link, from now on; see [`Controller::set`].
    Set {
        /// `trunk.rate`, `trunk.backward.loss`, `trunk.up`.
        key: String,
        /// `5mbit`.
        value: String,
    },
}

/// What it answers: a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// What was counted.
    Counters(WireSnapshot),
    /// It is done.
    Done,
    /// Why it cannot be: one sentence.
    Refused(String),
}
