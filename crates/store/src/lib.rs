//! Runs, points, repetitions and summaries in a database, SQLite unless told otherwise; one Parquet file per trace beside
//! it. Written as it happens: killing any process at any moment loses at most the records of the last second and leaves a
//! readable run.
//!
//! ```text
//! trunkline.db                                  runs, points, repetitions, summaries
//! runs/7-voice-beside-bulk-sim/
//!     experiment.toml                           the file as it was run
//!     named/speech-wav-1f0c...                  what it names, as it was then
//!     running.lock                              locked by the process that measures
//!     traces/p003-r01-voice.parquet             point 3, repetition 1 (both from 0), flow `voice`
//!     traces/p003-r01-voice.events.csv          what went wrong at the FIFOs of its voice path, if anything did
//!     audio/p003-r01/                           what was received
//!     report.html
//! ```
//!
//! For a team the rows may be kept by a PostgreSQL server ([`Store::connect`]); the files of a run then lie on the host that
//! measured it.
//!
//! Several processes may use one store at once. A run being measured is known by a lock that the kernel releases when
//! its process ends, however it ends; [`Store::open`] repairs what a dead one left.

mod archive;
mod catalogue;
mod error;
mod events;
mod files;
mod filter;
mod folders;
pub mod model;
mod recovery;
mod run_writer;
mod selector;
mod shard;
mod store;
mod trace;

pub use error::StoreError;
pub use filter::{Retention, RunFilter};
pub use model::{Backend, RunInfo, Status, StoredPoint, StoredRepetition, StoredRun};
pub use run_writer::{Adopted, ClosedRepetition, NewRun, RepetitionWriter, Revision, RunWriter};
pub use selector::RunSelector;
pub use shard::Shard;
pub use store::{Imported, Merged, Store, server_name};
pub use trace::{
    Arrival, Cdf, CdfPoint, LatencySeries, latency_cdf, latency_series, read_latencies, read_trace,
};
