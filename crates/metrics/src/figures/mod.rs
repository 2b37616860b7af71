//! The one table of figures: name, unit, definition and readers of every figure that a limit, a report, a file, the page or
//! the reference can name. Each figure is one entry, in the file of its theme; everything that lists or reads figures goes
//! through this table.

mod bundles;
mod connection;
mod counts;
mod document;
mod instrument;
mod jitter;
mod latency;
mod links;
mod loss;
mod media;
mod quality;
mod robust;
#[cfg(test)]
mod tests;
mod throughput;
mod voice_path;
mod words;

use core::fmt;

use trunkline_core::Amount;

pub use self::document::{DocumentError, documented};
use crate::delays::Delays;
use crate::summary::{BundleSummary, ClassSummary, FlowSummary, LinkSummary, SinkSummary};

/// Themes in the order of tables and files: flows, bundles with their connections, links, media.
static FIGURES: &[&[FigureKind]] = &[
    throughput::FIGURES,
    loss::FIGURES,
    latency::FIGURES,
    jitter::FIGURES,
    robust::FIGURES,
    voice_path::FIGURES,
    quality::FIGURES,
    counts::FIGURES,
    connection::FIGURES,
    instrument::FIGURES,
    bundles::FIGURES,
    bundles::OF_CONNECTIONS,
    links::FIGURES,
    media::FIGURES,
];

/// Definitions in the order of a glossary.
const DEFINITIONS: &[&[&Definition]] = &[
    words::BEFORE,
    latency::DEFINITIONS,
    jitter::DEFINITIONS,
    robust::DEFINITIONS,
    loss::DEFINITIONS,
    counts::DEFINITIONS,
    throughput::DEFINITIONS,
    bundles::DEFINITIONS,
    voice_path::DEFINITIONS,
    quality::DEFINITIONS,
    instrument::DEFINITIONS,
    connection::DEFINITIONS,
    words::DEFINITIONS,
    media::DEFINITIONS,
    links::DEFINITIONS,
    words::AFTER,
];

/// Quantity that a figure counts, in its base unit: seconds, bits per second, a share from 0 to 1, bytes, things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Seconds.
    Time,
    /// Bits per second.
    Rate,
    /// From 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// A number without a unit that need not be whole.
    Number,
}

impl Quantity {
    /// Name of the base unit, as files and JSON state it.
    pub const fn base_unit(self) -> &'static str {
        match self {
            Quantity::Time => "s",
            Quantity::Rate => "bit/s",
            Quantity::Share | Quantity::Number => "1",
            Quantity::Bytes => "B",
            Quantity::Count => "count",
        }
    }

    /// Quantity of an amount, and its value in the base unit.
    pub fn of(amount: Amount) -> (Quantity, f64) {
        match amount {
            Amount::Count(count) => (Quantity::Count, count as f64),
            Amount::Time(time) => (Quantity::Time, time.as_secs_f64()),
            Amount::Share(share) => (Quantity::Share, share.value()),
            Amount::Bytes(bytes) => (Quantity::Bytes, bytes.count() as f64),
        }
    }

    /// Quantity of a medium's figure with this name and amount; that of the table if there is no amount.
    pub fn of_medium(figure: &str, amount: Option<Amount>) -> Quantity {
        let listed = || of_media().find(|known| known.id == figure).map(|known| known.quantity);
        amount.map(|amount| Quantity::of(amount).0).or_else(listed).unwrap_or(Quantity::Number)
    }
}

/// Backends that know the figures of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownIn {
    /// All of them.
    Every,
    /// Those that emulate the links.
    SimAndWire,
    /// Those that run in real time.
    WireAndLive,
    /// Measurements between real hosts.
    Live,
}

impl KnownIn {
    /// A sentence for readers; empty if every backend knows the figure.
    const fn sentence(self) -> &'static str {
        match self {
            KnownIn::Every => "",
            KnownIn::SimAndWire => "In sim and wire only.",
            KnownIn::WireAndLive => "In wire and live only.",
            KnownIn::Live => "In live only, between hosts.",
        }
    }
}

/// Definition of one or several figures, or of a word that a report uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name in links: stable.
    pub id: &'static str,
    /// The term in text.
    pub name: &'static str,
    /// The definition, without the backends that know it.
    text: &'static str,
    /// Standard or paper; empty if the text says it all.
    pub source: &'static str,
    /// Backends that know its figures.
    pub known_in: KnownIn,
}

