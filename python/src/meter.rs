//! Meters by themselves: the figures of a flow from what was sent and received, and the offset of a clock.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_metrics::clocks::{Exchange, Observed, Offsets, Rates};
use trunkline_metrics::figures::of_flows;
use trunkline_metrics::{DriverOutcome, FlowOutcome, Observation, Recorder};

use crate::errors;
use crate::parts::World;
use crate::table;

/// A meter of one flow. All times are nanoseconds since the begin of the measurement.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Meter {
    /// None once it is finished.
    meter: Mutex<Option<trunkline_metrics::Meter<'static>>>,
    flow: FlowId,
    duration: Duration,
}

impl Meter {
    fn record(&self, py: Python<'_>, at: u64, what: Observation) -> PyResult<()> {
        let mut meter = self.meter.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let meter = meter.as_mut().ok_or_else(|| errors::environment("the meter is finished"))?;
        meter.record(Time::from_nanos(at), self.flow, what);
        Ok(())
    }
}

#[pymethods]
impl Meter {
    /// A meter of the flow that a table `[flow.NAME]` of an experiment file describes; `written` are its keys.
    #[new]
    fn new(written: &str, duration: &str, drain: &str) -> PyResult<Meter> {
        let read = World { flow: written, duration, drain, ..World::new("<meter>") }.read()?;
        let scenario = &read.points.first().scenario;
        let meta = scenario.flows[0].meta.clone();
        let flow = meta.first;
        // It has no size, so nothing is allocated.
        let trace: &'static mut () = Box::leak(Box::new(()));
        let meter = trunkline_metrics::Meter::new(&[meta], trace).with_drain(scenario.drain);
        Ok(Meter { meter: Mutex::new(Some(meter)), flow, duration: scenario.duration })
    }

    /// A message was sent.
    fn sent(
        &self,
        py: Python<'_>,
        at: u64,
        sequence: u32,
        size: u64,
        due: u64,
        channel: u16,
    ) -> PyResult<()> {
        let (due, payload) = (Time::from_nanos(due), Bytes(size));
        self.record(py, at, Observation::Sent { channel, sequence, due, payload })
    }

    /// A message was given up by its sender.
    fn refused(
        &self,
        py: Python<'_>,
        at: u64,
        sequence: u32,
        size: u64,
        due: u64,
        channel: u16,
    ) -> PyResult<()> {
        let (due, payload) = (Time::from_nanos(due), Bytes(size));
        self.record(py, at, Observation::Refused { channel, sequence, due, payload })
    }

    /// A message has arrived.
    fn received(
        &self,
        py: Python<'_>,
        at: u64,
        sequence: u32,
        size: u64,
        sent: u64,
        channel: u16,
    ) -> PyResult<()> {
        let (sent, reflected, payload) = (Time::from_nanos(sent), Time::ZERO, Bytes(size));
        self.record(py, at, Observation::Received { channel, sequence, sent, reflected, payload })
    }

    /// Ends the measurement. Returns every figure of the flow, in base units.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<f64>)>> {
        let taken = self.meter.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        let meter = taken.ok_or_else(|| errors::environment("the meter is finished"))?;
        let flows = vec![FlowOutcome::default()];
        let summary =
            meter.finish(DriverOutcome { duration: self.duration, flows, ..DriverOutcome::default() });
        let flow = &summary.flows[0];
        Ok(of_flows().map(|figure| (table::column(figure), figure.value(flow))).collect())
    }
}

/// The offset of another host's clock. All times are nanoseconds.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct ClockOffset {
    offsets: Mutex<Offsets>,
}

#[pymethods]
impl ClockOffset {
    /// Nothing is known yet, but by how much the rates of the clocks may differ, in parts per million.
    #[new]
    fn new(most_ppm: Option<f64>) -> PyResult<ClockOffset> {
        let mut rates = Rates::default();
        if let Some(ppm) = most_ppm {
            if !(0.0..=1_000_000.0).contains(&ppm) {
                return Err(errors::bad_input("clocks may differ by 0 to 1,000,000 ppm"));
            }
            rates.most_difference = (ppm * 1000.0).ceil() as u32;
        }
        Ok(ClockOffset { offsets: Mutex::new(Offsets::new(rates)) })
    }

    /// Takes an exchange. Returns what it has shown: `bound`, `step` or `impossible`.
    fn observe(&self, py: Python<'_>, sent: u64, received: u64, replied: u64, returned: u64) -> &'static str {
        let [sent, received, replied, returned] = [sent, received, replied, returned].map(Time::from_nanos);
        let mut offsets = self.offsets.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        match offsets.observe(Exchange { sent, received, replied, returned }) {
            Observed::Bound => "bound",
            Observed::Step => "step",
            Observed::Impossible => "impossible",
        }
    }

    /// The offset at a time of the own clock, and its error bound; `None` while nothing was observed.
    fn at(&self, py: Python<'_>, time: u64) -> Option<(i64, u64)> {
        let offsets = self.offsets.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let offset = offsets.at(Time::from_nanos(time))?;
        Some((offset.estimate, offset.bound.as_nanos()))
    }
}
