//! Scripts of packet exchanges: what a peer sends, what an application calls, and what the TCP under test has to send, each
//! with its time. One script runs against the engine in virtual time and against a kernel over a TUN interface.
//!
//! docs/checks.md describes the language. A short example:
//!
//! ```text
//! holds   RFC 9293 section 3.5: the three-way handshake, and data both ways
//! set     nodelay on
//!
//! 0       connect
//! +0      out   SYN 0
//! +10ms   in    SYN 0 ack 1 options all
//! +0      out   1 ack 1
//! +0      expect connected
//! +0      write 100
//! +0      out   1..101 ack 1
//! +10ms   in    1..201 ack 101
//! +0      read  200
//! ```

mod engine;
mod parse;
mod play;
mod segment;

use std::path::Path;

use trunkline_core::{Duration, Ecn, Time};

pub use engine::EngineHost;
pub use play::{Failure, play};
pub use segment::{Segment, flag};

use crate::pair::{FAR, NEAR};

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// The group and the name of its file.
    pub name: String,
    /// The section of an RFC, or the behaviour of the kernel, that it holds.
    pub holds: String,
    /// Options that differ from the defaults.
    pub settings: Vec<Setting>,
    /// Why no kernel can run it, if so.
    pub engine_only: Option<String>,
    steps: Vec<Step>,
}

/// An option of the TCP under test, by the name that scripts use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// One of [`SETTINGS`].
    pub key: String,
    /// As the script has it.
    pub value: String,
}

/// Names of options, and what their values are.
pub const SETTINGS: &[(&str, &str)] = &[
    ("nodelay", "on or off: whether small segments are sent at once; off as for any socket"),
    ("congestion", "a congestion control"),
    ("ecn", "off, accept, on or accurate"),
    ("sack", "on or off"),
    ("timestamps", "on or off"),
    ("window-scaling", "on or off"),
    ("receive-buffer", "bytes of payload that fit, as a fixed size"),
    ("keepalive", "idle time, interval and number of probes"),
    ("user-timeout", "a time"),
    ("retries", "how often a segment is sent again"),
    ("syn-retries", "how often a SYN is sent again"),
    ("pacing", "on or off"),
    ("tail-loss-probe", "on or off"),
    ("frto", "on or off"),
    ("slow-start-after-idle", "on or off"),
    ("recovery", "rack, dupack or timeout"),
    ("hystart", "off, linux or plusplus"),
    ("initial-window", "segments"),
];

/// A line of a script.
#[derive(Clone, Debug)]
struct Step {
    line: usize,
    at: Time,
    /// How far the time of what is sent may differ.
    tolerance: Option<Duration>,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// The peer sends.
    In(Pattern),
    /// The host has to send.
    Out(Pattern),
    Open {
        passive: bool,
    },
    Write {
        bytes: usize,
        more: bool,
    },
    /// A write that is refused.
    Refused,
    Read(usize),
    Close,
    Abort,
    Expect(Outcome),
    Figure {
        name: FigureName,
        least: u64,
        most: u64,
    },
    /// Nothing is sent from the line before until now.
    Quiet,
    /// Whatever is sent from the line before until now is fine.
    Drain,
}

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is being opened.
    Pending,
    /// It is open.
    Connected,
    /// The peer has sent its FIN, and all before it has been read.
    Ended,
    /// The peer has reset it, or refused it.
    Reset,
    /// The peer has not answered for too long.
    TimedOut,
}

/// Figures of a connection that a script can hold against bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FigureName {
    Window,
    Threshold,
    InFlight,
}

/// What a host says of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostFigures {
    /// The congestion window, in segments.
    pub window: u64,
    /// The slow-start threshold in segments, if there is one.
    pub threshold: Option<u64>,
    /// Segments in flight.
    pub in_flight: u64,
}

