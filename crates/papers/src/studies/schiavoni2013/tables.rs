//! The tables of the paper, and six of ours: both things that it calls jitter, and this machine.

use super::readings::{HERE as HERE_METRICS, JITTER, PUBLISHED};
use super::{ACCESS_POINT, ADHOC, CROSSOVER, HERE, LOCALHOST, SWITCH};
use crate::study::{Reference, Rows, Table};
use crate::value::{Keys, Value};

macro_rules! reference {
    ($name:literal) => {
        include_str!(concat!("../../../../../papers/schiavoni2013/reference/", $name, ".csv"))
    };
}

const COMPUTER: &[&str] = &["computer", "protocol", "channels"];
const PROTOCOL: &[&str] = &["protocol", "channels"];

const TABLE_02: &str = reference!("table02");

pub(super) const TABLES: &[Table] = &[
    published("table02", "Localhost of computers A and B", COMPUTER, LOCALHOST, TABLE_02),
    published("table03", "Crossover cable", PROTOCOL, CROSSOVER, reference!("table03")),
    published("table04", "Wired switch", PROTOCOL, SWITCH, reference!("table04")),
    published("table05", "Direct 802.11g", PROTOCOL, ADHOC, reference!("table05")),
    published("table06", "802.11g through an access point", PROTOCOL, ACCESS_POINT, reference!("table06")),
    Table {
        name: "here",
        title: "Localhost of this machine",
        reference: Reference::Own,
        keys: PROTOCOL,
        metrics: HERE_METRICS,
        rows: Rows::Flows { file: HERE, flows: FLOWS },
    },
    jitter("jitter02", "Jitter on localhost", COMPUTER, LOCALHOST),
    jitter("jitter03", "Jitter over the crossover cable", PROTOCOL, CROSSOVER),
    jitter("jitter04", "Jitter through the switch", PROTOCOL, SWITCH),
    jitter("jitter05", "Jitter over direct 802.11g", PROTOCOL, ADHOC),
    jitter("jitter06", "Jitter through the access point", PROTOCOL, ACCESS_POINT),
];

const FLOWS: &[(&str, &[&str])] = &[
    ("udp-1", &["UDP", "1"]),
    ("tcp-1", &["TCP", "1"]),
    ("dccp-1", &["DCCP", "1"]),
    ("sctp-1-1", &["SCTP 1", "1"]),
    ("sctp-2-1", &["SCTP 2", "1"]),
    ("udp-2", &["UDP", "2"]),
    ("tcp-2", &["TCP", "2"]),
    ("dccp-2", &["DCCP", "2"]),
    ("sctp-1-2", &["SCTP 1", "2"]),
    ("sctp-2-2", &["SCTP 2", "2"]),
];

const fn published(
    name: &'static str,
    title: &'static str,
    keys: &'static [&'static str],
    file: &'static str,
    text: &'static str,
) -> Table {
    let rows = Rows::Points { file, only: &[], without: &[] };
    Table { name, title, reference: Reference::Published(text), keys, metrics: PUBLISHED, rows }
}

const fn jitter(
    name: &'static str,
    title: &'static str,
    keys: &'static [&'static str],
    file: &'static str,
) -> Table {
    let rows = Rows::Points { file, only: &[], without: &[] };
    Table { name, title, reference: Reference::Own, keys, metrics: JITTER, rows }
}

/// The round trip that Table 2 prints of a computer for the protocol and the channels of a row.
pub(super) fn published_latency(computer: &str, keys: &Keys) -> Option<f64> {
    let row = TABLE_02.lines().map(|line| line.split(',').collect::<Vec<_>>()).find(|row| {
        let same = |column: &str, cell: &str| keys.get(column) == Some(&Value::read(cell));
        matches!(row[..], [of, protocol, channels, ..] if of == computer && same("protocol", protocol) && same("channels", channels))
    })?;
    row.get(3)?.parse().ok()
}
