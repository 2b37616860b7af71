//! Runs, points and summaries in SQLite; traces in Parquet; crash-safe.
