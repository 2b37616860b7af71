//! Sessions on loopback: client and server in one process.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod control;
mod endings;
mod limits;
mod mutation;
mod pairing;
mod roles;
mod support;
mod transports;
