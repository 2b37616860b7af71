//! What an experiment file may say, as a form needs it: every key with its shape, units, range and words. Made from the
//! schema that reads the file, so that a form cannot offer what the check refuses.

use serde::Serialize;
use trunkline_core::schema::{Default as Preset, Kind};
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_experiment::schema::{
    self, DISTRIBUTIONS, DistributionKind, EVERY, FARTHEST, Key, Limited, OneOf, Part, SECTIONS, SERIES,
    SINK, Schema, SeriesKind, Shape, exact,
};
use trunkline_metrics::figures::Quantity;
use trunkline_network::medium;
use utoipa::ToSchema;

/// Everything that can be written into an experiment file.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct FormSchema {
    /// The keys before the first table under the name `experiment`, then table by table.
    pub sections: Vec<FormSection>,
}

/// A kind of table.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct FormSection {
    /// `hosts`, `link`, ...
    pub name: &'static str,
    /// Its purpose, in Markdown like every `doc`.
    pub doc: &'static str,
    /// The keys of one of its tables; for links, of any medium. Those of `sweep` and `limits` depend on the file.
    pub keys: Vec<FormKey>,
    /// For links: the media with their keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub media: Vec<FormMedium>,
    /// For limits: the figures that they can name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub figures: Vec<FormFigure>,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct FormKey {
    /// As written.
    pub name: &'static str,
    /// Description of the key, as in the reference.
    pub doc: &'static str,
    /// Whether it is required.
    pub required: bool,
    /// The default, as written; `None` if a missing key has a meaning of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<&'static str>,
    /// The type of its value.
    pub shape: FormShape,
    /// The units that it can be written in, the usual ones of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<&'static [&'static str]>,
    /// The smallest value, as written; `None` without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// The largest value, as written; `None` without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// The words to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<Choice>>,
    /// The kinds of table that the value may be; for a choice, also the word alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    pub alternatives: Option<Vec<Alternative>>,
    /// The keys of a table in its place: those of a sink beside its `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    pub keys: Option<Vec<FormKey>>,
    /// Whether a share such as `1 %` means the first alternative.
    pub share: bool,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FormShape {
    /// Any text.
    Text,
    /// `"10 ms"`.
    Duration,
    /// `"2 Mbit/s"`.
    Rate,
    /// `"64 KiB"`.
    Bytes,
    /// Bytes or packets: `"100 packets"`.
    Limit,
    /// `"1 %"`, or a number from 0 to 1.
    Ratio,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Flag,
    /// One of some words.
    Choice,
    /// The name of a host.
    Host,
    /// Names of hosts.
    Hosts,
    /// The name of a flow.
    Flow,
    /// Names of flows.
    Flows,
    /// The name of a host, or a list of names and of tables with a `host` and some of `keys`.
    Sinks,
    /// Names of links, in a row.
    Links,
    /// A word or a table of a kind with its own keys.
    OneOf,
    /// The path of a file beside the experiment file; with `choices`, also one of these words.
    File,
    /// A table with keys of a medium for one direction of a link.
    Direction,
    /// A table of such tables by station of a medium.
    Stations,
    /// A duration, or a distribution of durations.
    Durations,
    /// A size, or a distribution of sizes.
    Sizes,
    /// A list of pairs of a time and a value.
    Steps,
    /// Two numbers.
    Position,
}

/// A word that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Choice {
    /// As written.
    pub name: &'static str,
    /// Description of the word, as in the reference.
    pub doc: &'static str,
}

/// A kind of table.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Alternative {
    /// Its `kind`.
    pub name: &'static str,
    /// Its aliases.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    pub aliases: &'static [&'static str],
    /// Description of the kind, as in the reference.
    pub doc: &'static str,
    /// Its keys beside `kind`.
    #[schema(no_recursion)]
    pub keys: Vec<FormKey>,
}

/// A medium.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct FormMedium {
    /// As written.
    pub name: &'static str,
    /// Description of the medium, as in the reference.
    pub doc: &'static str,
    /// Number of hosts that it connects.
    pub stations: Stations,
    /// Its keys: those of the medium as a whole, then those of a direction or station.
    pub keys: Vec<FormKey>,
    /// Those of them that belong to the medium as a whole, not to a direction or station.
    pub shared: Vec<&'static str>,
}

/// Number of hosts that a medium connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Stations {
    /// At least.
    pub min: u32,
    /// At most.
    pub max: u32,
}

/// A figure that a limit can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FormFigure {
    /// The object that has it.
    pub of: FigureOf,
    /// As written.
    pub name: &'static str,
    /// Description of the figure.
    pub doc: &'static str,
    /// The quantity with which it is compared.
    pub shape: FormShape,
    /// The units of that quantity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<&'static [&'static str]>,
}

/// The kind of object that has a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureOf {
    /// `flow.NAME.FIGURE`
    Flow,
    /// `flow.NAME.sink.HOST.FIGURE`
    Sink,
    /// `bundle.NAME.FIGURE`
    Bundle,
    /// `bundle.NAME.TRANSPORT.FIGURE`
    Transport,
}