const fn define(id: &'static str, name: &'static str, text: &'static str) -> Definition {
    Definition { id, name, text, source: "", known_in: KnownIn::Every }
}

impl Definition {
    const fn source(self, source: &'static str) -> Definition {
        Definition { source, ..self }
    }

    const fn known_in(self, known_in: KnownIn) -> Definition {
        Definition { known_in, ..self }
    }

    /// The definition in sentences, with the backends that know its figures unless all do.
    pub fn text(&self) -> String {
        match self.known_in.sentence() {
            "" => self.text.to_owned(),
            sentence => format!("{} {sentence}", self.text),
        }
    }
}

/// The name of a figure in limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitKey {
    /// Behind the name of the flow, the bundle or the transport: `latency.p99`.
    pub key: &'static str,
    /// Its meaning in a sentence.
    pub doc: &'static str,
    /// True if bounds below zero make sense.
    pub is_signed: bool,
    /// Its name in stored runs, if that is not the key's.
    stored: Option<&'static str>,
}

impl LimitKey {
    /// Name in stored runs: `latency-p99`.
    pub fn stored(&self) -> String {
        self.stored.map_or_else(|| self.key.replace('.', "-"), str::to_owned)
    }
}

/// Dependence of a figure on the number of messages: repetitions may agree by chance in a figure that counts few of them.
#[derive(Clone, Copy)]
pub enum Grain {
    /// It does not count messages.
    None,
    /// It is a share of the messages due.
    Share,
    /// It is a share of the messages that are due on one connection.
    ShareOfConnection,
    /// One message more or less, of this number, changes it by this much.
    Step(fn(&FlowSummary, u64) -> Option<f64>),
}

type Read<S> = Option<fn(&S) -> Option<f64>>;

/// One figure.
#[derive(Clone, Copy)]
pub struct FigureKind {
    /// Its name in CSV, JSON and links: stable, and unique among the figures of flows, of bundles, of links and of media.
    pub id: &'static str,
    /// Its name in text.
    pub name: &'static str,
    /// Its quantity, which says its unit.
    pub quantity: Quantity,
    /// Its definition, with the source.
    pub definition: &'static Definition,
    /// Its name in limits, if it can be limited.
    pub limit: Option<LimitKey>,
    /// Its place among the figures that a short table shows; `None` of all others.
    pub rank: Option<u8>,
    /// Its dependence on the number of messages.
    pub grain: Grain,
    /// The least and the greatest value, where its quantity does not say them.
    range: Option<(f64, f64)>,
    of_flow: Read<FlowSummary>,
    of_sink: Read<SinkSummary>,
    of_bundle: Read<BundleSummary>,
    of_connections: Read<ClassSummary>,
    of_link: Read<LinkSummary>,
}

const fn figure(
    id: &'static str,
    name: &'static str,
    quantity: Quantity,
    definition: &'static Definition,
) -> FigureKind {
    FigureKind {
        id,
        name,
        quantity,
        definition,
        limit: None,
        rank: None,
        grain: Grain::None,
        range: None,
        of_flow: None,
        of_sink: None,
        of_bundle: None,
        of_connections: None,
        of_link: None,
    }
}

/// Entries of the table. A reader gives base units, and `None` where nothing was measured.
impl FigureKind {
    const fn of_flow(self, read: fn(&FlowSummary) -> Option<f64>) -> FigureKind {
        FigureKind { of_flow: Some(read), ..self }
    }

    /// Adds the reader for one of several sinks.
    const fn of_sink(self, read: fn(&SinkSummary) -> Option<f64>) -> FigureKind {
        FigureKind { of_sink: Some(read), ..self }
    }

    const fn of_bundle(self, read: fn(&BundleSummary) -> Option<f64>) -> FigureKind {
        FigureKind { of_bundle: Some(read), ..self }
    }

    /// Adds the reader for the connections of one transport in a bundle.
    const fn of_connections(self, read: fn(&ClassSummary) -> Option<f64>) -> FigureKind {
        FigureKind { of_connections: Some(read), ..self }
    }

    const fn of_link(self, read: fn(&LinkSummary) -> Option<f64>) -> FigureKind {
        FigureKind { of_link: Some(read), ..self }
    }

