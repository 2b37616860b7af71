//! What an experiment file may say, as data. Reading, suggestions, sweepable keys, the reference page and the JSON
//! schema all come from here, and from the registries of queues, media, impairments and sources that it gathers.

pub(crate) mod codec;
pub(crate) mod distribution;
mod playback;
pub(crate) mod series;

use crate::alike::{COUNT, MOST_ALIKE};
use crate::link_profile;
use trunkline_core::Duration;
use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_network::{host, impairment, medium, queue};
use trunkline_transport::kind::TransportKind;

use crate::transport::TRANSPORTS;

pub use crate::limits::{Limited, of_bundles, of_connections, of_flows, of_sinks};
pub use crate::quantity::{default_value, exact};
pub use crate::range::KEYS as RANGE_KEYS;
pub use distribution::{DISTRIBUTIONS, DistributionKind, Part};
pub use series::{EVERY, SERIES, SeriesKind};

/// Everything that a file may say.
pub struct Schema {
    /// Keys before the first table.
    pub experiment: Vec<Key>,
    /// Keys of `[hosts.NAME]`: the profile, and the parameters that a profile may hold too.
    pub host: Vec<Key>,
    /// Keys of `[link.NAME]` that belong to the link as a whole.
    pub link: Vec<Key>,
    /// Keys of `[link.NAME]` that belong to the medium as a whole, by medium.
    pub shared: Vec<Vec<Key>>,
    /// Keys of one direction of a link or of one station, by medium; also allowed in `[link.NAME]`, for all of them.
    pub direction: Vec<Vec<Key>>,
    /// Keys of `[flow.NAME]`.
    pub flow: Vec<Key>,
    /// Keys of `[bundle.NAME]`.
    pub bundle: Vec<Key>,
    /// The transports.
    pub transports: &'static [&'static TransportKind],
}

/// One key of a table.
pub struct Key {
    /// As written.
    pub name: &'static str,
    /// Shape of its value.
    pub shape: Shape,
    /// The value without it.
    pub default: Preset,
    /// Its documentation.
    pub doc: &'static str,
}

/// What stands behind a key.
pub enum Shape {
    /// One value.
    Plain(Kind),
    /// A word, or a table with `kind` and that kind's keys.
    OneOf(OneOf),
    /// The name of a host.
    Host,
    /// The name of a flow.
    Flow,
    /// Names of flows.
    Flows,
    /// The name of a host, or a list of names of hosts and of tables with such a name.
    Sinks,
    /// The names of two or more hosts.
    Hosts,
    /// Names of links, in a row.
    Links,
    /// The name of a medium, whose keys stand beside it.
    Medium(Vec<Alternative>),
    /// A table of a direction's keys.
    Direction,
    /// A table of tables, by host: keys of a station.
    Stations,
    /// Two numbers: where it stands in the drawing. Nothing but the drawing asks for it, so it cannot be swept.
    Position,
}

/// Several kinds of a thing, each with its own keys.
pub struct OneOf {
    /// The kinds.
    pub alternatives: Vec<Alternative>,
    /// The alternative whose first key a plain share stands for.
    pub plain_share: Option<usize>,
}

/// One kind.
pub struct Alternative {
    /// Its `kind`.
    pub name: &'static str,
    /// Its aliases.
    pub aliases: &'static [&'static str],
    /// Its documentation.
    pub doc: &'static str,
    /// Its keys beside `kind`.
    pub parameters: &'static [Parameter],
}