const DURATIONS: &[&str] = &["ns", "us", "ms", "s", "min", "h"];
const RATES: &[&str] = &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
const SIZES: &[&str] = &["B", "KB", "MB", "GB", "KiB", "MiB", "GiB"];
const LIMITS: &[&str] = &["packets", "B", "KB", "MB", "GB", "KiB", "MiB", "GiB"];
const SHARES: &[&str] = &["%"];

/// The description of all that an experiment file may say, for forms.
pub fn form_schema() -> FormSchema {
    let schema = Schema::default();
    let experiment = FormSection {
        name: "experiment",
        doc: "Keys of the experiment as a whole, before the first table.",
        keys: form_keys(&schema.experiment),
        media: Vec::new(),
        figures: Vec::new(),
    };
    let section = |(name, doc): &(&'static str, &'static str)| FormSection {
        name,
        doc,
        keys: match *name {
            "hosts" => form_keys(&schema.host),
            "link" => form_keys(&schema.link),
            "flow" => form_keys(&schema.flow),
            "bundle" => form_keys(&schema.bundle),
            _ => Vec::new(),
        },
        media: if *name == "link" { media(&schema) } else { Vec::new() },
        figures: if *name == "limits" { figures() } else { Vec::new() },
    };
    FormSchema { sections: core::iter::once(experiment).chain(SECTIONS.iter().map(section)).collect() }
}

fn media(schema: &Schema) -> Vec<FormMedium> {
    let keys = schema.shared.iter().zip(&schema.direction);
    let medium = |(kind, (shared, direction)): (&medium::MediumKind, (&Vec<Key>, &Vec<Key>))| FormMedium {
        name: kind.name,
        doc: kind.doc,
        // A medium has at most as many stations as a packet can name.
        stations: Stations { min: *kind.stations.start() as u32, max: *kind.stations.end() as u32 },
        keys: shared.iter().chain(direction).map(form_key).collect(),
        shared: shared.iter().map(|key| key.name).collect(),
    };
    medium::KINDS.iter().zip(keys).map(medium).collect()
}

fn figures() -> Vec<FormFigure> {
    fn of(of: FigureOf, Limited { figure, limit }: Limited) -> FormFigure {
        let (shape, units) = match figure.quantity {
            Quantity::Share => (FormShape::Ratio, Some(SHARES)),
            Quantity::Time => (FormShape::Duration, Some(DURATIONS)),
            Quantity::Rate => (FormShape::Rate, Some(RATES)),
            Quantity::Bytes => (FormShape::Bytes, Some(SIZES)),
            Quantity::Count | Quantity::Number => (FormShape::Number, None),
        };
        FormFigure { of, name: limit.key, doc: limit.doc, shape, units }
    }
    let of_flows = schema::of_flows().map(|known| of(FigureOf::Flow, known));
    let of_sinks = schema::of_sinks().map(|known| of(FigureOf::Sink, known));
    let of_bundles = schema::of_bundles().map(|known| of(FigureOf::Bundle, known));
    let of_connections = schema::of_connections().map(|known| of(FigureOf::Transport, known));
    of_flows.chain(of_sinks).chain(of_bundles).chain(of_connections).collect()
}

fn form_keys(keys: &[Key]) -> Vec<FormKey> {
    keys.iter().map(form_key).collect()
}

fn form_key(key: &Key) -> FormKey {
    let with = |shape: FormShape| FormKey { shape, ..blank(key.name, key.default, key.doc) };
    match &key.shape {
        Shape::Plain(kind) => plain(key.name, kind, key.default, key.doc),
        Shape::OneOf(one_of) => FormKey {
            alternatives: Some(alternatives(one_of)),
            share: one_of.plain_share.is_some(),
            ..with(FormShape::OneOf)
        },
        Shape::Host => with(FormShape::Host),
        Shape::Flow => with(FormShape::Flow),
        Shape::Flows => with(FormShape::Flows),
        Shape::Sinks => FormKey {
            keys: Some(SINK.iter().map(Key::from).map(|key| form_key(&key)).collect()),
            ..with(FormShape::Sinks)
        },
        Shape::Hosts => with(FormShape::Hosts),
        Shape::Links => with(FormShape::Links),
        Shape::Medium(media) => FormKey {
            choices: Some(media.iter().map(|m| Choice { name: m.name, doc: m.doc }).collect()),
            ..with(FormShape::Choice)
        },
        Shape::Direction => with(FormShape::Direction),
        Shape::Stations => with(FormShape::Stations),
        Shape::Position => FormKey {
            min: Some(format!("{}", -FARTHEST)),
            max: Some(format!("{FARTHEST}")),
            ..with(FormShape::Position)
        },
    }
}

fn alternatives(one_of: &OneOf) -> Vec<Alternative> {
    let alternative = |alternative: &schema::Alternative| Alternative {
        name: alternative.name,
        aliases: alternative.aliases,
        doc: alternative.doc,
        keys: alternative.parameters.iter().map(|p| plain(p.name, &p.kind, p.default, p.doc)).collect(),
    };
    one_of.alternatives.iter().map(alternative).collect()
}

