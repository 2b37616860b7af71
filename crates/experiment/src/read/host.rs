//! Reads hosts and the profiles that they name.

use core::ops::Range;
use std::net::{IpAddr, SocketAddr};

use trunkline_core::schema::Values;
use trunkline_network::host::PARAMETERS;

use super::Reader;
use crate::alike::COUNT;
use crate::model::{Host, Kernel};
use crate::schema::{AGENT, FARTHEST, KERNEL, POSITION, PROCESSOR, PROFILE_DOC, RUN};
use crate::tree::{Entry, Item, Node, Table};

impl Reader<'_> {
    /// The hosts, each at least with its name.
    pub(super) fn hosts(&mut self, root: &Table) -> Vec<Host> {
        let mut hosts: Vec<Host> = Vec::new();
        for entry in self.named_tables(root, "hosts") {
            let processor = hosts.len();
            // What one of several has, all have.
            let (values, profile) = match hosts.last().filter(|_| entry.is_repeated()) {
                Some(Host { values, profile, .. }) => (values.clone(), profile.clone()),
                None => self.costs(entry).unwrap_or_default(),
            };
            let agent = self.agent(entry);
            let kernel = self.kernel(entry);
            hosts.push(Host { name: entry.key.to_string(), values, profile, processor, agent, kernel });
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
                    "`{}` does not have its own processor: it shares that of `{}`",
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
        let place = format!("[hosts.{}]", entry.written());
        let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
        self.refuse_unknown(table, &known, &place);
        let own = self.plain_values(table, &entry.node.span, &format!("in {place}"), keys);
        self.check_position(table);
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

    /// Where the host's agent is, with its port; `None` also after remarks.
    fn agent(&mut self, entry: &Entry) -> Option<String> {
        let node = entry.node.table()?.node(AGENT)?;
        if let Some(alike) = &entry.of {
            let message = format!(
                "an agent is one host, but `{}` is {} hosts; omit `{AGENT}` or `{COUNT}`",
                alike.written, alike.count
            );
            self.remark(&node.span, message);
            return None;
        }
        // What is no text was told before.
        let written = node.text()?;
        let address = agent_address(written);
        if address.is_none() {
            let message = format!(
                "`{AGENT}` must be an address such as `10.0.0.7:4781`, `[fd00::7]:4781` or `studio.example`, not `{written}`"
            );
            self.remark(&node.span, message);
        }
        address
    }

    /// The kernel that the host is, and the program on it.
    fn kernel(&mut self, entry: &Entry) -> Option<Kernel> {
        let table = entry.node.table()?;
        let text = |key: &str| table.node(key).and_then(|node| node.text()).map(str::to_owned);
        let (file, run) = (text(KERNEL), text(RUN));
        if let Some(node) = table.node(RUN).filter(|_| table.node(KERNEL).is_none()) {
            let message = format!("`{RUN}` needs a `{KERNEL}` on which the program runs");
            self.remark(&node.span, message);
        }
        Some(Kernel { file: file?, run })
    }

    /// Remarks on a place in the drawing that is none.
    fn check_position(&mut self, table: &Table) {
        let Some(node) = table.node(POSITION) else { return };
        let coordinate = |node: &Node| match node.item {
            Item::Integer(number) => Some(number as f64),
            Item::Number(number) => Some(number),
            _ => None,
        };
        let is_inside = |node: &Node| coordinate(node).is_some_and(|number| number.abs() <= FARTHEST);
        let is_place =
            matches!(&node.item, Item::Array(place) if place.len() == 2 && place.iter().all(is_inside));
        if !is_place {
            let message = format!(
                "`{POSITION}` must be two numbers such as `[120, 80]`, none beyond {FARTHEST}: to the right and downwards"
            );
            self.remark(&node.span, message);
        }
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

/// The port of an agent, unless told otherwise.
const AGENT_PORT: u16 = 4781;

/// An agent's address with its port, whichever way it is written; `None` if it is none.
fn agent_address(written: &str) -> Option<String> {
    if let Ok(address) = written.parse::<SocketAddr>() {
        return (address.port() != 0).then(|| address.to_string());
    }
    let bare = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(written);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(SocketAddr::new(address, AGENT_PORT).to_string());
    }
    let (name, port) = match written.split_once(':') {
        Some((name, port)) => (name, port.parse().ok().filter(|port| *port != 0)?),
        None => (written, AGENT_PORT),
    };
    let is_label = |label: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !label.is_empty() && label.chars().all(fits) && !label.starts_with('-')
    };
    // An address with a digit too few is no name either.
    let is_number = name.split('.').all(|label| label.chars().all(|c| c.is_ascii_digit()));
    (name.split('.').all(is_label) && !is_number).then(|| format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_an_address_and_a_port() {
        for (written, meant) in [
            ("10.0.0.7", "10.0.0.7:4781"),
            ("10.0.0.7:99", "10.0.0.7:99"),
            ("fd00::7", "[fd00::7]:4781"),
            ("[fd00::7]", "[fd00::7]:4781"),
            ("[fd00::7]:99", "[fd00::7]:99"),
            ("studio", "studio:4781"),
            ("studio-2.example:99", "studio-2.example:99"),
        ] {
            assert_eq!(agent_address(written).as_deref(), Some(meant), "{written}");
        }
        for wrong in [
            "",
            "10.0.0",
            "10.0.0.256",
            "10.0.0.7:0",
            "studio:",
            "studio:70000",
            "a b",
            "-a",
            "a..b",
            "http://a",
        ] {
            assert_eq!(agent_address(wrong), None, "{wrong}");
        }
    }
}
