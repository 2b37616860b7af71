//! Estimates of single properties, each from packets alone: closed forms, with intervals.

pub(crate) mod base;
pub(crate) mod idle;
pub(crate) mod jitter;
pub(crate) mod loss;
pub(crate) mod overload;
pub(crate) mod rate;
pub(crate) mod reordering;
pub(crate) mod statistics;
