//! What an experiment file says, after validation: every name resolved, every unit in its type.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trunkline_core::schema::{Value, Values};
use trunkline_core::{Bytes, Duration, FlowId, PacketId, Rate, Time};
use trunkline_metrics::figures::FigureKind;
use trunkline_metrics::{BundleMeta, ConnectionSample, FlowMeta};
pub use trunkline_network::{Impairments, Loss};
pub use trunkline_traffic::{Answer, CustomSource};
use trunkline_transport::framing::{Cover, HEADER_LENGTH, Short, short};

use crate::transport::Transport;

/// One swept key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// `flow.voice.count`.
    pub key: String,
    /// The values as written, in the file's order: `16 KiB`.
    pub values: Vec<String>,
    /// The same as numbers for a figure's axis, in `unit`; `None` if they are words.
    pub numbers: Option<Vec<f64>>,
    /// The unit of `numbers`: `KiB`, `ms`, `kbit/s`, or empty for counts.
    pub unit: String,
}

impl Axis {
    /// True if its values are draws of learned paths, by their numbers.
    pub fn is_draws(&self) -> bool {
        self.key.split(',').all(|key| is_draws(key.trim()))
    }
}

/// True for the key of an axis of draws: `link.home.draws`.
pub(crate) fn is_draws(key: &str) -> bool {
    matches!(key.split('.').collect::<Vec<_>>()[..], ["link", _, "draws"])
}

/// What a driver runs: one point of an experiment.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// How long sources send.
    pub duration: Duration,
    /// How long receivers wait for stragglers after that.
    pub drain: Duration,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The links.
    pub links: Vec<Link>,
    /// The flows of the file. Members are numbered on: flow `f`'s member `m` is `flows[f].first + m`.
    pub flows: Vec<Flow>,
    /// Which of them are counted together.
    pub bundles: Vec<BundleMeta>,
    /// Index of the flow with which the measurement ends: when all its sources are over (nothing is due, no answer is
    /// awaited), the others stop too and the drain time begins. At the latest that is after `duration`.
    pub until: Option<usize>,
}

/// The key of a custom source or loss model in the file. Shown as ``flow `voice`, source``.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomKey<'s>(pub [&'s str; 3]);

impl core::fmt::Display for CustomKey<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let CustomKey([of, name, key]) = self;
        write!(f, "{of} `{name}`, {key}")
    }
}

impl Scenario {
    /// The custom sources and loss models: the key of each, and the reason why it cannot be used, if there is one.
    pub fn custom(&self) -> impl Iterator<Item = (CustomKey<'_>, Option<String>)> {
        let flows = self.flows.iter().filter(|flow| flow.source.is_custom());
        let sources =
            flows.map(|flow| (CustomKey(["flow", &flow.meta.name, "source"]), flow.source.custom.problem()));
        let losses = self.links.iter().flat_map(|link| {
            let custom = link.directions.iter().filter_map(|direction| match &direction.impairments.loss {
                Loss::Custom(custom) => Some(custom),
                _ => None,
            });
            custom.map(|custom| (CustomKey(["link", &link.name, "loss"]), custom.problem()))
        });
        sources.chain(losses)
    }

    /// The longest that a run of it takes: it is shorter if it ends with a flow.
    pub fn length(&self) -> Duration {
        self.duration + self.drain
    }

    /// The reason why a custom source or loss model cannot be used, or what it has drawn, if there is one.
    pub fn custom_problem(&self) -> Option<String> {
        self.custom().find_map(|(key, problem)| Some(format!("{key}: {}", problem?)))
    }
}

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// What it costs: a value for every parameter of [`trunkline_network::host::PARAMETERS`]. Only `sim` asks.
    pub values: Values,
    /// The profile that they come from but for those that the file gives itself, as written.
    pub profile: Option<String>,
    /// The host whose processor it works with: itself, or another that it shares a machine with.
    pub processor: usize,
    /// Where its agent listens, `host:port`, if it has one. Only `live` asks.
    pub agent: Option<String>,
    /// The Linux kernel that it is, if it is one. Only `sim` asks.
    pub kernel: Option<Kernel>,
}

