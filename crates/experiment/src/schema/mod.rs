//! What an experiment file may say, as data. Reading, suggestions, sweepable keys, the reference page and the JSON
//! schema all come from here, and from the registries of queues, media, impairments and sources that it gathers.

pub(crate) mod codec;
pub(crate) mod distribution;
mod playback;
pub(crate) mod transport;

use crate::alike::{COUNT, MOST_ALIKE};
use crate::link_profile;
use trunkline_core::Duration;
use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_network::{host, impairment, medium, queue};

/// Everything that a file may say.
pub(crate) struct Schema {
    /// Keys before the first table.
    pub(crate) experiment: Vec<Key>,
    /// Keys of `[hosts.NAME]`: the profile, and the parameters that a profile may hold too.
    pub(crate) host: Vec<Key>,
    /// Keys of `[link.NAME]` that belong to the link as a whole.
    pub(crate) link: Vec<Key>,
    /// Keys of `[link.NAME]` that belong to the medium as a whole, by medium.
    pub(crate) shared: Vec<Vec<Key>>,
    /// Keys of one direction of a link or of one station, by medium; also allowed in `[link.NAME]`, for all of them.
    pub(crate) direction: Vec<Vec<Key>>,
    /// Keys of `[flow.NAME]`.
    pub(crate) flow: Vec<Key>,
    /// Keys of `[bundle.NAME]`.
    pub(crate) bundle: Vec<Key>,
}

/// One key of a table.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) default: Preset,
    pub(crate) doc: &'static str,
}

/// What stands behind a key.
pub(crate) enum Shape {
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
pub(crate) struct OneOf {
    pub(crate) alternatives: Vec<Alternative>,
    /// The alternative whose first key a plain share stands for.
    pub(crate) plain_share: Option<usize>,
}

/// One kind.
pub(crate) struct Alternative {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) doc: &'static str,
    pub(crate) parameters: &'static [Parameter],
}

/// The tables of a file beside the keys before the first one: name and meaning.
pub(crate) const SECTIONS: &[(&str, &str)] = &[
    (
        "hosts",
        "The hosts by name, each a table: `ottawa = {}`, or `[hosts.ottawa]` with keys. They say what a host costs in \
         `sim`; without any it costs nothing. In `wire` and `live` hosts are real: only `agent` counts there, in `live`.",
    ),
    (
        "link",
        "The links between hosts, `[link.NAME]`. They apply to `sim` and `wire`; `live` uses the network as it is.",
    ),
    ("flow", "The flows, `[flow.NAME]`: who sends what to whom, over which transport."),
    (
        "bundle",
        "Flows to be counted together, `[bundle.NAME]`: beside the figures of each flow there are those of its bundle, and \
         of the connections of each transport in it. Its flows may go between different hosts, over different links: \
         `network-throughput` is then what each takes of its own first link.",
    ),
    (
        "sweep",
        "What is varied: a dotted key and the list of its values. Every combination is a point that is measured.",
    ),
    ("limits", "What counts as good enough: a figure of a flow or a bundle and a condition."),
];

const EXPERIMENT: &[Parameter] = &[
    Parameter {
        name: "name",
        kind: Kind::Text,
        default: Preset::Required,
        doc: "What the experiment is called in lists and reports.",
    },
    Parameter {
        name: "duration",
        kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(7 * 86_400) },
        default: Preset::Required,
        doc: "How long sources send, in every repetition of every point.",
    },
    Parameter {
        name: "drain",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) },
        default: Preset::Text("1 s"),
        doc: "How long receivers wait for stragglers after that; what has not arrived then is lost, or unfinished if it may still be under way.",
    },
    Parameter {
        name: "repetitions",
        kind: Kind::Integer { min: 1, max: 1000 },
        default: Preset::Text("1"),
        doc: "How often every point is measured. From two on, figures have a confidence interval.",
    },
    Parameter {
        name: "seed",
        // TOML's integers are signed.
        kind: Kind::Integer { min: 0, max: i64::MAX as u64 },
        default: Preset::Text("1"),
        doc: "From which all random draws derive. The same seed gives the same simulation, to the byte.",
    },
];

/// What is said of `to`.
const SINKS_DOC: &str = "Host of the sinks, or of the reflector; or a list. To several, `[\"b\", \"c\"]`, every message is sent once, over \
     the shortest ways, and each sink is measured by itself: that needs `udp` or a multicast of `xtp`. Without any, `[]`, \
     `udp` sends to a station that does not exist, on the only link that leaves `from` or the one that `path` names. What \
     is different at one sink stands in a table in its place, `{ host = \"c\", join = \"2 s\" }`, with the keys below.";