/// The tables of a file beside the keys before the first one: name and meaning.
pub const SECTIONS: &[(&str, &str)] = &[
    (
        "hosts",
        "The hosts by name, each a table: `ottawa = {}`, or `[hosts.ottawa]` with keys. The keys give the \
         processing costs of a host in `sim`; without keys, it has none. In `wire` and `live` hosts are real: only \
         `agent` applies, in `live`.",
    ),
    (
        "link",
        "The links between hosts, `[link.NAME]`. They apply to `sim` and `wire`; `live` uses the network as it is.",
    ),
    ("flow", "The flows, `[flow.NAME]`: their source, sink, traffic and transport."),
    (
        "bundle",
        "Flows to be counted together, `[bundle.NAME]`: in addition to the figures of each flow, there are those of \
         the bundle, and of the connections of each transport in it. The flows may connect different hosts over \
         different links: `network-throughput` then counts each flow on its own first link.",
    ),
    (
        "sweep",
        "The varied keys: each a dotted key and the list of its values. Every combination is a point, which is \
         measured.",
    ),
    ("limits", "The acceptable results: a figure of a flow or a bundle, and a condition."),
];

const EXPERIMENT: &[Parameter] = &[
    Parameter {
        name: "name",
        kind: Kind::Text,
        default: Preset::Required,
        doc: "Name of the experiment in lists and reports.",
    },
    Parameter {
        name: "duration",
        kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(7 * 86_400) },
        default: Preset::Required,
        doc: "Time for which sources send, in every repetition of every point.",
    },
    Parameter {
        name: "drain",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) },
        default: Preset::Text("1 s"),
        doc: "Time for which receivers wait for late messages after `duration`. Messages that have not arrived by \
              then are lost, or unfinished if they may still be in transit.",
    },
    Parameter {
        name: "repetitions",
        kind: Kind::Integer { min: 1, max: 1000 },
        default: Preset::Text("1"),
        doc: "Number of times that every point is measured. With two or more, figures have a confidence interval.",
    },
    Parameter {
        name: "seed",
        // TOML's integers are signed.
        kind: Kind::Integer { min: 0, max: i64::MAX as u64 },
        default: Preset::Text("1"),
        doc: "Seed of all random numbers. The same seed gives the same simulation, to the byte.",
    },
];

/// Documentation of `to`.
const SINKS_DOC: &str = "Host of the sinks, or of the reflector; or a list of hosts. With several, `[\"b\", \
                         \"c\"]`, every message is sent once, over the shortest paths, and each sink is measured \
                         separately; this needs `udp` or a multicast of `xtp`. With none, `[]`, `udp` sends to a \
                         station that does not exist, on the only link of `from` or the link in `path`. A table \
                         instead of a name sets the keys of one sink, listed below: `{ host = \"c\", join = \"2 s\" \
                         }`.";

/// Keys of one sink, beside its `host`.
pub const SINK: &[Parameter] = &[
    Parameter {
        name: "join",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(7 * 86_400) },
        default: Preset::Text("0 s"),
        doc: "Time at which the sink joins, since the start of the run. From then on, the links that lead to it carry the \
              packets of a flow with several sinks; the time that IGMP and PIM need is not simulated. With `udp` and \
              multicasts, in `sim` only.",
    },
    Parameter {
        name: "leave",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(7 * 86_400) },
        default: Preset::Absent,
        doc: "Time at which the sink leaves. From then on, links that lead to no other sink carry no more packets of a \
              flow with several sinks. With `udp` and multicasts, in `sim` only.",
    },
    Parameter {
        name: "fail",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(7 * 86_400) },
        default: Preset::Absent,
        doc: "Time at which the sink's host fails, without leaving. In `sim` only.",
    },
];

/// The words of `framing`.
const FRAMINGS: &[Choice] = &[
    Choice { name: "header", doc: "In front of every message, which becomes 40 bytes larger." },
    Choice {
        name: "none",
        doc: "Nowhere, for `sim` only. The transport must repair loss and keep the order.",
    },
];

/// The key of a host that shares another's processor.
pub(crate) const PROCESSOR: &str = "processor";

/// The key of the agent on a host.
pub(crate) const AGENT: &str = "agent";
/// The key of the kernel that a host is.
pub(crate) const KERNEL: &str = "kernel";
/// The key of the program on it.
pub(crate) const RUN: &str = "run";