/// A host that is a Linux kernel in virtual time: User-Mode Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel, as written: a path relative to the experiment file, or the name of one that was built.
    pub file: String,
    /// The program that runs on it, a line for the shell.
    pub run: Option<String>,
}

/// A link between two hosts, or a medium with more stations.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The hosts at its ports, in their order.
    pub between: Vec<usize>,
    /// Index of its medium in the registry of `trunkline-network`.
    pub medium: usize,
    /// Values of the parameters of the medium as a whole.
    pub shared: Values,
    /// What holds for packets that enter at each port: of a link, from port 0 to port 1 and back.
    pub directions: Vec<Direction>,
}

/// One direction of a link, or one station of a medium.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Bits per second on the line; the most if they change over time.
    pub rate: Rate,
    /// Propagation delay; the shortest if it changes over time.
    pub delay: Duration,
    /// Largest difference of the delay between two moments, its jitter included if that has a memory.
    pub wander: Duration,
    /// The largest packet at the network layer.
    pub mtu: Bytes,
    /// Framing added to every packet on the line.
    pub overhead: Bytes,
    /// All values of the medium's parameters, those above among them.
    pub values: Values,
    /// Index of the queue in the registry of `trunkline-network`, with its values.
    pub queue: (usize, Values),
    /// What else happens to packets.
    pub impairments: Impairments,
}

/// One flow of the file: `count` members that are alike.
#[derive(Clone, Debug)]
pub struct Flow {
    /// What recorders need to know: name, members, channels, what is measured ...
    pub meta: FlowMeta,
    /// Host of the sources.
    pub from: usize,
    /// The sinks or the reflectors.
    pub to: Vec<Sink>,
    /// Without sinks: the link on which its packets go to a station that does not exist, and the port at which they enter
    /// it.
    pub nowhere: Option<(usize, u16)>,
    /// The transport.
    pub transport: Transport,
    /// The source.
    pub source: Source,
    /// Whether the sink sends every message back, so that latency is measured as round trip.
    pub reflect: bool,
    /// When the first member starts.
    pub start: Duration,
    /// How much later than the one before each other member does.
    pub stagger: Duration,
    /// Priority of its packets in queues that know priorities; smaller is more urgent.
    pub priority: u16,
    /// How much processor time its messages and packets take, as a multiple of what the hosts say. Only `sim` asks.
    pub effort: f64,
    /// What stands in front of every message.
    pub framing: Framing,
    /// Of a flow that is made for each of several hosts: where each of them begins and ends, with as many members each.
    /// `from`, `to` and `nowhere` are those of the first. Empty of any other flow.
    pub each: Vec<Ends>,
    /// Which of the flows that are alike this is, from 0, and how many they are: of a flow of [`Scenario::singles`].
    pub alike: (u32, u32),
}

/// Where one of several flows that are alike begins and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    /// Host of the sources.
    pub from: usize,
    /// The sinks or the reflectors.
    pub to: Vec<Sink>,
    /// Without sinks: the link on which its packets go, and the port at which they enter it.
    pub nowhere: Option<(usize, u16)>,
}

/// One sink, or reflector, of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Sink {
    /// Its host.
    pub host: usize,
    /// Links to it from the host of the sources.
    pub forward: Path,
    /// Links from it to the host of the sources.
    pub backward: Path,
    /// When it begins to listen.
    pub join: Duration,
    /// When it says goodbye.
    pub leave: Option<Duration>,
    /// When its host falls silent.
    pub fail: Option<Duration>,
}

impl Sink {
    /// Returns true if it listens at this time, unless it has left.
    pub fn has_joined(&self, at: Time) -> bool {
        at >= Time::ZERO + self.join
    }
}