/// Keys of one sink, beside its `host`.
pub(crate) const SINK: &[Parameter] = &[
    Parameter {
        name: "join",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(7 * 86_400) },
        default: Preset::Text("0 s"),
        doc: "When it begins to listen, from the beginning of the run. With `udp` and multicasts, in `sim` only.",
    },
    Parameter {
        name: "leave",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(7 * 86_400) },
        default: Preset::Absent,
        doc: "When it says goodbye. With `udp` and multicasts, in `sim` only.",
    },
    Parameter {
        name: "fail",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(7 * 86_400) },
        default: Preset::Absent,
        doc: "When its host falls silent, without a goodbye. In `sim` only.",
    },
];

/// The words of `framing`.
const FRAMINGS: &[Choice] = &[
    Choice { name: "header", doc: "In front of every message: it is 40 bytes larger." },
    Choice {
        name: "none",
        doc: "Nowhere, for `sim` only. The transport must repair loss and keep the order.",
    },
];

/// The key of a host that shares another's processor.
pub(crate) const PROCESSOR: &str = "processor";

/// The key of the agent on a host.
pub(crate) const AGENT: &str = "agent";

/// The key of a host's place in the drawing.
pub(crate) const POSITION: &str = "position";

/// How far from its origin anything stands in the drawing.
pub(crate) const FARTHEST: f64 = 1e6;

/// A text in a profile of hosts that nothing reads.
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
        doc: "How many members the flow has: conversations that are alike, each with its own source. None with 0.",
    },
    Parameter {
        name: "reflect",
        kind: Kind::Flag,
        default: Preset::Text("false"),
        doc: "Whether `to` sends every message back: latency is then measured as round trip, on one clock. To a message \
              for which the source wants an answer of another size, that answer comes back instead.",
    },
    Parameter {
        name: "playout",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(60) },
        default: Preset::Absent,
        doc: "Delay of the receiver's playout buffer. A message is late if it arrives after the first received message \
              of its channel plus this plus the difference of their due times. Without this key nothing is late.",
    },
    Parameter {
        name: "start",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(7 * 86_400) },
        default: Preset::Text("0 s"),
        doc: "When the sources may start, from the beginning of the run.",
    },
    Parameter {
        name: "stagger",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(86_400) },
        default: Preset::Text("0 s"),
        doc: "With `count`, how much later than the one before each member starts: sessions that are set up one by one.",
    },
    Parameter {
        name: "priority",
        kind: Kind::Integer { min: 0, max: 65_535 },
        default: Preset::Text("0"),
        doc: "Urgency of its packets in queues that know priorities; smaller is more urgent.",
    },
    Parameter {
        name: "effort",
        kind: Kind::Number { min: 0.0, max: 1000.0 },
        default: Preset::Text("1"),
        doc: "How much processor time its messages and packets take, as a multiple of what the hosts say of them \
              (`send-message`, `send-packet`, `send-byte`, `receive-packet`, `receive-message`): protocols differ in it. \
              In `sim` only.",
    },
    Parameter {
        name: "framing",
        kind: Kind::Choice(FRAMINGS),
        default: Preset::Absent,
        doc: "Where the header of 40 bytes stands by which a message is found and measured. Without this key it is the first \
              part of the message, which keeps its size; of messages of less than 40 bytes it is a short one of 16 bytes, \
              which messages of less than 16 bytes have in front.",
    },
    Parameter {
        name: "audio",
        kind: Kind::Flag,
        default: Preset::Absent,
        doc: "Whether the received audio is written as a WAV file per channel. Without this key it is if the source \
              plays a file.",
    },
];