/// A key of one value.
fn plain(name: &'static str, kind: &Kind, default: Preset, doc: &'static str) -> FormKey {
    let key = blank(name, default, doc);
    let with = |shape, units| FormKey { shape, units: Some(units), ..key.clone() };
    let of_durations = |shape, min: &Duration, max: &Duration| FormKey {
        min: Some(min.to_string()),
        max: (*max != Duration::MAX).then(|| max.to_string()),
        ..with(shape, DURATIONS)
    };
    let of_sizes = |shape, min: &Bytes, max: &Bytes| FormKey {
        min: Some(exact(*min)),
        max: (max.count() != u64::MAX).then(|| exact(*max)),
        ..with(shape, SIZES)
    };
    match kind {
        Kind::Duration { min, max } => of_durations(FormShape::Duration, min, max),
        Kind::Durations { min, max } => {
            let fixed = of_durations(FormShape::Duration, min, max);
            FormKey { shape: FormShape::Durations, alternatives: Some(drawn(&fixed)), ..fixed }
        }
        Kind::Bytes { min, max } => of_sizes(FormShape::Bytes, min, max),
        Kind::Sizes { min, max } => {
            let fixed = of_sizes(FormShape::Bytes, min, max);
            FormKey { shape: FormShape::Sizes, alternatives: Some(drawn(&fixed)), ..fixed }
        }
        Kind::Rate { min, max } => FormKey {
            min: Some(exact_rate(*min)),
            max: (max.bits_per_second() != u64::MAX).then(|| exact_rate(*max)),
            ..with(FormShape::Rate, RATES)
        },
        Kind::OverTime(of) => {
            let fixed = plain(name, of, default, doc);
            FormKey { alternatives: Some(series()), ..fixed }
        }
        Kind::Limit => with(FormShape::Limit, LIMITS),
        Kind::Ratio => {
            let (min, max) = (Some("0 %".to_owned()), Some("100 %".to_owned()));
            FormKey { min, max, ..with(FormShape::Ratio, SHARES) }
        }
        Kind::Integer { min, max } => FormKey {
            shape: FormShape::Integer,
            min: Some(min.to_string()),
            max: (*max != u64::MAX).then(|| max.to_string()),
            ..key
        },
        Kind::Number { min, max } => FormKey {
            shape: FormShape::Number,
            min: Some(min.to_string()),
            max: max.is_finite().then(|| max.to_string()),
            ..key
        },
        Kind::Flag => FormKey { shape: FormShape::Flag, ..key },
        Kind::Text => key,
        Kind::File | Kind::DeliveryTrace => FormKey { shape: FormShape::File, ..key },
        Kind::Choice(choices) => FormKey {
            shape: FormShape::Choice,
            choices: Some(choices.iter().map(Choice::from).collect()),
            ..key
        },
        Kind::ChoiceOrFile(choices) => FormKey {
            shape: FormShape::File,
            choices: Some(choices.iter().map(Choice::from).collect()),
            ..key
        },
    }
}

impl From<&trunkline_core::schema::Choice> for Choice {
    fn from(of: &trunkline_core::schema::Choice) -> Choice {
        Choice { name: of.name, doc: of.doc }
    }
}

/// The values over time that a key may have instead of a fixed one.
fn series() -> Vec<Alternative> {
    let every = plain(EVERY.0, &EVERY.2, Preset::Absent, EVERY.1);
    let alternative = |kind: &SeriesKind| {
        let shape = if kind.is_file { FormShape::File } else { FormShape::Steps };
        let steps = FormKey { shape, ..blank(kind.steps.0, Preset::Required, kind.steps.1) };
        Alternative { name: kind.name, aliases: &[], doc: kind.doc, keys: vec![steps, every.clone()] }
    };
    SERIES.iter().map(alternative).collect()
}

/// The distributions of what a key may have as a fixed value.
fn drawn(fixed: &FormKey) -> Vec<Alternative> {
    let part = |(name, part, doc): &(&'static str, Part, &'static str)| match part {
        Part::Value => FormKey { name, doc, required: true, default: None, ..fixed.clone() },
        // Its kind is the same whatever is drawn.
        part => plain(name, &part.kind(Kind::Ratio), Preset::Required, doc),
    };
    let alternative = |kind: &DistributionKind| Alternative {
        name: kind.name,
        aliases: &[],
        doc: kind.doc,
        keys: kind.parts.iter().map(part).collect(),
    };
    DISTRIBUTIONS.iter().map(alternative).collect()
}

/// A rate without rounding.
fn exact_rate(rate: Rate) -> String {
    let short = rate.to_string();
    if short.parse() == Ok(rate) { short } else { format!("{} bit/s", rate.bits_per_second()) }
}

fn blank(name: &'static str, default: Preset, doc: &'static str) -> FormKey {
    FormKey {
        name,
        doc,
        required: default == Preset::Required,
        default: match default {
            Preset::Text(text) => Some(text),
            Preset::Required | Preset::Absent => None,
        },
        shape: FormShape::Text,
        units: None,
        min: None,
        max: None,
        choices: None,
        alternatives: None,
        keys: None,
        share: false,
    }
}

#[cfg(test)]
mod tests;