/// Where the header by which a message is measured stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// In the message, as its first bytes: it keeps its size. In front of messages that are shorter than a header.
    #[default]
    Within,
    /// In front of every message.
    Before,
    /// Nowhere: the driver knows what was sent, and counts on a transport that delivers all of it in its order.
    None,
}

impl Flow {
    /// The most that one end of the flow holds in buffers of our engines, over all conversations: see [`TransportOptions::buffers`](trunkline_transport::kind::TransportOptions::buffers).
    pub fn buffers(&self) -> Bytes {
        Bytes(self.transport.buffers().count().saturating_mul(u64::from(self.meta.members)))
    }

    /// How much of the room for a header before a message is not sent in `sim`; `length` is that of both.
    pub fn unsent_room(&self, length: usize) -> usize {
        if self.framing == Framing::None { HEADER_LENGTH } else { self.cover().unsent_room(length) }
    }

    /// What the headers of its messages may be in `sim`, which restores what they cover.
    pub fn cover(&self) -> Cover {
        match self.framing {
            Framing::Within => Cover { message: true, short: self.short() },
            Framing::Before | Framing::None => Cover::default(),
        }
    }

    /// What the headers of its messages may be on real sockets, where the far end has nothing but the packets, and each
    /// message has one.
    pub fn cover_on_sockets(&self) -> Cover {
        match self.framing {
            Framing::Within | Framing::None => {
                Cover { message: !self.meta.keeps_payload, short: self.short() }
            }
            Framing::Before => Cover::default(),
        }
    }

    /// Bytes that its header adds to a message of `length` bytes in `sim`.
    pub fn added_to(&self, length: u64) -> u64 {
        match self.framing {
            Framing::None => 0,
            _ => self.cover().added(usize::try_from(length).unwrap_or(usize::MAX)) as u64,
        }
    }

    /// Bytes that its header adds to a message of `length` bytes on real sockets.
    pub fn added_on_sockets(&self, length: u64) -> u64 {
        self.cover_on_sockets().added(usize::try_from(length).unwrap_or(usize::MAX)) as u64
    }

    /// By how much its messages are larger than asked for, in a sentence.
    pub fn larger(&self, on_sockets: bool) -> Option<String> {
        let name = &self.meta.name;
        let largest = (trunkline_traffic::KINDS[self.source.kind].max_message)(&self.source.values);
        let added_to =
            |length| if on_sockets { self.added_on_sockets(length) } else { self.added_to(length) };
        if self.framing == Framing::Before {
            return None;
        }
        let place = if on_sockets { "on real sockets " } else { "" };
        let added = added_to(largest);
        if added == 0 {
            let least = added_to(self.least_message().unwrap_or(largest));
            let some = "those of its messages that have no room for the measurement header are";
            return (least > 0).then(|| format!("flow `{name}`: {place}{some} {least} bytes larger"));
        }
        let why = if on_sockets && self.meta.keeps_payload {
            "because their content must arrive unchanged, so the measurement header goes in front of it"
        } else {
            "because they have no room for the measurement header"
        };
        Some(format!("flow `{name}`: {place}its messages are {added} bytes larger, {why}"))
    }

    /// By how much the answers to its messages are larger than asked for, in a sentence.
    pub fn larger_answers(&self, on_sockets: bool) -> Option<String> {
        let Answer::Bytes(length) = self.answer() else { return None };
        let (added, place) = match on_sockets {
            true => (self.added_on_sockets(length), "on real sockets "),
            false => (self.added_to(length), ""),
        };
        let is_larger = added > 0 && self.framing != Framing::Before;
        is_larger.then(|| {
            format!(
                "flow `{}`: {place}the answers to its messages are {added} bytes larger, because they have no room for the \
                 measurement header",
                self.meta.name
            )
        })
    }

