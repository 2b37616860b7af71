//! From the tree of a file to what it means: one scenario, and the remarks on what is wrong.

mod bundles;
mod checks;
mod flow;
mod host;
mod link;
mod listening;
mod paths;
mod services;
mod sinks;
mod table;
mod transport;
mod voice_path;

use core::ops::Range;

use trunkline_core::Time;
use trunkline_core::schema::Values;
use trunkline_metrics::Lasting;

use crate::alike;
use crate::files::Shelf;
use crate::model::{Flow, Scenario};
use crate::problem::{Remark, suggestion};
use crate::schema::{SECTIONS, Schema};
use crate::tree::{Entry, Item, Node, Table};

/// The most problems of one point that are shown.
pub(crate) const MOST_REMARKS: usize = 100;
/// Characters of the longest name of an experiment.
const LONGEST_NAME: usize = 200;

/// Reads trees of one file.
pub(crate) struct Reader<'r> {
    schema: &'r Schema,
    shelf: &'r Shelf<'r>,
    remarks: Vec<Remark>,
}

/// A point as it was read.
pub(crate) struct Reading {
    pub(crate) head: Head,
    pub(crate) scenario: Scenario,
}

/// Keys before the first table that are not of a point.
pub(crate) struct Head {
    pub(crate) name: String,
    pub(crate) repetitions: u32,
    pub(crate) seed: u64,
}

/// Reads a tree.
pub(crate) fn read(schema: &Schema, shelf: &Shelf<'_>, root: &Node) -> Result<Reading, Vec<Remark>> {
    let mut reader = Reader { schema, shelf, remarks: Vec::new() };
    let reading = reader.experiment(root);
    match reading {
        Some(reading) if reader.remarks.is_empty() => Ok(reading),
        _ => Err(reader.remarks),
    }
}

impl Reader<'_> {
    fn remark(&mut self, at: &Range<usize>, message: impl Into<String>) {
        if !self.is_full() {
            self.remarks.push(Remark::new(at.clone(), message));
        }
    }

    /// Whether there are as many remarks as are shown: the rest need not be read.
    fn is_full(&self) -> bool {
        self.remarks.len() >= MOST_REMARKS
    }

    /// Refuses a name that is too long to be shown.
    fn check_name(&mut self, table: &Table, values: &Values) {
        let length = values.text("name").chars().count();
        if let Some(node) = table.node("name").filter(|_| length > LONGEST_NAME) {
            let message = format!("`name` has {length} characters; a name has at most {LONGEST_NAME}");
            self.remark(&node.span, message);
        }
        if let Some(node) = table.node("name").filter(|_| length == 0) {
            self.remark(&node.span, "`name` is empty; a run is listed by it".to_owned());
        }
    }

    fn experiment(&mut self, root: &Node) -> Option<Reading> {
        let (root, remarks) = alike::spread(self.schema, root);
        self.remarks.extend(remarks);
        let table = root.table()?;
        let schema = self.schema;
        let sections = SECTIONS.iter().map(|(name, _)| *name);
        let known: Vec<&str> = schema.experiment.iter().map(|key| key.name).chain(sections).collect();
        self.refuse_unknown(table, &known, "");
        // A missing key has no place: the file's first line stands for it.
        let values = self.plain_values(table, &(0..0), "before the first table", &schema.experiment);
        values.iter().for_each(|values| self.check_name(table, values));
        let hosts = self.hosts(table);
        let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
        let links = self.links(table, &names);
        let duration = values.as_ref().map(|values| values.duration("duration"));
        let flows = self.flows(table, &names, links.as_deref(), duration);
        let (values, links, mut flows) = (values?, links?, flows?);
        let bundles = self.bundles(table, &flows);
        let until = self.until(table, &flows);
        let ends = Time::ZERO + values.duration("duration");
        flows.iter_mut().for_each(|flow| flow.meta.ends = ends);
        let scenario = Scenario {
            duration: values.duration("duration"),
            drain: values.duration("drain"),
            hosts,
            links,
            flows,
            bundles,
            until,
        };
        Some(reading(&values, scenario))
    }

    /// The index of the flow with which the sending ends, if there is one.
    fn until(&mut self, root: &Table, flows: &[Flow]) -> Option<usize> {
        let node = root.node("until")?;
        let Some(name) = node.text() else {
            self.remark(&node.span, format!("`until` must name a flow, not {}", node.describe()));
            return None;
        };
        let Some(index) = flows.iter().position(|flow| flow.meta.name == name) else {
            let suggestion = suggestion(name, flows.iter().map(|flow| flow.meta.name.as_str()));
            let message = format!("`until` names the unknown flow `{}`{suggestion}", name.escape_debug());
            self.remark(&node.span, message);
            return None;
        };
        let flow = &flows[index];
        if let count @ 1.. = flow.each.len() {
            let message = format!("`until` waits for one flow, but `{name}` is {count} flows");
            self.remark(&node.span, message);
        } else if flow.meta.lasting != Lasting::Volume {
            let message = format!(
                "`until` waits for the flow `{name}`, whose source never ends before the run does; limit the \
                source, for example with a number of `messages`"
            );
            self.remark(&node.span, message);
        } else if flow.meta.members == 0 {
            self.remark(&node.span, format!("`until` waits for the flow `{name}`, which has no members"));
        }
        Some(index)
    }

    /// The entries of a section, with their names checked.
    fn named_tables<'t>(&mut self, root: &'t Table, section: &str) -> &'t [Entry] {
        let Some(entry) = root.get(section) else { return &[] };
        let Item::Table(table) = &entry.node.item else {
            let message = format!("`{section}` must be a table of tables, not {}", entry.node.describe());
            self.remark(&entry.node.span, message);
            return &[];
        };
        for entry in &table.0 {
            let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if entry.key.is_empty() || !entry.key.chars().all(good) {
                let message = format!(
                    "the name `{}` must consist of ASCII letters, digits, `-` and `_`",
                    entry.written().escape_debug()
                );
                self.remark(&entry.key_span, message);
            }
        }
        &table.0
    }

    fn table_of<'t>(&mut self, entry: &'t Entry, section: &str) -> Option<&'t Table> {
        let table = entry.node.table();
        if table.is_none() {
            let message =
                format!("`{section}.{}` must be a table, not {}", entry.written(), entry.node.describe());
            self.remark(&entry.node.span, message);
        }
        table
    }
}

fn reading(values: &Values, scenario: Scenario) -> Reading {
    let head = Head {
        name: values.text("name"),
        repetitions: u32::try_from(values.integer("repetitions")).unwrap_or(u32::MAX),
        seed: values.integer("seed"),
    };
    Reading { head, scenario }
}
