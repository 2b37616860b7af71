//! Reads `[bundle.NAME]`: which flows are counted together.

use core::ops::Range;

use trunkline_metrics::{BundleMeta, Measured};

use super::Reader;
use crate::model::Flow;
use crate::problem::suggestion;
use crate::tree::{Entry, Item, Node, Table};

impl Reader<'_> {
    /// The bundles, in the order of the file.
    pub(super) fn bundles(&mut self, root: &Table, flows: &[Flow]) -> Vec<BundleMeta> {
        let file = File { flows };
        let mut bundles: Vec<BundleMeta> = Vec::new();
        for entry in self.named_tables(root, "bundle") {
            let Some(named) = self.bundled(entry, flows) else { continue };
            for (place, (flow, at)) in named.iter().enumerate() {
                let name = &flows[*flow].meta.name;
                let before = &named[..place];
                if before.iter().any(|(other, _)| other == flow) {
                    self.remark(at, format!("the flow `{name}` is listed twice"));
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
        Some(format!("a flow of a bundle has one sink, but `{}` has {has}", flow.meta.name))
    }

    /// Why two flows cannot be in one bundle.
    fn apart(&self, first: usize, second: usize) -> Option<String> {
        let [a, b] = [first, second].map(|flow| &self.flows[flow].meta);
        let mixes_latencies = a.transport == b.transport && a.measured != b.measured;
        mixes_latencies.then(|| {
            let (there_and_back, one_way) = match a.measured {
                Measured::RoundTrip => (&a.name, &b.name),
                _ => (&b.name, &a.name),
            };
            format!(
                "both flows use `{}`, but latency is a round trip in `{there_and_back}` and one way in `{one_way}`; \
                 set `reflect` in both, or in neither",
                a.transport
            )
        })
    }
}
