//! Runs an experiment: picks a driver, schedules points, streams records to the store, reports progress.