/// A segment as a script describes it. Numbers count from the SYN, which has number 0, in both directions.
#[derive(Clone, Debug, Default)]
struct Pattern {
    flags: u16,
    /// The first sequence number.
    first: Option<i64>,
    /// Bytes of data.
    length: usize,
    /// So many bytes in each of several segments.
    by: Option<usize>,
    ack: Option<i64>,
    /// In bytes.
    window: Option<u64>,
    sacks: Vec<(i64, i64)>,
    options: Option<SynOptions>,
    without_stamps: bool,
    push: Option<bool>,
    aged: Option<Duration>,
    echo: Option<String>,
    label: Option<String>,
    ecn: Option<Ecn>,
}

/// Options of a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SynOptions {
    mss: Option<u16>,
    scale: Option<u8>,
    sack: bool,
    stamps: bool,
}

/// A TCP under test, with one connection between [`NEAR`] (the host's own address) and [`FAR`] (the script's peer).
pub trait Host {
    /// Waits until the host has sent a segment, or until a moment. Returns when it was sent, its bytes, and its ECN field.
    fn next_sent(&mut self, until: Time) -> Option<(Time, Vec<u8>, Ecn)>;
    /// Gives the host a segment from its peer.
    fn deliver(&mut self, at: Time, segment: &[u8], ecn: Ecn);
    /// Connects, or listens.
    fn open(&mut self, at: Time, passive: bool);
    /// Writes; returns how many bytes were taken.
    fn write(&mut self, at: Time, bytes: &[u8], more: bool) -> usize;
    /// Reads all that is there.
    fn read(&mut self, at: Time) -> Vec<u8>;
    /// Ends the sending direction, or everything.
    fn close(&mut self, at: Time, abort: bool);
    /// What has become of the connection.
    fn outcome(&mut self, at: Time) -> Outcome;
    /// Figures of the connection, whose full segments have this many bytes.
    fn figures(&mut self, segment: u64) -> HostFigures;
    /// By how much more than in virtual time what it sends may be late.
    fn slack(&self) -> Duration;
}

/// The part of a script's name that the environment asks for, if it does: then tests run those scripts only, and show what
/// was sent.
fn wanted() -> Option<String> {
    std::env::var("TRUNKLINE_SCRIPT").ok().filter(|wanted| !wanted.is_empty())
}

/// Prints the transcript of a script if the environment's `TRUNKLINE_SCRIPT` asks for scripts.
#[allow(clippy::print_stdout, reason = "its author has asked for it")]
pub fn show(script: &Script, transcript: &[String]) {
    if wanted().is_some() {
        println!("{}\n    {}", script.name, transcript.join("\n    "));
    }
}

/// Reads all scripts in a folder of groups, in the order of their names; only those that the environment's
/// `TRUNKLINE_SCRIPT` asks for, if it does.
///
/// # Panics
/// If one cannot be read or has mistakes; says which, where.
pub fn all_in(folder: &Path) -> Vec<Script> {
    let mut files = Vec::new();
    let list = |folder: &Path| {
        let entries =
            std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
        paths.collect::<Vec<_>>()
    };
    for group in list(folder) {
        files
            .extend(list(&group).into_iter().filter(|file| file.extension().is_some_and(|end| end == "tcp")));
    }
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let name = file.strip_prefix(folder).unwrap_or(file).with_extension("").display().to_string();
        Script::parse(&name, &text).unwrap_or_else(|problem| panic!("{name}: {problem}"))
    };
    let wanted = wanted();
    let scripts = files.iter().map(read);
    scripts.filter(|script| wanted.as_ref().is_none_or(|wanted| script.name.contains(wanted))).collect()
}

/// Byte `place` of a direction, counted from 1: the same in every script.
fn byte(place: u64) -> u8 {
    ((place as u32).wrapping_mul(0x9E37_79B9) >> 24) as u8
}

/// So many bytes from a place on.
pub fn bytes(from: u64, length: usize) -> Vec<u8> {
    (from..from + length as u64).map(byte).collect()
}

/// The host's address and the peer's.
const HOST_AND_PEER: [trunkline_core::Address; 2] = [NEAR, FAR];

#[cfg(test)]
mod tests;