/// The key of a host's place in the drawing.
pub const POSITION: &str = "position";

/// How far from its origin anything stands in the drawing.
pub const FARTHEST: f64 = 1e6;

/// A text in a profile of hosts or links that nothing reads.
pub(crate) const PROFILE_DOC: &str = "doc";

const FLOW: &[Parameter] = &[
    Parameter {
        name: "channels",
        kind: Kind::Integer { min: 1, max: 65_535 },
        default: Preset::Text("1"),
        doc: "Voice or audio channels of each member; each has its own messages and sequence numbers.",
    },
    Parameter {
        name: "count",
        kind: Kind::Integer { min: 0, max: 100_000 },
        default: Preset::Text("1"),
        doc: "Number of members of the flow: identical conversations, each with its own source. 0: none.",
    },
    Parameter {
        name: "reflect",
        kind: Kind::Flag,
        default: Preset::Text("false"),
        doc: "Whether `to` sends every message back, so that latency is the round trip, measured on one clock. If \
              the source requests a reply of a different size, that reply is sent instead.",
    },
    Parameter {
        name: "playout",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(60) },
        default: Preset::Absent,
        doc: "Delay of the receiver's playout buffer. A message is late if it arrives after the arrival of its \
              channel's first received message, plus this delay, plus the difference of their due times. Without \
              this key no message is late. Not together with `playback`.",
    },
    Parameter {
        name: "start",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(7 * 86_400) },
        default: Preset::Text("0 s"),
        doc: "Earliest start of the sources, since the start of the run.",
    },
    Parameter {
        name: "stagger",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(86_400) },
        default: Preset::Text("0 s"),
        doc: "With `count`, the delay between the starts of successive members, as when sessions are set up one by \
              one.",
    },
    Parameter {
        name: "priority",
        kind: Kind::Integer { min: 0, max: 65_535 },
        default: Preset::Text("0"),
        doc: "Priority of the flow's packets in queues that support priorities; smaller is more urgent.",
    },
    Parameter {
        name: "effort",
        kind: Kind::Number { min: 0.0, max: 1000.0 },
        default: Preset::Text("1"),
        doc: "Processor time of the flow's messages and packets, as a multiple of the hosts' costs (`send-message`, \
              `send-packet`, `send-byte`, `receive-packet`, `receive-message`), because protocols differ. In `sim` \
              only.",
    },
    Parameter {
        name: "framing",
        kind: Kind::Choice(FRAMINGS),
        default: Preset::Absent,
        doc: "Place of the measurement header of 40 bytes, which identifies a message. Without this key, the header \
              is the first part of the message, which keeps its size; messages of less than 40 bytes have a short \
              header of 16 bytes, and messages of less than 16 bytes have that header in front.",
    },
    Parameter {
        name: "audio",
        kind: Kind::Flag,
        default: Preset::Absent,
        doc: "Whether the received audio is written to one WAV file per channel. Without this key, it is written if \
              the source plays a file.",
    },
];

/// With the transports of this version.
impl Default for Schema {
    fn default() -> Schema {
        Schema::with(TRANSPORTS)
    }
}