    /// The smallest message of a source that draws their sizes.
    fn least_message(&self) -> Option<u64> {
        self.source.values.iter().find_map(|(name, value)| match value {
            Value::Distribution(sizes) if name == "message" => Some(sizes.min().max(1)),
            _ => None,
        })
    }

    /// Which short header its messages may have.
    fn short(&self) -> Short {
        let fits = self.meta.channels <= short::MAX_CHANNELS
            && self.meta.first.0.saturating_add(self.meta.ids()) <= 1 << 16;
        let is_answered = self.reflect || self.answer() != Answer::None;
        match fits {
            false => Short::No,
            true if self.transport.keeps_messages() => match is_answered {
                true => Short::AnsweredDatagram,
                false => Short::Datagram,
            },
            true if is_answered && self.is_multicast() => Short::No,
            // Those of answers and of streams with several members have too little in them that shows damage.
            true if (is_answered || self.is_multicast()) && !self.transport.features().checksum => Short::No,
            true => Short::Stream,
        }
    }

    /// What its source waits for.
    pub fn answer(&self) -> Answer {
        (trunkline_traffic::KINDS[self.source.kind].answer)(&self.source.values)
    }

    /// Whether one transmission of a message is for all sinks.
    pub fn is_multicast(&self) -> bool {
        self.transport.is_multicast() || self.to.len() > 1
    }

    /// The links and the ports at which its packets may enter them, there and back.
    pub fn entrances(&self) -> impl Iterator<Item = (usize, u16)> {
        let others = self.each.iter().skip(1);
        let sinks = self.to.iter().chain(others.clone().flat_map(|ends| &ends.to));
        let steps = sinks.flat_map(|sink| sink.forward.iter().chain(&sink.backward));
        let nowhere = self.nowhere.into_iter().chain(others.filter_map(|ends| ends.nowhere));
        nowhere.chain(steps.map(|step| (step.link, step.from_port)))
    }

    /// Where its messages enter the first link of their way, to the first sink if there are several, from the first host if
    /// it is made for several.
    pub fn first_link(&self) -> Option<(usize, u16)> {
        self.nowhere.or_else(|| {
            let step = self.to.first()?.forward.first()?;
            Some((step.link, step.from_port))
        })
    }

    /// The id of a member, as the first sink has it.
    pub fn member(&self, member: u32) -> FlowId {
        FlowId(self.meta.first.0 + member)
    }
}

/// Links in a row.
pub type Path = Vec<PathStep>;

/// One link of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// Which link.
    pub link: usize,
    /// The port at which packets enter it.
    pub from_port: u16,
    /// The port at which they leave.
    pub to_port: u16,
}

/// A source: its kind and its values.
#[derive(Clone, Debug)]
pub struct Source {
    /// Index in the registry of `trunkline-traffic`.
    pub kind: usize,
    /// Its values.
    pub values: Values,
    /// What its audio file holds: mu-law bytes per channel; empty if it names none.
    pub speech: Arc<[Vec<u8>]>,
    /// The function of a custom source, once a program has provided it.
    pub custom: CustomSource,
}

impl Source {
    /// The mean time between messages of one channel while it sends; `None` if answers or the transport decide.
    pub fn interval(&self) -> Option<Duration> {
        (trunkline_traffic::KINDS[self.kind].interval)(&self.values)
    }

    /// True if its messages are those of a function.
    pub fn is_custom(&self) -> bool {
        trunkline_traffic::KINDS[self.kind].name == trunkline_traffic::CUSTOM
    }
}

/// What counts as good enough: `"flow.voice.latency.p999" = "< 150 ms"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The key as written: `flow.voice.latency.p999`.
    pub key: String,
    /// The condition as written: `< 150 ms`.
    pub condition: String,
    /// What it is about, and which figure of it.
    #[serde(flatten)]
    pub subject: Subject,
    /// How it is compared.
    pub operator: Operator,
    /// With what: seconds for durations, bits per second for rates, a share from 0 to 1, or a count.
    pub bound: f64,
}

