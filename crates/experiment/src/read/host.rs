//! Reads hosts and the profiles that they name.

use core::ops::Range;

use trunkline_core::schema::Values;
use trunkline_network::host::PARAMETERS;

use super::Reader;
use crate::model::Host;
use crate::schema::{PROCESSOR, PROFILE_DOC};
use crate::tree::{Entry, Table};

impl Reader<'_> {
    /// The hosts, each at least with its name.
    pub(super) fn hosts(&mut self, root: &Table) -> Vec<Host> {
        let mut hosts = Vec::new();
        for entry in self.named_tables(root, "hosts") {
            let (values, profile) = self.costs(entry).unwrap_or_default();
            hosts.push(Host { name: entry.key.to_string(), values, profile, processor: hosts.len() });
        }
        let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
        for (index, entry) in self.named_tables(root, "hosts").iter().enumerate() {
            let Some(node) = entry.node.table().and_then(|table| table.node(PROCESSOR)) else { continue };
            let Some(of) = self.host(PROCESSOR, node, &names) else { continue };
            hosts[index].processor = of;
        }
        for (index, entry) in self.named_tables(root, "hosts").iter().enumerate() {
            let of = hosts[index].processor;
            if of != index && hosts[of].processor != of {
                let message = format!(
                    "`{}` has no processor of its own: it shares that of `{}`",
                    names[of], names[hosts[of].processor]
                );
                self.remark(&entry.node.span, message);
            }
        }
        if let Some(entry) = root.get("hosts").filter(|_| hosts.len() > usize::from(u16::MAX)) {
            self.remark(&entry.key_span, format!("more than {} hosts", u16::MAX));
        }
        hosts
    }

    /// What a host costs, and the profile that says so; `None` after remarks.
    fn costs(&mut self, entry: &Entry) -> Option<(Values, Option<String>)> {
        let table = self.table_of(entry, "hosts")?;
        let keys = &self.schema.host;
        let place = format!("[hosts.{}]", entry.key);
        let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
        self.refuse_unknown(table, &known, &place);
        let own = self.plain_values(table, &entry.node.span, &format!("in {place}"), keys);
        // A wrong key beside it does not keep the profile from being read: all mistakes are told at once.
        let named = table.node("profile").and_then(|node| Some((node.text()?, &node.span)));
        let profile = named.map(|(path, at)| self.profile(path, at));
        let (own, profile) = (own?, profile.map_or(Some(None), |profile| profile.map(Some))?);
        let value = |name: &'static str| {
            let written = table.node(name).is_some();
            let from = profile.as_ref().filter(|_| !written).unwrap_or(&own);
            (name, from.value(name).clone())
        };
        let values = Values::new(PARAMETERS.iter().map(|parameter| value(parameter.name)).collect());
        Some((values, own.text_if_given("profile")))
    }

    /// The values of a profile; `None` after remarks, which are about that file.
    fn profile(&mut self, path: &str, at: &Range<usize>) -> Option<Values> {
        let profile = match self.shelf.profile(path) {
            Ok(profile) => profile,
            Err(problem) => {
                self.remark(at, format!("`{path}` {problem}"));
                return None;
            }
        };
        let before = self.remarks.len();
        let values = match &profile.table {
            Ok(table) => self.profile_values(table),
            Err(remarks) => {
                self.remarks.extend(remarks.iter().cloned());
                None
            }
        };
        for remark in &mut self.remarks[before..] {
            remark.file = Some(path.into());
        }
        values
    }

    fn profile_values(&mut self, table: &Table) -> Option<Values> {
        let parameters = PARAMETERS.iter().map(|parameter| parameter.name);
        let known: Vec<&str> = parameters.chain([PROFILE_DOC]).collect();
        self.refuse_unknown(table, &known, "a profile of hosts");
        if let Some(doc) = table.node(PROFILE_DOC).filter(|doc| doc.text().is_none()) {
            self.remark(&doc.span, format!("`{PROFILE_DOC}` must be a text, not {}", doc.describe()));
        }
        self.parameters(table, &(0..0), "in the profile", PARAMETERS)
    }
}
