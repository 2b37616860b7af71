//! Captures of packets, pcap and pcapng, at one end of a path or at both.
//!
//! A capture is read as a stream. Of a packet only its time, its size and what identifies it are kept, of at most
//! [`MAX_PACKETS`](super::MAX_PACKETS) packets.

mod both_ends;
mod frame;
mod log;
mod one_end;
mod reader;
mod skew;
#[cfg(test)]
mod tests;

use std::io::Read;

use super::ImportError;
use super::description::Learned;
use super::estimate::Clocks;
use log::Log;

/// A capture to be read.
pub struct Source<'r> {
    /// The name of its file.
    pub name: &'r str,
    /// Its bytes.
    pub from: &'r mut dyn Read,
}

/// Learns from one capture.
///
/// # Errors
/// If it is not one, or it has no packets from which something can be learned.
pub fn one_end(source: Source<'_>) -> Result<Learned, ImportError> {
    let log = Log::read(source.from)?;
    let mut learned = one_end::learn(source.name, &log)?;
    log.add_warnings(source.name, &mut learned);
    Ok(learned)
}

/// Learns from captures of the same packets at both ends of a path. The first is that at the first host of `between`.
///
/// # Errors
/// If a file is not a capture, or no packet is in both. The text continues "`FIRST` and `SECOND` ...", or names the file.
pub fn both_ends(sources: [Source<'_>; 2], clocks: Clocks) -> Result<Learned, ImportError> {
    let [first, second] = sources;
    let names = [first.name, second.name];
    let read = |source: Source<'_>| {
        Log::read(source.from)
            .map_err(|error| ImportError::new(format!("cannot be used: `{}` {error}", source.name)))
    };
    let logs = [read(first)?, read(second)?];
    let mut learned = both_ends::learn(names, &logs, clocks)?;
    for (log, name) in logs.iter().zip(names) {
        log.add_warnings(name, &mut learned);
    }
    Ok(learned)
}
