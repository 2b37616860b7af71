//! From TOML to a configuration, with the place of everything that is wrong.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_experiment::{Problems, suggestion};

use super::{Config, DEFAULT_PORT, Limits, Network, Permission};

/// The table for controllers without one of their own.
const OTHERS: &str = "controller-default";

pub(super) fn config(file: &str, text: &str, host: &str) -> Result<Config, Problems> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { remarks: Vec::new() };
    for error in &errors {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        reader.remark(error.span().unwrap_or(0..0), format!("not TOML: {message}"));
    }
    // What stands behind broken syntax is guesswork.
    let config =
        if errors.is_empty() { reader.config(table.get_ref(), host) } else { Config::with_name(host) };
    match Problems::of(file, text, reader.remarks) {
        None => Ok(config),
        Some(problems) => Err(problems),
    }
}

struct Reader {
    remarks: Vec<(Range<usize>, String)>,
}

type Node<'t> = Spanned<DeValue<'t>>;

impl Reader {
    fn remark(&mut self, at: Range<usize>, message: impl Into<String>) {
        self.remarks.push((at, message.into()));
    }

    fn config(&mut self, root: &DeTable<'_>, host: &str) -> Config {
        let keys = ["name", "listen", "metrics", "traces", "limits", "controller", OTHERS];
        self.refuse_unknown(root, &keys, "");
        let preset = Config::with_name(host);
        let others = self
            .table(root, OTHERS)
            .map_or(preset.others, |table| self.permission(table, "[controller-default]", None));
        Config {
            name: self.name(root).unwrap_or(preset.name),
            listen: self.address(root, "listen").unwrap_or(preset.listen),
            metrics: self.address(root, "metrics"),
            traces: self.collector(root),
            limits: self.limits(root),
            controllers: self.controllers(root, &others.to),
            others,
        }
    }

    fn limits(&mut self, root: &DeTable<'_>) -> Limits {
        let preset = Limits::default();
        let Some(table) = self.table(root, "limits") else { return preset };
        self.refuse_unknown(table, &["rate", "flows", "memory", "disk", "duration", "keep"], " in [limits]");
        Limits {
            rate: self.quantity::<Rate>(table, "rate", Rate::from_bits_per_second(1)),
            flows: self.count(table, "flows").unwrap_or(preset.flows),
            memory: self.quantity(table, "memory", Bytes(64 << 20)),
            disk: self.quantity(table, "disk", Bytes(1 << 20)).unwrap_or(preset.disk),
            duration: self.quantity(table, "duration", Duration::from_secs(1)).unwrap_or(preset.duration),
            keep: self.quantity(table, "keep", Duration::ZERO).unwrap_or(preset.keep),
        }
    }

    fn controllers(&mut self, root: &DeTable<'_>, to: &[Network]) -> BTreeMap<String, Permission> {
        let Some(table) = self.table(root, "controller") else { return BTreeMap::new() };
        let mut controllers = BTreeMap::new();
        for (name, node) in table {
            let name = name.get_ref();
            match node.get_ref() {
                DeValue::Table(table) => {
                    let permission = self.permission(table, &format!("[controller.{name}]"), Some(to));
                    controllers.insert(name.to_string(), permission);
                }
                other => {
                    let message = format!(
                        "`{name}` must be a table such as [controller.{name}], not {}",
                        described(other)
                    );
                    self.remark(node.span(), message);
                }
            }
        }
        controllers
    }

    /// Without `to` a controller has that of all others, if these have one.
    fn permission(&mut self, table: &DeTable<'_>, place: &str, to: Option<&[Network]>) -> Permission {
        self.refuse_unknown(table, &["rate", "flows", "to"], &format!(" in {place}"));
        let preset = Permission::default();
        Permission {
            rate: self.quantity(table, "rate", Rate::ZERO),
            flows: self.count(table, "flows"),
            to: self.networks(table).unwrap_or_else(|| to.map_or(preset.to, <[Network]>::to_vec)),
        }
    }

    fn networks(&mut self, table: &DeTable<'_>) -> Option<Vec<Network>> {
        let node = table.get("to")?;
        let expected = "a list of addresses and ranges such as [\"10.0.0.0/8\", \"192.0.2.7\"]";
        let DeValue::Array(items) = node.get_ref() else {
            self.wrong(node, "to", expected);
            return None;
        };
        let mut networks = Vec::new();
        for item in items {
            match item.get_ref().as_str().map(str::parse::<Network>) {
                Some(Ok(network)) => networks.push(network),
                Some(Err(problem)) => self.remark(item.span(), problem),
                None => self.wrong(item, "to", expected),
            }
        }
        Some(networks)
    }

    fn name(&mut self, root: &DeTable<'_>) -> Option<String> {
        let (node, text) = self.text(root, "name", "a name such as \"ottawa\"")?;
        if let Err(problem) = usable_name(text) {
            self.remark(node.span(), format!("`name`: {problem}"));
        }
        Some(text.to_owned())
    }

