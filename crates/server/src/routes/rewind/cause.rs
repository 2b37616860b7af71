//! The cause of a latency, from what the run recorded.

use std::collections::BTreeMap;

use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_experiment::Scenario;
use trunkline_metrics::{Fate, Record};
use trunkline_runner::{Hop, Loss, Rewound};

/// A message with what is known of its way.
#[derive(Clone, Copy)]
pub(super) struct Scene<'s> {
    pub(super) scenario: &'s Scenario,
    /// Index of its flow.
    pub(super) flow: usize,
    pub(super) message: Record,
    /// Its packets, if they were simulated again.
    pub(super) rewound: Option<&'s Rewound>,
    /// Stalls of the machine.
    pub(super) stalls: &'s [(Time, Duration)],
    /// The smallest latency of the flow.
    pub(super) least: Option<Duration>,
    /// Waiting time at each link when it was sent, where backlogs were measured.
    pub(super) waits: &'s [(String, Duration)],
    /// Payload of all flows between sender and receiver when it was sent, by index of the flow.
    pub(super) under_way: &'s BTreeMap<usize, u64>,
}

/// The cause.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cause {
    pub(super) sentence: String,
    /// Parts of the latency, the longest first.
    pub(super) parts: Vec<(String, Duration)>,
    /// The queue in which it waited or was dropped: its link and port, and the flows that filled it.
    pub(super) queue: Option<((usize, u16), Vec<usize>)>,
}

/// A part of a latency: its name, its length, and where it is of a link, that and true for what came after the queue.
type Part<'h> = (String, Duration, Option<(&'h Hop, bool)>);

/// Below this share of its latency, a part is not its cause.
const SMALLEST_SHARE: f64 = 0.1;
/// A link that sends nothing for as long as this many of the largest packets is interrupted.
const PACKETS_OF_SILENCE: u64 = 3;
const LARGEST_PACKET: u64 = 1_514;
/// The shortest interruption.
const SHORTEST_SILENCE: Duration = Duration::from_millis(2);