/// What a limit is about. Indices are those in the file, which are those in a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Subject {
    /// Of a flow that is made for each of several hosts, one by itself or every one.
    Single {
        /// The flow's index.
        flow: usize,
        /// Which of them.
        single: Single,
        /// The figure.
        #[serde(with = "crate::limits::stored::of_flows")]
        metric: &'static FigureKind,
    },
    /// A flow.
    Flow {
        /// Its index.
        flow: usize,
        /// The host of the sink that the limit is about; `None` for the flow as a whole.
        #[serde(default)]
        sink: Option<String>,
        /// The figure.
        #[serde(with = "crate::limits::stored::of_flows")]
        metric: &'static FigureKind,
    },
    /// The connections of one transport in a bundle.
    Class {
        /// The bundle's index.
        bundle: usize,
        /// The transport's name.
        transport: String,
        /// The figure.
        #[serde(with = "crate::limits::stored::of_connections")]
        metric: &'static FigureKind,
    },
    /// A bundle as a whole.
    Bundle {
        /// Its index.
        bundle: usize,
        /// The figure.
        #[serde(with = "crate::limits::stored::of_bundles")]
        metric: &'static FigureKind,
    },
}

/// Which of the flows that are made for each of several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Single {
    /// Every one: the figure is that of the worst.
    Each,
    /// The one with this number, from 1.
    Number(u32),
}

/// The figure of a limit in one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// In the unit of [`Limit::bound`].
    Value(f64),
    /// There was nothing to measure: nothing is shown either way.
    NotMeasured,
    /// What the limit is about has no members: a sweep may start at none.
    NotApplicable,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Operator {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// Told by drivers how far they are, and asked whether to go on.
pub trait Supervisor {
    /// `done` of the scenario's duration and drain has passed. Called at least ten times a second of wall time.
    fn progress(&mut self, done: Duration) -> Progress;

    /// The sources have stopped, `at` after their start, and what is on its way may still arrive. Called once, unless the run
    /// fails before.
    fn measured(&mut self, _at: Duration) {}

    /// Something has happened that whoever waits for the end should know now, and that does not end it.
    fn warning(&mut self, _message: &str) {}

    /// How often it wants to be told what waits in the queues of the links, in the driver's time; `None` if never.
    fn backlog_interval(&self) -> Option<Duration> {
        None
    }

    /// At `at` so much waited in the queue of a link, for one of its [directions](Scenario::directions).
    fn backlog(&mut self, _at: Time, _link: &str, _direction: &str, _bytes: Bytes, _packets: u64) {}

    /// True if it wants to observe each packet at each link, and each TCP connection (`sim`).
    fn follows_packets(&self) -> bool {
        false
    }

    /// Something happened to a packet at a link.
    fn packet(&mut self, _packet: PacketEvent) {}

    /// The state of a TCP connection over time, at the end of the run: of the member with this id.
    fn connection(&mut self, _member: FlowId, _samples: &[ConnectionSample]) {}
}

/// A packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// When.
    pub at: Time,
    /// Index of the link in the scenario.
    pub link: usize,
    /// Its number in the run.
    pub id: PacketId,
    /// The member that it belongs to.
    pub flow: FlowId,
    /// The event.
    pub step: PacketStep,
}

/// An event of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketStep {
    /// It is offered to the link.
    Entered {
        /// At this port.
        port: u16,
        /// Its size at the network layer.
        size: Bytes,
    },
    /// It has left the queue, and its arrival is known.
    Left {
        /// When it arrives at the other end.
        arrives: Time,
    },
    /// It was dropped, for this cause.
    Dropped(&'static str),
    /// It was marked, for this cause.
    Marked(&'static str),
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Go on.
    Continue,
    /// Stop now, keep what was measured, mark it partial.
    Stop,
}
