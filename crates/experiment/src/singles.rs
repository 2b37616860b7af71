//! Flows that are made for each of several hosts: one flow for whoever counts, and as many for whoever sends.

use std::borrow::Cow;
use std::collections::BTreeMap;

use trunkline_core::FlowId;
use trunkline_metrics::{DriverOutcome, FlowMeta, FlowOutcome, OnNetwork};

use crate::alike::numbered;
use crate::model::{Ends, Flow, Host, Scenario};

impl Scenario {
    /// The scenario as drivers execute it: a flow that is made for each of several hosts is as many flows, `up-1`, `up-2` ...,
    /// each between hosts of its own. Members keep their ids, so that a recorder of the file's flows counts them together.
    pub fn singles(&self) -> Cow<'_, Scenario> {
        if self.flows.iter().all(|flow| flow.each.is_empty()) {
            return Cow::Borrowed(self);
        }
        let until =
            self.until.map(|until| self.flows[..until].iter().map(|flow| flow.each.len().max(1)).sum());
        let flows = self.flows.iter().flat_map(|flow| flow.singles(&self.hosts)).collect();
        Cow::Owned(Scenario { flows, until, ..self.clone() })
    }

    /// What recorders need to know of each of the flows that are made for several hosts, to measure each by itself.
    pub fn single_metas(&self) -> Vec<FlowMeta> {
        let alike = self.flows.iter().filter(|flow| !flow.each.is_empty());
        alike.flat_map(|flow| flow.singles(&self.hosts)).map(|flow| flow.meta).collect()
    }

    /// Outcomes of the flows of [`Scenario::single_metas`], from those of the file's flows. Each knows of drops what all of
    /// its flow know.
    pub fn single_outcomes(&self, together: &[FlowOutcome]) -> Vec<FlowOutcome> {
        let each = self.flows.iter().zip(together).flat_map(|(flow, outcome)| {
            let single = FlowOutcome { knows_drops: outcome.knows_drops, ..FlowOutcome::default() };
            std::iter::repeat_n(single, flow.each.len())
        });
        each.collect()
    }

    /// What a driver knows of the flows of [`Scenario::singles`] as what is known of the file's.
    pub fn together(&self, outcome: DriverOutcome) -> DriverOutcome {
        if outcome.flows.len() == self.flows.len() {
            return outcome;
        }
        let mut singles = outcome.flows.into_iter();
        let together = self.flows.iter().map(|flow| {
            let of_flow: Vec<FlowOutcome> = singles.by_ref().take(flow.each.len().max(1)).collect();
            of_flow.into_iter().reduce(sum).unwrap_or_default()
        });
        DriverOutcome { flows: together.collect(), ..outcome }
    }
}

impl Flow {
    /// The flow, or those that it is made as for several hosts.
    fn singles(&self, hosts: &[Host]) -> Vec<Flow> {
        if self.each.is_empty() {
            return vec![self.clone()];
        }
        let count = self.each.len() as u32; // At most as many as there are hosts.
        let single = |(number, ends): (u32, &Ends)| {
            let Ends { from, to, nowhere } = ends.clone();
            let sinks = to.iter().map(|sink| hosts[sink.host].name.clone()).collect();
            let mut single =
                Flow { from, to, nowhere, each: Vec::new(), alike: (number, count), ..self.clone() };
            single.meta.sinks = sinks;
            single.meta.name = self.single_name(number);
            single.meta.members = self.meta.members / count;
            single.meta.send_limit.iter_mut().for_each(|limit| limit.conversations /= count);
            single.meta.first = FlowId(self.meta.first.0 + number * single.meta.ids());
            single
        };
        (0..count).zip(&self.each).map(single).collect()
    }

    /// The name of one of the flows that it is made as, from 0: `up-1`.
    pub fn single_name(&self, number: u32) -> String {
        numbered(&self.meta.name, number + 1)
    }
}

/// Of two flows together.
fn sum(first: FlowOutcome, second: FlowOutcome) -> FlowOutcome {
    let mut transport_counters: BTreeMap<String, u64> = first.transport_counters;
    for (name, count) in second.transport_counters {
        *transport_counters.entry(name).or_default() += count;
    }
    let on_network = |(a, b): (OnNetwork, OnNetwork)| OnNetwork {
        measured: a.measured + b.measured,
        until: a.until.max(b.until),
        all: a.all + b.all,
    };
    FlowOutcome {
        transport_counters,
        network: first.network.zip(second.network).map(on_network),
        sockets: [first.sockets, second.sockets].concat(),
        clock_error: first.clock_error.max(second.clock_error),
        knows_drops: first.knows_drops && second.knows_drops,
        connection: if first.connection.is_empty() { second.connection } else { first.connection },
    }
}
