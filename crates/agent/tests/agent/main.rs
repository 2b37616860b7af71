//! Agents and controllers over the loopback interface.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::print_stderr, reason = "the agent logs to standard error")]

mod cut_off;
mod far_end;
mod greedy;
mod killed;
mod limits;
mod mutation;
mod parts;
mod seen;
mod strangers;
mod support;
#[cfg(feature = "telemetry")]
mod traces;
