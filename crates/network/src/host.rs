//! What a host costs: processor time per message, packet and byte, and how its operating system hands messages over.
//!
//! The published machines of 1989 to 2012 are profiles of these parameters: data, not code. Only the simulator has a
//! use for them; in `wire` and `live` hosts are real.

use trunkline_core::schema::{Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration};

/// The longest cost that makes sense.
const MOST: Duration = Duration::from_secs(10);

/// What a host, or a profile of hosts, may be told. Without any of it a host costs nothing.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "send-message",
        kind: Kind::Duration { min: Duration::ZERO, max: MOST },
        default: Preset::Text("0 s"),
        doc: "Processor time to hand a message to the transport: the system call and what wakes for it.",
    },
    Parameter {
        name: "stream-block",
        kind: Kind::Bytes { min: Bytes(1), max: Bytes(1 << 20) },
        default: Preset::Absent,
        doc: "Messages are handed over in pieces of at most this (the stream blocks of Version 9 Unix). Without this \
              key as a whole.",
    },
];
