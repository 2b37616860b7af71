//! All measurements.

use std::collections::BTreeMap;

use trunkline_core::Rate;

use crate::configuration::Configuration;
use crate::judge::Evidence;
use crate::trace::{Measured, RoundTrips, Trace};
use crate::transport::Transport;

/// All measurements, and what could not be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    measured: Vec<(Configuration, Measured)>,
    failed: BTreeMap<Transport, String>,
}

impl Findings {
    /// Adds a measurement.
    pub fn add(&mut self, configuration: Configuration, measured: Measured) {
        self.measured.push((configuration, measured));
    }

    /// Notes why a transport could not be measured.
    pub fn fail(&mut self, transport: Transport, why: String) {
        self.failed.insert(transport, why);
    }

    /// Transports of which something could not be measured, and why.
    pub fn failed(&self) -> impl Iterator<Item = (Transport, &str)> {
        self.failed.iter().map(|(transport, why)| (*transport, why.as_str()))
    }

    /// Those of them of which nothing was ever measured.
    pub fn never_measured(&self) -> impl Iterator<Item = (Transport, &str)> {
        self.failed()
            .filter(|(transport, _)| !self.measured.iter().any(|(one, _)| one.transport == *transport))
    }

    /// What was measured, each configuration once, in their order.
    pub fn configurations(&self) -> impl Iterator<Item = &Configuration> {
        let mut all: Vec<&Configuration> =
            self.measured.iter().map(|(configuration, _)| configuration).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter()
    }

    /// The traces of a configuration, in the order of measurement.
    pub fn traces(&self, of: &Configuration) -> impl Iterator<Item = &Trace> + Clone {
        let of = *of;
        self.measured
            .iter()
            .filter(move |(configuration, _)| *configuration == of)
            .map(|(_, measured)| &measured.trace)
    }

    /// A configuration's round trips in figures; `None` if no packet came back.
    pub fn round_trips(&self, of: &Configuration) -> Option<RoundTrips> {
        RoundTrips::of(self.traces(of))
    }

    /// What there is to judge a configuration by; `None` if no packet came back. The fastest round trip is that of the same
    /// blocks under any load.
    pub fn evidence(&self, of: &Configuration) -> Option<Evidence> {
        let alike = |other: &Configuration| (other.transport, other.blocks) == (of.transport, of.blocks);
        let traces =
            self.measured.iter().filter(|(other, _)| alike(other)).map(|(_, measured)| &measured.trace);
        let fastest = traces.flat_map(|trace| trace.round_trips.iter().flatten()).min()?;
        Evidence::new(*of, *fastest, self.traces(of))
    }

    /// What bulk transfers reached at best, in the direction in which they reached less.
    pub fn capacity(&self) -> Option<Rate> {
        let bulks = || self.measured.iter().filter_map(|(_, measured)| measured.bulk);
        let there = bulks().map(|bulk| bulk.there).max()?;
        Some(there.min(bulks().map(|bulk| bulk.back).max()?))
    }
}