impl Schema {
    /// Gathers the registries, with these transports.
    pub fn with(transports: &'static [&'static TransportKind]) -> Schema {
        let mut flow = vec![
            Key::new("from", Shape::Host, Preset::Required, "Host of the sources."),
            Key::new("to", Shape::Sinks, Preset::Required, SINKS_DOC),
            Key::new(
                "transport",
                one_of(transports.iter().map(|kind| transport(kind)).collect()),
                Preset::Required,
                "The transport, by name or with options.",
            ),
            Key::new(
                "source",
                one_of(sources()),
                Preset::Required,
                "The traffic model, by name or with its keys.",
            ),
        ];
        flow.extend(FLOW.iter().map(Key::from));
        flow.push(Key::new(
            "path",
            Shape::Links,
            Preset::Absent,
            "The links from `from` to `to`, in order; the return path is the reverse. Without this key, the path \
             with the fewest links, which must be the only one of its length.",
        ));
        flow.push(Key::new(
            "playback",
            one_of(playback::kinds()),
            Preset::Absent,
            "The playback of received voice, by name or with its keys, which measures deadlines, margins, silences \
             and start-up delays. Without this key nothing is played. Not together with `playout`.",
        ));
        flow.push(Key::new(
            "codec",
            one_of(codec::kinds()),
            Preset::Absent,
            "The codec of the speech and its concealment of losses: with a `playout` or a `playback`, the quality \
             of a conversation is estimated by ITU-T G.107. The codec does not change the messages of the source. \
             Without this key, `g711` with the source `voice`; with other sources, no quality is estimated.",
        ));
        let mut experiment: Vec<Key> = EXPERIMENT.iter().map(Key::from).collect();
        experiment.push(Key::new(
            "until",
            Shape::Flow,
            Preset::Absent,
            "The flow that ends the run: when its sources have sent everything and received their replies, all \
             sources stop and the drain time starts. `duration` is then the maximum.",
        ));
        let mut host = vec![Key::new(
            COUNT,
            Shape::Plain(Kind::Integer { min: 1, max: MOST_ALIKE }),
            Preset::Absent,
            "Number of identical hosts: `phone = { count = 50 }` expands to `phone-1` to `phone-50`. A link with \
             two ends or a flow that names `phone` expands to one for each of them, `up-1` to `up-50`; a medium \
             with many stations, and a list of sinks, contains all of them. If a link or flow names two such hosts, \
             hosts with the same number are connected. Without this key, this is one host with this name.",
        )];
        host.push(Key::new(
            "profile",
            Shape::Plain(Kind::File),
            Preset::Absent,
            "A TOML file with the costs of a kind of machine: any of the keys below, and optionally a text `doc`. \
             Keys in this table override those in the file.",
        ));
        host.push(Key::new(
            PROCESSOR,
            Shape::Host,
            Preset::Absent,
            "The host whose processor this host shares, like a second program on the same machine; all costs are \
             those of that host. Without this key, the host has its own processor.",
        ));
        host.push(Key::new(
            AGENT,
            Shape::Plain(Kind::Text),
            Preset::Absent,
            "Address of the host's agent, for `live`: `host:port`, or `host` for port 4781. The agent (see \
             `trunkline agent`) measures the flows from and to this host; all hosts with flows need one. Without \
             this key, `live` measures within this machine.",
        ));
        host.push(Key::new(
            KERNEL,
            Shape::Plain(Kind::Text),
            Preset::Absent,
            "For `sim` on Linux: the host is this Linux kernel in virtual time, a User-Mode Linux. The value is the \
             name of a kernel that `trunkline kernel build` has built, or a path relative to this file. Its packets cross the file's links. Flows start and end at other \
             hosts. `wire` and `live` refuse the key.",
        ));
        host.push(Key::new(
            RUN,
            Shape::Plain(Kind::Text),
            Preset::Absent,
            "For a host with a `kernel`: a command line for its shell, such as `iperf3 -s`. It starts with the \
             simulation in the folder of this file, reads the files of this machine, and reaches other hosts by name. \
             The run keeps its output.",
        ));
        host.push(Key::new(
            POSITION,
            Shape::Position,
            Preset::Absent,
            "Position of the host in the page's drawing, `[x, y]` in pixels, to the right and downwards. Without \
             this key, the position is computed from the links.",
        ));
        host.extend(host::PARAMETERS.iter().map(Key::from));
        Schema {
            experiment,
            host,
            link: vec![
                Key::new(
                    "between",
                    Shape::Hosts,
                    Preset::Required,
                    "The two hosts; forward is from the first to the second. On a medium for more hosts, its \
                     stations in order.",
                ),
                Key::new(
                    link_profile::PROFILE,
                    Shape::Plain(Kind::ChoiceOrFile(link_profile::NAMES)),
                    Preset::Absent,
                    "A network fitted to a published measurement, or a TOML file with keys of a link, such as \
                     `home.toml`: see [profiles of links](#profiles-of-links). Keys in this table override its keys.",
                ),
                Key::new(
                    link_profile::DRAWS,
                    Shape::Plain(Kind::Integer { min: 1, max: 1000 }),
                    Preset::Absent,
                    "Of the links that explain a learned path as well as its `profile` does, this many take the place of \
                     the profile, one after the other, as on an axis of the sweep: `home.draws/01.toml` and so on beside \
                     `home.toml`. See [draws of a learned path](#draws-of-a-learned-path).",
                ),
                Key::new(
                    "medium",
                    Shape::Medium(media()),
                    medium::KINDS.first().map_or(Preset::Required, |first| Preset::Text(first.name)),
                    "The medium that carries the packets. Its keys are in the same table.",
                ),
                Key::new(
                    "forward",
                    Shape::Direction,
                    Preset::Absent,
                    "Keys for the direction from the first host to the second only: `[link.NAME.forward]`.",
                ),
                Key::new(
                    "backward",
                    Shape::Direction,
                    Preset::Absent,
                    "Keys for the direction from the second host to the first only: `[link.NAME.backward]`.",
                ),
                Key::new(
                    "station",
                    Shape::Stations,
                    Preset::Absent,
                    "On a medium for more than two hosts: keys for the packets that one of them sends, \
                     `[link.NAME.station.HOST]`.",
                ),
            ],
            shared: medium::KINDS.iter().map(|kind| kind.shared.iter().map(Key::from).collect()).collect(),
            direction: medium::KINDS.iter().map(|kind| direction(kind.parameters)).collect(),
            flow,
            bundle: vec![Key::new(
                "flows",
                Shape::Flows,
                Preset::Required,
                "The flows of the bundle, each with one sink. A flow belongs to at most one bundle. Of the flows \
                 with the same transport, either all `reflect` or none.",
            )],
            transports,
        }
    }
}

