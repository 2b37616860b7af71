//! One Parquet file per trace, crash-safe while it is written.

mod background;
mod file;
mod frames;
mod group;
mod read;
mod row;
#[cfg(test)]
mod tests;

pub(crate) use background::{OpenTraces, TraceWriter};
pub(crate) use file::{TraceFile, TraceKeys, is_unfinished, remove, repair};
pub use read::{Arrival, read_latencies, read_trace};
