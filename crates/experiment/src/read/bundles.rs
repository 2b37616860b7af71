//! Reads `[bundle.NAME]`: which flows are counted together.

use core::ops::Range;

use trunkline_metrics::{BundleMeta, Measured};

use super::Reader;
use crate::model::{Flow, Link, PathStep};
use crate::problem::suggestion;
use crate::tree::{Entry, Item, Node, Table};

impl Reader<'_> {
    /// The bundles, in the order of the file.
    pub(super) fn bundles(
        &mut self,
        root: &Table,
        hosts: &[String],
        links: &[Link],
        flows: &[Flow],
    ) -> Vec<BundleMeta> {
        let file = File { hosts, links, flows };
        let mut bundles: Vec<BundleMeta> = Vec::new();
        for entry in self.named_tables(root, "bundle") {
            let Some(named) = self.bundled(entry, flows) else { continue };
            for (place, (flow, at)) in named.iter().enumerate() {
                let name = &flows[*flow].meta.name;
                let before = &named[..place];
                if before.iter().any(|(other, _)| other == flow) {
                    self.remark(at, format!("the flow `{name}` stands here twice"));
                } else if let Some(other) = bundles.iter().find(|bundle| bundle.flows.contains(flow)) {
                    let message = format!(
                        "the flow `{name}` is in the bundle `{}` already; a flow is in one bundle at most",
                        other.name
                    );
                    self.remark(at, message);
                } else if let Some(message) = file.alone(*flow) {
                    self.remark(at, message);
                } else if let Some(message) = before.iter().find_map(|(other, _)| file.apart(*other, *flow)) {
                    self.remark(at, message);
                }
            }
            let flows = named.into_iter().map(|(flow, _)| flow).collect();
            bundles.push(BundleMeta { name: entry.key.to_string(), flows });
        }
        bundles
    }

    /// The flows that a bundle names, and where; `None` after a remark.
    fn bundled(&mut self, entry: &Entry, flows: &[Flow]) -> Option<Vec<(usize, Range<usize>)>> {
        const EXPECTED: &str = "a list of names of flows";
        let table = self.table_of(entry, "bundle")?;
        let place = format!("[bundle.{}]", entry.key);
        let known: Vec<&str> = self.schema.bundle.iter().map(|key| key.name).collect();
        self.refuse_unknown(table, &known, &place);
        let Some(node) = table.node("flows") else {
            self.missing("flows", &entry.node.span, &format!("in {place}"), EXPECTED);
            return None;
        };
        let Item::Array(names) = &node.item else {
            self.remark(&node.span, format!("`flows` must be {EXPECTED}, not {}", node.describe()));
            return None;
        };
        if names.is_empty() {
            self.remark(&node.span, "the bundle has no flows; name at least one");
        }
        Some(names.iter().filter_map(|name| self.bundled_flow(name, flows)).collect())
    }

    fn bundled_flow(&mut self, node: &Node, flows: &[Flow]) -> Option<(usize, Range<usize>)> {
        let Some(name) = node.text() else {
            self.remark(&node.span, format!("`flows` must name flows, not {}", node.describe()));
            return None;
        };
        let found = flows.iter().position(|flow| flow.meta.name == name);
        if found.is_none() {
            let suggestion = suggestion(name, flows.iter().map(|flow| flow.meta.name.as_str()));
            let message = format!("`flows` names the unknown flow `{}`{suggestion}", name.escape_debug());
            self.remark(&node.span, message);
        }
        Some((found?, node.span.clone()))
    }
}

/// What the flows of a bundle are looked up in.
struct File<'f> {
    hosts: &'f [String],
    links: &'f [Link],
    flows: &'f [Flow],
}

impl File<'_> {
    /// Why a flow cannot be in a bundle.
    fn alone(&self, flow: usize) -> Option<String> {
        let flow = &self.flows[flow];
        let has = match flow.to.len() {
            0 => "no sink",
            1 => return None,
            _ => "several sinks",
        };
        Some(format!("a bundle is on one path, and the flow `{}` has {has}", flow.meta.name))
    }

    /// Why two flows cannot be in one bundle.
    fn apart(&self, first: usize, second: usize) -> Option<String> {
        let [a, b] = [first, second].map(|flow| &self.flows[flow]);
        let [Some(sink_of_a), Some(sink_of_b)] = [a, b].map(|flow| flow.to.first()) else { return None };
        let (ends, path) = (|flow: &Flow| self.ends(flow), |path: &[PathStep]| self.path(path));
        let (name_of_a, name_of_b) = (&a.meta.name, &b.meta.name);
        if (a.from, sink_of_a.host) != (b.from, sink_of_b.host) {
            return Some(format!(
                "a bundle is on one path, and the flow `{name_of_b}` goes {}, `{name_of_a}` {}",
                ends(b),
                ends(a)
            ));
        }
        if sink_of_a.forward != sink_of_b.forward {
            return Some(format!(
                "a bundle is on one path, and the flow `{name_of_b}` goes over {}, `{name_of_a}` over {}",
                path(&sink_of_b.forward),
                path(&sink_of_a.forward)
            ));
        }
        let mixes_latencies = a.meta.transport == b.meta.transport && a.meta.measured != b.meta.measured;
        mixes_latencies.then(|| {
            let (there_and_back, one_way) = match a.meta.measured {
                Measured::RoundTrip => (name_of_a, name_of_b),
                _ => (name_of_b, name_of_a),
            };
            format!(
                "both flows go over `{}`, and latency is measured there and back in `{there_and_back}`, one way in \
                 `{one_way}`; let both `reflect`, or none",
                a.meta.transport
            )
        })
    }

    /// ``from `a` to `b` ``
    fn ends(&self, flow: &Flow) -> String {
        let to = flow.to.first().map_or("", |sink| &self.hosts[sink.host]);
        format!("from `{}` to `{to}`", self.hosts[flow.from])
    }

    /// `` `there`, `on` ``
    fn path(&self, path: &[PathStep]) -> String {
        let names: Vec<String> =
            path.iter().map(|step| format!("`{}`", self.links[step.link].name)).collect();
        names.join(", ")
    }
}