    const fn limit(self, key: &'static str, doc: &'static str) -> FigureKind {
        FigureKind { limit: Some(LimitKey { key, doc, is_signed: false, stored: None }), ..self }
    }

    /// A limit whose bound may be less than zero.
    const fn signed_limit(self, key: &'static str, doc: &'static str) -> FigureKind {
        FigureKind { limit: Some(LimitKey { key, doc, is_signed: true, stored: None }), ..self }
    }

    /// The limit's name in stored runs where it is not that of its key.
    const fn stored(self, name: &'static str) -> FigureKind {
        match self.limit {
            Some(limit) => FigureKind { limit: Some(LimitKey { stored: Some(name), ..limit }), ..self },
            None => self,
        }
    }

    /// The least and the greatest value that the figure can have.
    const fn within(self, least: f64, greatest: f64) -> FigureKind {
        FigureKind { range: Some((least, greatest)), ..self }
    }

    const fn grain(self, grain: Grain) -> FigureKind {
        FigureKind { grain, ..self }
    }

    const fn rank(self, rank: u8) -> FigureKind {
        FigureKind { rank: Some(rank), ..self }
    }
}

impl FigureKind {
    /// The least and the greatest value that the figure can have, in its base unit.
    pub fn range(&self) -> (f64, f64) {
        let of_quantity = match self.quantity {
            _ if self.limit.is_some_and(|limit| limit.is_signed) => (f64::NEG_INFINITY, f64::INFINITY),
            Quantity::Share => (0.0, 1.0),
            _ => (0.0, f64::INFINITY),
        };
        self.range.unwrap_or(of_quantity)
    }

    /// The figure of a flow; `None` where nothing was measured.
    pub fn value(&self, flow: &FlowSummary) -> Option<f64> {
        finite(self.of_flow?(flow))
    }

    /// The figure of one of the flow's sinks, or of the flows that it is made as; `None` also where sinks have no such
    /// figure by themselves.
    pub fn value_at(&self, flow: &FlowSummary, part: &str) -> Option<f64> {
        if let Some(single) = flow.each.iter().find(|single| single.flow == part) {
            return self.value(single);
        }
        let sink = flow.sinks.iter().find(|summary| summary.sink == part)?;
        self.value_of_sink(sink).filter(|_| flow.members > 0)
    }

    /// Returns true if the figure of this flow, or of this sink or part of it, is a percentile that comes from a histogram. Of
    /// IPDV there are at most as many values as messages.
    pub fn is_from_histogram(&self, flow: &FlowSummary, part: Option<&str>) -> bool {
        if let Some(single) = part.and_then(|part| flow.each.iter().find(|single| single.flow == part)) {
            return self.is_from_histogram(single, None);
        }
        let sink = part.map(|part| flow.sinks.iter().find(|sink| sink.sink == part));
        let [latency, from_due] = match sink {
            None => [flow.latency, flow.latency_from_due],
            Some(sink) => [sink.and_then(|sink| sink.latency), sink.and_then(|sink| sink.latency_from_due)],
        };
        let is_counted = match self.definition.id {
            "percentile" | "pdv" => latency.is_some_and(|latency| !latency.exact),
            "latency-from-due" => from_due.is_some_and(|latency| !latency.exact),
            "ipdv" => latency.is_some_and(|latency| latency.count > Delays::EXACT_UP_TO as u64),
            "schedule-error" => flow.schedule_error.is_some_and(|error| !error.exact),
            "send-call" => flow.send_call.is_some_and(|call| !call.exact),
            _ => false,
        };
        let percentile = self.id.rsplit_once("_p").and_then(|(_, rank)| rank.parse::<u16>().ok());
        is_counted && percentile.is_some()
    }

    /// The figure of one of several sinks by itself.
    pub fn value_of_sink(&self, sink: &SinkSummary) -> Option<f64> {
        finite(self.of_sink?(sink))
    }

    /// The figure of a bundle as a whole; `None` of a bundle without members.
    pub fn value_of_bundle(&self, bundle: &BundleSummary) -> Option<f64> {
        finite(self.of_bundle?(bundle)).filter(|_| bundle.members > 0)
    }

