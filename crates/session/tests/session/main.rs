//! Sessions on loopback: client and server in one process.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::print_stderr, reason = "what is skipped is told")]

mod control;
mod endings;
mod limits;
mod roles;
mod support;
mod transports;