    /// An address with a port, or without one for `listen`.
    fn address(&mut self, root: &DeTable<'_>, key: &str) -> Option<SocketAddr> {
        let (node, text) = self.text(root, key, "an address with a port such as \"0.0.0.0:4781\"")?;
        let alone = || {
            let address: IpAddr = text.parse().ok()?;
            (key == "listen").then_some(SocketAddr::new(address, DEFAULT_PORT))
        };
        let address = text.parse().ok().or_else(alone);
        if address.is_none() {
            let message = format!(
                "`{key}` must be an address with a port such as `0.0.0.0:4781` or `[::]:4781`, not `{text}`"
            );
            self.remark(node.span(), message);
        }
        address
    }

    fn collector(&mut self, root: &DeTable<'_>) -> Option<String> {
        let expected = "the address of a collector such as `http://127.0.0.1:4318`";
        let (node, text) = self.text(root, "traces", expected)?;
        let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        if host.is_none_or(|host| host.is_empty() || host.starts_with('/')) {
            self.remark(node.span(), format!("`traces` must be {expected}, not `{text}`"));
        }
        Some(text.trim_end_matches('/').to_owned())
    }

    fn quantity<T>(&mut self, table: &DeTable<'_>, key: &str, least: T) -> Option<T>
    where
        T: FromStr<Err = trunkline_core::QuantityError> + PartialOrd + std::fmt::Display + Example,
    {
        let (node, text) = self.text(table, key, T::EXAMPLE)?;
        match text.parse::<T>() {
            Ok(value) if value < least => {
                self.remark(node.span(), format!("`{key}` must be at least {least}, not `{text}`"));
                None
            }
            Ok(value) => Some(value),
            Err(problem) => {
                self.remark(node.span(), format!("`{key}`: {problem}"));
                None
            }
        }
    }

    fn count(&mut self, table: &DeTable<'_>, key: &str) -> Option<u32> {
        let node = table.get(key)?;
        let value = match node.get_ref() {
            DeValue::Integer(integer) => u32::from_str_radix(integer.as_str(), integer.radix()).ok(),
            _ => None,
        };
        if value.is_none() {
            self.wrong(node, key, "a whole number from 0 to 4294967295");
        }
        value
    }

    fn text<'t>(
        &mut self,
        table: &'t DeTable<'_>,
        key: &str,
        expected: &str,
    ) -> Option<(&'t Node<'t>, &'t str)> {
        let node = table.get(key)?;
        let text = node.get_ref().as_str();
        if text.is_none() {
            self.wrong(node, key, expected);
        }
        text.map(|text| (node, text))
    }

    fn table<'t, 'i>(&mut self, root: &'t DeTable<'i>, key: &str) -> Option<&'t DeTable<'i>> {
        let node = root.get(key)?;
        let table = node.get_ref().as_table();
        if table.is_none() {
            self.wrong(node, key, &format!("a table: [{key}]"));
        }
        table
    }

    fn wrong(&mut self, node: &Node<'_>, key: &str, expected: &str) {
        self.remark(node.span(), format!("`{key}` must be {expected}, not {}", described(node.get_ref())));
    }

    fn refuse_unknown(&mut self, table: &DeTable<'_>, known: &[&str], place: &str) {
        for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref();
            let hint = suggestion(name, known.iter().copied());
            self.remark(key.span(), format!("unknown key `{}`{place}{hint}", name.escape_debug()));
        }
    }
}

/// Whether an agent or a controller can be called this: the name stands in lists, paths of files and metrics.
pub(crate) fn usable_name(name: &str) -> Result<(), String> {
    let is_usable = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    match name {
        "" => Err("a name has at least one character".to_owned()),
        _ if name.chars().count() > 64 => Err("a name has at most 64 characters".to_owned()),
        _ if name.starts_with('.') => Err(format!("`{name}` starts with a dot")),
        _ => match name.chars().find(|&c| !is_usable(c)) {
            Some(odd) => {
                let odd = odd.escape_debug();
                Err(format!(
                    "invalid character `{odd}` in a name: allowed are letters, digits, `-`, `_` and \
                    `.`"
                ))
            }
            None => Ok(()),
        },
    }
}

fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text `{}`", text.escape_debug()),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => format!("`{flag}`"),
        DeValue::Datetime(_) => "a date or time of day".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// What a quantity looks like, for messages.
trait Example {
    const EXAMPLE: &str;
}
impl Example for Rate {
    const EXAMPLE: &str = "a rate such as \"100 Mbit/s\"";
}
impl Example for Bytes {
    const EXAMPLE: &str = "a size such as \"10 GiB\"";
}
impl Example for Duration {
    const EXAMPLE: &str = "a duration such as \"1 h\"";
}