/// The keys of one direction of a link, or of one station.
fn direction(medium: &'static [Parameter]) -> Vec<Key> {
    let mut keys: Vec<Key> = medium.iter().map(Key::from).collect();
    keys.push(Key::new(
        "queue",
        one_of(queues()),
        queue::KINDS.first().map_or(Preset::Required, |first| Preset::Text(first.name)),
        "The queue in front of the line, by name or with its keys.",
    ));
    keys.push(Key::new(
        "loss",
        Shape::OneOf(OneOf { alternatives: losses(), plain_share: Some(0) }),
        Preset::Absent,
        "Random loss after transmission: a share such as `\"1 %\"`, or a loss model. Without this key, there is no \
         loss.",
    ));
    keys.extend(impairment::PARAMETERS.iter().map(Key::from));
    keys
}

fn one_of(alternatives: Vec<Alternative>) -> Shape {
    Shape::OneOf(OneOf { alternatives, plain_share: None })
}

fn transport(kind: &'static TransportKind) -> Alternative {
    Alternative { name: kind.name, aliases: &[], doc: kind.doc, parameters: kind.parameters }
}

fn sources() -> Vec<Alternative> {
    let alternative = |kind: &'static trunkline_traffic::SourceKind| Alternative {
        name: kind.name,
        aliases: kind.aliases,
        doc: kind.doc,
        parameters: kind.parameters,
    };
    trunkline_traffic::KINDS.iter().map(alternative).collect()
}

fn queues() -> Vec<Alternative> {
    let alternative = |kind: &'static queue::QueueKind| Alternative {
        name: kind.name,
        aliases: &[],
        doc: kind.doc,
        parameters: kind.parameters,
    };
    queue::KINDS.iter().map(alternative).collect()
}

