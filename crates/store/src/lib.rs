//! Runs, points, repetitions and summaries in SQLite; one Parquet file per trace beside it. Written as it happens:
//! killing any process at any moment loses at most the records of the last second and leaves a readable run.

pub mod model;

pub use model::{Backend, RunInfo, Status, StoredPoint, StoredRepetition, StoredRun};