impl Scene<'_> {
    pub(super) fn cause(&self) -> Cause {
        match (self.message.sent.zip(self.message.received), self.rewound) {
            (Some((sent, received)), Some(rewound)) => self.packets(received.since(sent), rewound),
            (Some((sent, received)), None) => self.records((sent, received)),
            (None, Some(_)) if self.message.sent.is_none() => {
                sentence("refused: its sender gave it up before its transport took it")
            }
            // The packets of the message were sent first.
            (None, Some(rewound)) => match rewound.lost.iter().min_by_key(|loss| loss.packet) {
                Some(loss) if self.message.fate == Fate::Unfinished => self.dropped(
                    "not received before the run ended; a packet of its connection was ",
                    loss,
                    rewound,
                ),
                Some(loss) => self.dropped("lost: ", loss, rewound),
                None => sentence(
                    "not received: none of its packets was dropped, and the run ended before it arrived",
                ),
            },
            (None, None) => sentence("lost; this run recorded no packets, so the place is not known"),
        }
    }

    /// The parts of a simulated message.
    fn packets(&self, latency: Duration, rewound: &Rewound) -> Cause {
        let mut parts: Vec<Part<'_>> = Vec::new();
        let (mut path, mut known) = (Duration::ZERO, Duration::ZERO);
        for hop in &rewound.hops {
            let (name, waited) = (self.direction(hop.link, hop.port), hop.left.since(hop.entered));
            parts.push((format!("queue of {name}"), waited, Some((hop, false))));
            let late = if self.has_jitter(hop) { "jitter of" } else { "slow transmission over" };
            parts.push((format!("{late} {name}"), hop.late, Some((hop, true))));
            path += hop.arrived.since(hop.left).saturating_sub(hop.late);
            known += hop.arrived.since(hop.entered);
        }
        parts.push(("transmission and propagation".to_owned(), path, None));
        let rest = if rewound.hops.is_empty() { Duration::ZERO } else { latency.saturating_sub(known) };
        let is_tcp = rewound.connections.iter().any(|(member, _)| self.flow_of(*member) == Some(self.flow));
        let ends = if is_tcp { "sender's buffer, and retransmissions" } else { "hosts at both ends" };
        parts.push((ends.to_owned(), rest, None));
        parts.retain(|part| part.1 > Duration::ZERO);
        parts.sort_by_key(|part| core::cmp::Reverse(part.1));
        let cause = self.longest(latency, &parts, path, rest, rewound);
        Cause { parts: parts.into_iter().map(|(name, length, _)| (name, length)).collect(), ..cause }
    }

    fn longest(
        &self,
        latency: Duration,
        parts: &[Part<'_>],
        path: Duration,
        rest: Duration,
        rewound: &Rewound,
    ) -> Cause {
        let of_links = parts.iter().filter_map(|(_, length, hop)| Some((*length, (*hop)?)));
        let longest = of_links.max_by_key(|(length, _)| *length);
        let share = |part: Duration| part.as_secs_f64() / latency.as_secs_f64().max(f64::MIN_POSITIVE);
        if rest > longest.map_or(Duration::ZERO, |part| part.0) && share(rest) > SMALLEST_SHARE {
            // It arrived with a packet that was sent long after one of its member was dropped.
            let entered = rewound.hops.first().map_or(Time::ZERO, |hop| hop.entered);
            let waited = |loss: &Loss| entered.since(loss.at) * 2 > rest && loss.at <= entered;
            return match rewound.lost.iter().rfind(|loss| waited(loss)) {
                Some(loss) => self.dropped(
                    &format!("{latency}: {rest} of it until a packet was sent again that had been "),
                    loss,
                    rewound,
                ),
                None => sentence(&format!(
                    "{latency}: it waited {rest} at its sender, in front of the first link"
                )),
            };
        }
        let Some((length, (hop, is_late))) = longest.filter(|part| share(part.0) > SMALLEST_SHARE) else {
            let all = if path > Duration::ZERO { path } else { latency };
            return sentence(&format!("{latency}: nothing delayed it; its way takes {all} at least"));
        };
        let direction = self.direction(hop.link, hop.port);
        if is_late {
            let late = if self.has_jitter(hop) { "jitter of" } else { "slow transmission over" };
            return sentence(&format!(
                "{latency}: {late} {direction}, which delivered it {length} later than its fastest packet of this size"
            ));
        }
        let values = &self.scenario.links[hop.link].directions[usize::from(hop.port)];
        let packet = LARGEST_PACKET * 8 * 1_000_000_000 / values.rate.bits_per_second().max(1);
        let silent = Duration::from_nanos(PACKETS_OF_SILENCE * packet).max(SHORTEST_SILENCE);
        if hop.silence > silent && hop.silence * 2 > length {
            return sentence(&format!(
                "{latency}: an interruption of {direction}, which sent nothing for {} of the {length} that it waited there",
                hop.silence
            ));
        }
        let (whose, flows) = self.whose(&hop.before, hop.entered, rewound);
        Cause {
            sentence: format!("{latency}: {length} of it in the queue of {direction}{whose}"),
            parts: Vec::new(),
            queue: Some(((hop.link, hop.port), flows)),
        }
    }

    fn has_jitter(&self, hop: &Hop) -> bool {
        self.scenario.links[hop.link].directions[usize::from(hop.port)].impairments.jitter.is_some()
    }

    fn dropped(&self, begins: &str, loss: &Loss, rewound: &Rewound) -> Cause {
        let direction = self.direction(loss.link, loss.port);
        let (whose, flows) = self.whose(&loss.before, loss.at, rewound);
        let is_of_queue = !matches!(loss.cause, "link-loss" | "too-large" | "no-station" | "policed");
        Cause {
            sentence: format!(
                "{begins}dropped at {direction}, {}{}",
                loss.cause.replace('-', " "),
                if is_of_queue { &whose } else { "" }
            ),
            parts: Vec::new(),
            queue: is_of_queue.then_some(((loss.link, loss.port), flows)),
        }
    }

    /// The owners of the bytes in a queue, in words, and their flows.
    fn whose(&self, before: &BTreeMap<FlowId, Bytes>, at: Time, rewound: &Rewound) -> (String, Vec<usize>) {
        let all: u64 = before.values().map(|bytes| bytes.count()).sum();
        let Some((member, most)) = before.iter().max_by_key(|(_, bytes)| bytes.count()) else {
            return (String::new(), Vec::new());
        };
        let Some(flow) = self.flow_of(*member) else { return (String::new(), Vec::new()) };
        let of_flow = before.iter().filter(|(member, _)| self.flow_of(**member) == Some(flow));
        let (members, together) = of_flow.fold((Vec::new(), 0), |(mut members, sum), (member, bytes)| {
            members.push(*member);
            (members, sum + bytes.count())
        });
        let name = &self.scenario.flows[flow].meta.name;
        // One member, unless its flow fills the queue with several.
        let (share, who, members) = if most.count() * 10 >= together * 9 {
            (most.count(), format!("`{}`", self.member(*member)), vec![*member])
        } else {
            (together, format!("{} members of `{name}`", members.len()), members)
        };
        let windows: u64 = members.iter().filter_map(|member| window(rewound, *member, at)).sum();
        let several = if members.len() > 1 { "whose windows grew to" } else { "whose window grew to" };
        let grew = match windows {
            0 => String::new(),
            bytes => {
                format!(", {several} {} KB", trunkline_core::quantity::significant(bytes as f64 / 1e3, 3))
            }
        };
        let percent = (100.0 * share as f64 / all.max(1) as f64).round();
        (format!(", {percent} % of it from {who}{grew}"), vec![flow])
    }

    /// The cause by the records of a run whose packets cannot be simulated again.
    fn records(&self, (sent, received): (Time, Time)) -> Cause {
        let latency = received.since(sent);
        let excess = latency.saturating_sub(self.least.unwrap_or(latency));
        if excess.as_secs_f64() < SMALLEST_SHARE * latency.as_secs_f64() {
            return sentence(&format!(
                "{latency}: nothing delayed it; the fastest message of this flow took {}",
                latency - excess
            ));
        }
        let overlap = |&(from, length): &(Time, Duration)| {
            (from, (from + length).min(received).since(from.max(sent).min(received)))
        };
        let stalls = self.stalls.iter().map(overlap);
        if let Some((from, length)) =
            stalls.max_by_key(|(_, length)| *length).filter(|(_, length)| *length * 2 > excess)
        {
            return sentence(&format!(
                "{latency}: the machine stalled, {length} of it, from {} s on",
                trunkline_core::quantity::significant(from.as_secs_f64(), 5)
            ));
        }
        let all: u64 = self.under_way.values().sum();
        let most = self.under_way.iter().max_by_key(|(_, bytes)| **bytes).filter(|(_, bytes)| **bytes > 0);
        let whose = most.map_or_else(String::new, |(flow, bytes)| {
            let (name, percent) =
                (&self.scenario.flows[*flow].meta.name, (200 * bytes + all) / (2 * all.max(1)));
            format!("; {percent} % of the payload then under way was of `{name}`")
        });
        match self.waits.iter().max_by_key(|(_, wait)| *wait).filter(|(_, wait)| *wait * 3 > excess) {
            Some((link, wait)) => {
                sentence(&format!("{latency}: about {wait} of it in the queue of {link}{whose}"))
            }
            None => sentence(&format!(
                "{latency}, {excess} more than the fastest message: the machine did not stall for so long, and no queue \
                 that this run recorded explains it{whose}"
            )),
        }
    }

    /// `trunk` (berlin>ottawa).
    pub(super) fn direction(&self, link: usize, port: u16) -> String {
        let link = &self.scenario.links[link];
        let directions = self.scenario.directions(link);
        format!("`{}` ({})", link.name, directions.get(usize::from(port)).map_or("", String::as_str))
    }

    pub(super) fn flow_of(&self, id: FlowId) -> Option<usize> {
        let is_its =
            |meta: &trunkline_metrics::FlowMeta| (meta.first.0..meta.first.0 + meta.ids()).contains(&id.0);
        self.scenario.flows.iter().position(|flow| is_its(&flow.meta))
    }

    /// The name of a member: that of its flow, with its number if there are several.
    pub(super) fn member(&self, id: FlowId) -> String {
        let Some(flow) = self.flow_of(id) else { return format!("flow {}", id.0) };
        let meta = &self.scenario.flows[flow].meta;
        match meta.members {
            1 => meta.name.clone(),
            members => format!("{}.{}", meta.name, (id.0 - meta.first.0) % members + 1),
        }
    }
}

fn sentence(text: &str) -> Cause {
    Cause { sentence: text.to_owned(), ..Cause::default() }
}

/// The largest window of a connection in the second before `at`.
fn window(rewound: &Rewound, member: FlowId, at: Time) -> Option<u64> {
    let (_, samples) = rewound.connections.iter().find(|(one, _)| *one == member)?;
    let near =
        samples.iter().filter(|sample| sample.at <= at && at.since(sample.at) <= Duration::from_secs(1));
    near.map(|sample| sample.congestion_window.count()).max()
}
