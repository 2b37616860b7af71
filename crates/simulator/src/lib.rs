//! Runs a point in virtual time.