fn media() -> Vec<Alternative> {
    let alternative = |kind: &'static medium::MediumKind| Alternative {
        name: kind.name,
        aliases: &[],
        doc: kind.doc,
        parameters: kind.parameters,
    };
    medium::KINDS.iter().map(alternative).collect()
}

fn losses() -> Vec<Alternative> {
    let alternative = |kind: &'static impairment::LossKind| Alternative {
        name: kind.name,
        aliases: &[],
        doc: kind.doc,
        parameters: kind.parameters,
    };
    impairment::LOSS_KINDS.iter().map(alternative).collect()
}

impl Key {
    fn new(name: &'static str, shape: Shape, default: Preset, doc: &'static str) -> Key {
        Key { name, shape, default, doc }
    }
}

impl From<&'static Parameter> for Key {
    fn from(parameter: &'static Parameter) -> Key {
        Key::new(parameter.name, Shape::Plain(parameter.kind), parameter.default, parameter.doc)
    }
}

impl OneOf {
    /// The alternative of that name or alias.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.alternatives.iter().position(|a| a.name == name || a.aliases.contains(&name))
    }

    /// Every word that names one.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.alternatives.iter().flat_map(|a| core::iter::once(a.name).chain(a.aliases.iter().copied()))
    }
}

/// Reads a value as the check of a file does: `literal` is TOML, such as `"10 ms"` in quotation marks. For tests of forms.
///
/// # Errors
/// The sentence for the user.
#[doc(hidden)]
pub fn accepts(key: &str, kind: &Kind, literal: &str) -> Result<(), String> {
    let told = |remarks: Vec<crate::problem::Remark>| -> String {
        remarks.into_iter().map(|remark| remark.message).collect()
    };
    let root = crate::tree::parse(&format!("v = {literal}")).map_err(told)?;
    let node = root.table().and_then(|table| table.node("v")).ok_or("no value")?;
    crate::quantity::value(key, node, kind, &crate::files::Shelf::new(&())).map(drop).map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::default_value;

    fn defaults(schema: &Schema) -> Vec<(&'static str, Kind, &'static str)> {
        let mut found = Vec::new();
        let tables = [&schema.experiment, &schema.host, &schema.link, &schema.flow]
            .into_iter()
            .chain(&schema.shared)
            .chain(&schema.direction);
        for key in tables.flatten() {
            match (&key.shape, key.default) {
                (Shape::Plain(kind), Preset::Text(text)) => found.push((key.name, *kind, text)),
                (Shape::OneOf(one_of), default) => {
                    if let Preset::Text(word) = default {
                        assert!(
                            one_of.find(word).is_some(),
                            "the default of `{}` is no kind of it",
                            key.name
                        );
                    }
                    for parameter in one_of.alternatives.iter().flat_map(|alternative| alternative.parameters)
                    {
                        if let Preset::Text(text) = parameter.default {
                            found.push((parameter.name, parameter.kind, text));
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }

    #[test]
    fn every_default_is_of_its_kind_and_in_its_range() {
        let defaults = defaults(&Schema::default());
        assert!(defaults.len() > 10, "{}", defaults.len());
        for (name, kind, text) in defaults {
            assert!(default_value(text, &kind).is_ok(), "`{name}`: {text}: {:?}", default_value(text, &kind));
        }
    }

    #[test]
    fn no_word_names_two_kinds_and_no_key_stands_twice() {
        let schema = Schema::default();
        for (shared, direction) in schema.shared.iter().zip(&schema.direction) {
            let mut names: Vec<&str> =
                schema.link.iter().chain(shared).chain(direction).map(|key| key.name).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        }
        for key in schema.flow.iter().chain(schema.direction.iter().flatten()) {
            let Shape::OneOf(one_of) = &key.shape else { continue };
            let mut words: Vec<&str> = one_of.words().collect();
            words.sort_unstable();
            assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "{words:?}");
        }
    }
}
