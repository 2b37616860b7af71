//! Machines behind a lock, each with a clock that does not go back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use trunkline_core::Time;

use crate::errors;

/// A machine, and the time of the last call of it.
pub(crate) struct Timed<M>(Mutex<(M, Time)>);

impl<M: Send> Timed<M> {
    pub(crate) fn new(machine: M) -> Timed<M> {
        Timed(Mutex::new((machine, Time::ZERO)))
    }

    /// Does something with the machine. Python does not run meanwhile: other threads of it may wait for the machine.
    pub(crate) fn with<R>(&self, py: Python<'_>, act: impl FnOnce(&mut M) -> R) -> R {
        act(&mut self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).0)
    }

    /// The same at a time in nanoseconds, which must not be before that of the last call.
    pub(crate) fn at<R>(&self, py: Python<'_>, now: u64, act: impl FnOnce(&mut M, Time) -> R) -> PyResult<R> {
        let mut locked = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        goes_on(locked.1.as_nanos(), now).map_err(errors::bad_input)?;
        locked.1 = Time::from_nanos(now);
        Ok(act(&mut locked.0, Time::from_nanos(now)))
    }

    /// The machine and its time, for a thread that is detached from Python.
    pub(crate) fn lock(&self) -> MutexGuard<'_, (M, Time)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses times that decrease.
pub(crate) fn goes_on(from: u64, to: u64) -> Result<(), String> {
    if to < from { Err(format!("time goes back from {from} to {to} ns")) } else { Ok(()) }
}
