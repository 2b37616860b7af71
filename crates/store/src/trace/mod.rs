//! One Parquet file per trace, crash-safe while it is written.

mod background;
mod distribution;
mod file;
mod frames;
mod group;
mod read;
mod row;
mod series;
#[cfg(test)]
mod series_tests;
#[cfg(test)]
mod tests;

pub(crate) use background::{OpenTraces, TraceWriter};
pub use distribution::{Cdf, CdfPoint, latency_cdf};
pub(crate) use file::{TraceFile, TraceKeys, is_unfinished, part_of, remove, repair};
pub use read::{Arrival, read_latencies, read_trace};
pub use series::{LatencySeries, latency_series};
