//! Pair harness, conformance and split-property suites, allocation counter.

pub mod accounting;
pub mod alloc;
pub mod cases;
pub mod checked;
pub mod conformance;
#[cfg(unix)]
pub mod jack;
pub mod journal;
pub mod kills;
pub mod middle;
pub mod mutation;
pub mod pair;
pub mod pigeon;
#[cfg(target_os = "linux")]
pub mod postgres;
pub mod programs;
pub mod promises;
pub mod real_time;
pub mod script;
pub mod skips;
pub mod split;
pub mod tone;
pub mod two_process;
pub mod values;
