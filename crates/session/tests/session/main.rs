//! Sessions on loopback: client and server in one process.

mod control;
mod endings;
mod limits;
mod roles;
mod support;
mod transports;