impl Schema {
    /// Gathers the registries.
    pub(crate) fn new() -> Schema {
        let mut flow = vec![
            Key::new("from", Shape::Host, Preset::Required, "Host of the sources."),
            Key::new("to", Shape::Sinks, Preset::Required, SINKS_DOC),
            Key::new(
                "transport",
                one_of(transports()),
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
            "The links from `from` to `to`, in their order; the way back is the reverse. Without this key the path of \
             the fewest links, which must be the only one of its length.",
        ));
        flow.push(Key::new(
            "playback",
            one_of(playback::kinds()),
            Preset::Absent,
            "What plays received voice, by name or with its keys: deadlines, margins, silences and start-up delays are \
             then measured. Without this key nothing is played.",
        ));
        flow.push(Key::new(
            "codec",
            one_of(codec::kinds()),
            Preset::Absent,
            "What codes the speech, and conceals what is missing of it: with a `playout` or a `playback`, the quality of a \
             conversation is estimated by ITU-T G.107. The messages stay as the source makes them. Absent: `g711` of the \
             source `voice`; of others nobody judges the quality.",
        ));
        let mut experiment: Vec<Key> = EXPERIMENT.iter().map(Key::from).collect();
        experiment.push(Key::new(
            "until",
            Shape::Flow,
            Preset::Absent,
            "The flow with which the sending ends: when its sources have sent everything and have their answers, all \
             sources stop and the drain time begins. `duration` is then the longest that this may take.",
        ));
        let mut host = vec![Key::new(
            COUNT,
            Shape::Plain(Kind::Integer { min: 1, max: MOST_ALIKE }),
            Preset::Absent,
            "How many hosts this one stands for: `phone = { count = 50 }` is `phone-1` to `phone-50`. A link of two ends or a flow \
             that names `phone` is made for each of them, `up-1` to `up-50`; a medium of many stations, and a list of sinks, has \
             all of them. Where a link or flow names two such hosts, those of the same number are joined. Without this key it is \
             one host of this name.",
        )];
        host.push(Key::new(
            "profile",
            Shape::Plain(Kind::File),
            Preset::Absent,
            "A TOML file with any of the keys below, and a text `doc` if it likes: the costs of a kind of machine. Keys \
             beside this one override it.",
        ));
        host.push(Key::new(
            PROCESSOR,
            Shape::Host,
            Preset::Absent,
            "The host whose processor this one shares, as a second program on the same machine does: all costs are then \
             those of that host. Without this key it has a processor of its own.",
        ));
        host.push(Key::new(
            AGENT,
            Shape::Plain(Kind::Text),
            Preset::Absent,
            "Where the host's agent listens, for `live`: `host:port`, or a host alone for port 4781. The agent (see \
             `trunkline agent`) then measures the flows from and to this host, and all hosts with flows need one. Without \
             this key `live` measures within this machine.",
        ));
        host.push(Key::new(
            POSITION,
            Shape::Position,
            Preset::Absent,
            "Where the host stands in the drawing of the page, `[x, y]` in pixels, to the right and downwards. Without \
             this key a place is found from the links.",
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
                    "The two hosts; forward is from the first to the second. On a medium for more, its stations in their \
                     order.",
                ),
                Key::new(
                    link_profile::PROFILE,
                    Shape::Plain(Kind::Choice(link_profile::NAMES)),
                    Preset::Absent,
                    "A measured network, whose keys stand below under [profiles of links](#profiles-of-links); keys \
                     beside this one override it.",
                ),
                Key::new(
                    "medium",
                    Shape::Medium(media()),
                    medium::KINDS.first().map_or(Preset::Required, |first| Preset::Text(first.name)),
                    "What carries the packets. The keys of the medium stand beside this one.",
                ),
                Key::new(
                    "forward",
                    Shape::Direction,
                    Preset::Absent,
                    "Keys of a direction that hold from the first host to the second only: `[link.NAME.forward]`.",
                ),
                Key::new(
                    "backward",
                    Shape::Direction,
                    Preset::Absent,
                    "Keys of a direction that hold from the second host to the first only: `[link.NAME.backward]`.",
                ),
                Key::new(
                    "station",
                    Shape::Stations,
                    Preset::Absent,
                    "On a medium for more than two hosts: keys that hold for what one of them sends, \
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
                "Its flows, each with one sink. A flow is in one bundle at most. Those of the same transport either all \
                 `reflect` or none.",
            )],
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
        "Random loss after transmission: a share such as `\"1 %\"`, or a loss model. Without this key none.",
    ));
    keys.extend(impairment::PARAMETERS.iter().map(Key::from));
    keys
}

fn one_of(alternatives: Vec<Alternative>) -> Shape {
    Shape::OneOf(OneOf { alternatives, plain_share: None })
}

fn transports() -> Vec<Alternative> {
    let alternative = |kind: &'static transport::TransportKind| Alternative {
        name: kind.name,
        aliases: &[],
        doc: kind.doc,
        parameters: kind.parameters,
    };
    transport::KINDS.iter().map(alternative).collect()
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
    pub(crate) fn words(&self) -> impl Iterator<Item = &'static str> {
        self.alternatives.iter().flat_map(|a| core::iter::once(a.name).chain(a.aliases.iter().copied()))
    }
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
        let defaults = defaults(&Schema::new());
        assert!(defaults.len() > 10, "{}", defaults.len());
        for (name, kind, text) in defaults {
            assert!(default_value(text, &kind).is_ok(), "`{name}`: {text}: {:?}", default_value(text, &kind));
        }
    }

    #[test]
    fn no_word_names_two_kinds_and_no_key_stands_twice() {
        let schema = Schema::new();
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