    /// The figure of the connections of one transport in a bundle.
    pub fn value_of_connections(&self, class: &ClassSummary) -> Option<f64> {
        finite(self.of_connections?(class))
    }

    /// The figure of a direction of a link.
    pub fn value_of_link(&self, link: &LinkSummary) -> Option<f64> {
        finite(self.of_link?(link))
    }

    /// True if each of several sinks has this figure by itself.
    pub const fn is_of_sinks(&self) -> bool {
        self.of_sink.is_some()
    }

    /// True if bundles as a whole have it.
    pub const fn is_of_bundles(&self) -> bool {
        self.of_bundle.is_some()
    }

    /// True if the connections of a transport in a bundle have it.
    pub const fn is_of_connections(&self) -> bool {
        self.of_connections.is_some()
    }
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

impl fmt::Debug for FigureKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("FigureKind").field(&self.id).finish()
    }
}

/// Figures are the same if they have the same id and are of the same things.
impl PartialEq for FigureKind {
    fn eq(&self, other: &FigureKind) -> bool {
        let of = |figure| (is_of_flows(figure), is_of_bundles(figure), is_of_links(figure));
        self.id == other.id && of(self) == of(other)
    }
}

const fn is_of_flows(figure: &FigureKind) -> bool {
    figure.of_flow.is_some()
}

const fn is_of_bundles(figure: &FigureKind) -> bool {
    figure.of_bundle.is_some() || figure.of_connections.is_some()
}

const fn is_of_links(figure: &FigureKind) -> bool {
    figure.of_link.is_some()
}

const fn is_of_media(figure: &FigureKind) -> bool {
    !is_of_flows(figure) && !is_of_bundles(figure) && !is_of_links(figure)
}

/// Every figure.
pub fn all() -> impl Iterator<Item = &'static FigureKind> + Clone {
    FIGURES.iter().copied().flatten()
}

/// Every figure of a flow, in the order of tables.
pub fn of_flows() -> impl Iterator<Item = &'static FigureKind> + Clone {
    all().filter(|figure| is_of_flows(figure))
}

/// Every figure of a bundle or of its connections by transport.
pub fn of_bundles() -> impl Iterator<Item = &'static FigureKind> + Clone {
    all().filter(|figure| is_of_bundles(figure))
}

/// Every figure of a direction of a link.
pub fn of_links() -> impl Iterator<Item = &'static FigureKind> + Clone {
    all().filter(|figure| is_of_links(figure))
}

/// Every figure that only some kinds of media have. Media compute them and name them by these ids.
pub fn of_media() -> impl Iterator<Item = &'static FigureKind> + Clone {
    all().filter(|figure| is_of_media(figure))
}

/// Every definition, in the order of a glossary.
pub fn definitions() -> impl Iterator<Item = &'static Definition> + Clone {
    DEFINITIONS.iter().copied().flatten().copied()
}

/// The figures of a flow that code names. In a constant, an unknown id does not compile; `of_flows().find(..)` looks for
/// ids that come from outside.
///
/// # Panics
/// If no figure of a flow has this id.
pub const fn flow(id: &str) -> &'static FigureKind {
    find(id, Of::Flow)
}

/// The same of a bundle or its connections.
///
/// # Panics
/// If no figure of a bundle has this id.
pub const fn bundle(id: &str) -> &'static FigureKind {
    find(id, Of::Bundle)
}

/// The same of a link.
///
/// # Panics
/// If no figure of a link has this id.
pub const fn link(id: &str) -> &'static FigureKind {
    find(id, Of::Link)
}

enum Of {
    Flow,
    Bundle,
    Link,
}

const fn find(id: &str, of: Of) -> &'static FigureKind {
    let mut theme = 0;
    while theme < FIGURES.len() {
        let mut place = 0;
        while place < FIGURES[theme].len() {
            let figure = &FIGURES[theme][place];
            let is_of = match of {
                Of::Flow => is_of_flows(figure),
                Of::Bundle => is_of_bundles(figure),
                Of::Link => is_of_links(figure),
            };
            if is_of && is_same(figure.id, id) {
                return figure;
            }
            place += 1;
        }
        theme += 1;
    }
    panic!("no figure has this id")
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut place = 0;
    while place < one.len() && place < other.len() && one[place] == other[place] {
        place += 1;
    }
    place == one.len() && place == other.len()
}
