//! Sessions on loopback: client and server in one process.

mod support;
mod transports;
