//! Reads flows.

use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_core::schema::{Kind, Value};
use trunkline_core::{Bytes, Duration, FlowId, Rate, Time};
use trunkline_metrics::{BurstLimit, FlowMeta, Lasting, Measured, SendLimit};
use trunkline_network::medium;
use trunkline_traffic::{Answer, CustomSource};

use super::Reader;
use super::checks::Places;
use super::paths::{MOST_HOPS, Map};
use super::sinks::Ways;
use super::table::Chosen;
use crate::files::Speech;
use crate::model::{Ends, Flow, Framing, Link, Path, PathStep, Sink, Source};
use crate::problem::{enumerate, suggestion};
use crate::schema::Shape;
use crate::tree::{Entry, Item, Node, Table};

/// The most members that all flows may have together, each counted once for every sink.
const MOST_MEMBERS: u64 = 1_000_000;

impl Reader<'_> {
    /// The flows of a run in which is sent for so long, if that could be read; `None` after remarks. Without links, since
    /// those could not be read, paths are not looked for.
    pub(super) fn flows(
        &mut self,
        root: &Table,
        hosts: &[String],
        links: Option<&[Link]>,
        duration: Option<Duration>,
    ) -> Option<Vec<Flow>> {
        let before = self.remarks.len();
        let entries = self.named_tables(root, "flow");
        let links = links.map(|links| (links, Map::new(links, hosts.len())));
        let mut read: Vec<(Flow, &Entry)> = Vec::with_capacity(entries.len());
        for entry in entries {
            if self.is_full() {
                return None;
            }
            if !entry.is_repeated() {
                read.extend(self.flow(entry, hosts, links.as_ref()).map(|flow| (flow, entry)));
                continue;
            }
            // Only its ends differ from those of the first; without that one, all has been told.
            let first =
                read.last_mut().map(|(flow, _)| flow).filter(|flow| flow.meta.name == entry.written());
            if let Some(flow) = first {
                flow.each.extend(self.ends(entry, hosts, links.as_ref()));
            }
        }
        let mut flows = Vec::with_capacity(read.len());
        let mut members: u64 = 0;
        for (mut flow, entry) in read {
            let alike = flow.each.len().max(1) as u64;
            let own = u64::from(flow.meta.members) * alike;
            flow.meta.members = u32::try_from(own).unwrap_or(u32::MAX);
            if let Some(duration) = duration.filter(|duration| own > 0 && flow.start >= *duration) {
                let start = entry.node.table().and_then(|table| table.node("start"));
                let message = format!(
                    "the flow `{}` would start at {}, but sending ends at {duration}, which is the run's `duration`; \
                     start it earlier",
                    flow.meta.name, flow.start
                );
                self.remark(start.map_or(&entry.key_span, |start| &start.span), message);
            }
            let late = |sink: &&Sink| duration.is_some_and(|duration| sink.join >= duration);
            if let Some(sink) = flow.to.iter().find(late).filter(|_| own > 0) {
                let to = entry.node.table().and_then(|table| table.node("to"));
                let message = format!(
                    "`{}` would join at {}, but sending ends at {}, which is the run's `duration`; let it join earlier",
                    hosts[sink.host],
                    sink.join,
                    duration.unwrap_or_default()
                );
                self.remark(to.map_or(&entry.key_span, |to| &to.span), message);
            }
            if !flow.each.is_empty() {
                flow.meta.sinks = (0..flow.to.len()).map(|sink| together(&flow, sink, hosts)).collect();
            }
            // At most as many as there are hosts.
            flow.meta.send_limit.iter_mut().for_each(|limit| limit.conversations *= alike as u32);
            flow.meta.first = FlowId(u32::try_from(members).unwrap_or(u32::MAX));
            members += own * flow.to.len().max(1) as u64;
            if members > MOST_MEMBERS {
                let message =
                    format!("with this flow there are more than {MOST_MEMBERS} members; lower a `count`");
                self.remark(&entry.key_span, message);
                return None;
            }
            flows.push(flow);
        }
        (self.remarks.len() == before && links.is_some()).then_some(flows)
    }

    /// Where one of several flows that are alike begins and ends.
    fn ends(&mut self, entry: &Entry, hosts: &[String], links: Option<&(&[Link], Map)>) -> Option<Ends> {
        let (table, at) = (entry.node.table()?, &entry.node.span);
        let place = format!("in [flow.{}]", entry.written());
        let from = self.end(table, at, &place, "from", hosts);
        let Ways { to, nowhere } = self.ways(table, at, &place, from, hosts, links)?;
        Some(Ends { from: from?, to, nowhere })
    }

    fn flow(&mut self, entry: &Entry, hosts: &[String], links: Option<&(&[Link], Map)>) -> Option<Flow> {
        let table = self.table_of(entry, "flow")?;
        let keys = &self.schema.flow;
        let (at, place) = (&entry.node.span, format!("[flow.{}]", entry.written()));
        let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
        self.refuse_unknown(table, &known, &place);
        let place = format!("in {place}");
        let values = self.plain_values(table, at, &place, keys);
        let from = self.end(table, at, &place, "from", hosts);
        let ways = self.ways(table, at, &place, from, hosts, links);
        let chosen = self.choice(table, at, &place, "transport");
        // It is checked also where something else of the flow is wrong.
        let transport = chosen.as_ref().and_then(|chosen| self.transport(chosen));
        let source = self.choice(table, at, &place, "source");
        let speech = source.as_ref().and_then(|source| self.speech(source));
        let voice_path = source.as_ref().and_then(|source| self.voice_path(table, at, &place, source));
        let (values, chosen, source) = (values?, chosen?, source?);
        let (speech, voice_path) = (speech?, voice_path?);
        let (from, ways, transport) = (from?, ways?, transport?);
        let source_kind = trunkline_traffic::KINDS.get(source.index)?;
        let is_written = (source_kind.samples_per_packet)(&source.values).is_some();
        let reflect = values.flag("reflect");
        let mut flow = Flow {
            meta: FlowMeta {
                name: entry.written().to_owned(),
                transport: transport.kind().name.to_owned(),
                first: FlowId(0),
                members: u32::try_from(values.integer("count")).unwrap_or(u32::MAX),
                channels: u16::try_from(values.integer("channels")).unwrap_or(u16::MAX),
                sinks: ways.to.iter().map(|sink| hosts[sink.host].clone()).collect(),
                measured: match ways.to.as_slice() {
                    [] => Measured::Nothing,
                    _ if reflect => Measured::RoundTrip,
                    _ => Measured::OneWay,
                },
                // Known with the experiment's own values.
                ends: Time::MAX,
                propagation: Vec::new(),
                wander: Duration::ZERO,
                // To a host that falls silent nothing is delivered any more.
                reliable: ways.to.iter().map(|sink| transport.is_reliable() && sink.fail.is_none()).collect(),
                presence: presence(&ways.to),
                send_limit: None,
                is_answered: reflect && matches!((source_kind.answer)(&source.values), Answer::Bytes(_)),
                is_greedy: (source_kind.needs_flow_control)(&source.values),
                lasting: match (source_kind.endless)(&source.values) {
                    false => Lasting::Volume,
                    true => Lasting::Run,
                },
                playout: values.duration_if_given("playout"),
                carries_audio: (source_kind.audio)(&source.values).is_some(),
                keeps_payload: values.flag_if_given("audio").unwrap_or(is_written && !speech.is_empty()),
                voice_path,
                listening: None,
            },
            each: match &entry.of {
                Some(_) => vec![Ends { from, to: ways.to.clone(), nowhere: ways.nowhere }],
                None => Vec::new(),
            },
            alike: (0, 1),
            from,
            to: ways.to,
            nowhere: ways.nowhere,
            transport,
            source: Source {
                kind: source.index,
                values: source.values.clone(),
                speech,
                custom: CustomSource::default(),
            },
            reflect,
            start: values.duration("start"),
            stagger: values.duration("stagger"),
            priority: u16::try_from(values.integer("priority")).unwrap_or(u16::MAX),
            effort: values.number("effort"),
            framing: match values.text_if_given("framing").as_deref() {
                None => Framing::Within,
                Some("none") => Framing::None,
                Some(_) => Framing::Before,
            },
        };
        if let Some((links, _)) = links {
            flow.meta.send_limit = send_limit(&flow, links);
            flow.meta.propagation = flow.to.iter().map(|sink| propagation(sink, reflect, links)).collect();
            flow.meta.wander =
                flow.to.iter().map(|sink| wander(sink, reflect, links)).max().unwrap_or_default();
        }
        flow.meta.listening = self.listening(table, at, &place, &source, &flow.meta)?;
        let places = Places { flow: table, transport: &chosen, source: &source };
        self.check_flow(&flow, source_kind, &places, links.map(|(links, _)| *links));
        Some(flow)
    }

    fn end(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        key: &str,
        hosts: &[String],
    ) -> Option<usize> {
        let Some(node) = table.node(key) else {
            self.missing(key, at, place, "the name of a host");
            return None;
        };
        self.host(key, node, hosts)
    }

    /// What a key of several kinds that must be given says.
    pub(super) fn choice(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        name: &str,
    ) -> Option<Chosen> {
        let key = self.schema.flow.iter().find(|key| key.name == name)?;
        let Shape::OneOf(one_of) = &key.shape else { return None };
        self.one_of(table, at, place, key, one_of)?
    }

    /// What the source plays; nothing if it names no file, `None` after remarks.
    fn speech(&mut self, source: &Chosen) -> Option<Speech> {
        let kind = trunkline_traffic::KINDS.get(source.index)?;
        let file = kind.parameters.iter().find(|p| matches!(p.kind, Kind::File)).map(|p| p.name);
        let Some((key, path)) = file.and_then(|key| Some((key, source.values.text_if_given(key)?))) else {
            return Some(Arc::new([]));
        };
        match self.shelf.speech(&path) {
            Ok(speech) => Some(speech),
            Err(problem) => {
                self.remark(source.span_of(key), format!("`{path}` {problem}"));
                None
            }
        }
    }

    /// The links to a sink that is named at `at`.
    pub(super) fn path(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        (from, to): (usize, usize),
        hosts: &[String],
        links: &[Link],
        map: &Map,
    ) -> Option<Path> {
        if let Some(node) = table.node("path") {
            return self.written_path(node, (from, to), hosts, links, map);
        }
        let mut ways = map.shortest(from, to);
        let ends = format!("from `{}` to `{}`", hosts[from], hosts[to]);
        let message = match ways.as_slice() {
            [_] => return ways.pop(),
            // For `live`, which uses the network as it is.
            [] if links.is_empty() => return Some(Path::new()),
            [] if map.joins(from, to) => format!("every path {ends} has more than {MOST_HOPS} links"),
            [] => format!("no path leads {ends}; connect them with a `[link.NAME]`"),
            _ => {
                let named = ways.iter().map(|way| {
                    let names = way.iter().map(|step| format!("\"{}\"", links[step.link].name));
                    format!("`path = [{}]`", names.collect::<Vec<_>>().join(", "))
                });
                let named = named.collect::<Vec<_>>().join(" or ");
                format!("several shortest paths lead {ends}; choose one: {named}")
            }
        };
        self.remark(at, message);
        None
    }

    /// `path = ["trunk", "tail"]`
    fn written_path(
        &mut self,
        node: &Node,
        (from, to): (usize, usize),
        hosts: &[String],
        links: &[Link],
        map: &Map,
    ) -> Option<Path> {
        let Item::Array(names) = &node.item else {
            self.remark(&node.span, format!("`path` must be a list of links, not {}", node.describe()));
            return None;
        };
        if names.len() > MOST_HOPS {
            self.remark(&node.span, format!("`path` has more than {MOST_HOPS} links"));
            return None;
        }
        let mut host = from;
        let mut path = Path::with_capacity(names.len());
        let find =
            |name: &Node| links.iter().position(|link| name.text().is_some_and(|text| text == link.name));
        for (place, name) in names.iter().enumerate() {
            let written = name.text().unwrap_or_default();
            let Some(link) = find(name) else {
                let suggestion = suggestion(written, links.iter().map(|link| link.name.as_str()));
                self.remark(&name.span, format!("there is no link `{written}`{suggestion}"));
                return None;
            };
            // A medium of many stations leads to all of them: what matters is where the path goes on.
            let following = names.get(place + 1).and_then(find);
            let leads_on = |next| following.map_or(next == to, |link| links[link].between.contains(&next));
            let mut steps = map.steps(link, host);
            let first = steps.next();
            let found = first.into_iter().chain(steps).find(|(_, next)| leads_on(*next)).or(first);
            let Some((step, next)) = found else {
                let ends = enumerate(links[link].between.iter().map(|end| hosts[*end].as_str()));
                let message = format!("the path is at `{}` here, and `{written}` joins {ends}", hosts[host]);
                self.remark(&name.span, message);
                return None;
            };
            path.push(step);
            host = next;
        }
        if host != to {
            self.remark(&node.span, format!("the path ends at `{}`, not at `{}`", hosts[host], hosts[to]));
            return None;
        }
        Some(path)
    }
}

/// What the file calls a sink of flows that are alike: the host, or all for which it stands.
fn together(flow: &Flow, sink: usize, hosts: &[String]) -> String {
    let first = &hosts[flow.to[sink].host];
    let is_one = flow.each.iter().all(|ends| ends.to[sink].host == flow.to[sink].host);
    match first.rsplit_once('-') {
        Some((written, _)) if !is_one => written.to_owned(),
        _ => first.clone(),
    }
}

/// How long the path to a sink takes at least, and back if the flow is reflected.
fn propagation(sink: &Sink, reflect: bool, links: &[Link]) -> Duration {
    propagation_of(&sink.forward, links) + propagation_of(way_back(sink, reflect), links)
}

/// Difference of the delays of the path to a sink, and back if the flow is reflected, between two moments without a queue.
fn wander(sink: &Sink, reflect: bool, links: &[Link]) -> Duration {
    let steps = sink.forward.iter().chain(way_back(sink, reflect));
    let wander = steps.map(|step| links[step.link].directions[usize::from(step.from_port)].wander);
    wander.fold(Duration::ZERO, |sum, wander| sum + wander)
}

fn way_back(sink: &Sink, reflect: bool) -> &[PathStep] {
    if reflect { &sink.backward } else { &[] }
}

/// Time in which each sink is there, if one joins late or leaves early.
fn presence(sinks: &[Sink]) -> Vec<Range<Time>> {
    if sinks.iter().all(|sink| sink.join.is_zero() && sink.leave.is_none()) {
        return Vec::new();
    }
    let of_sink = |sink: &Sink| {
        let leave = sink.leave.map_or(Time::MAX, |leave| Time::ZERO + leave);
        Time::ZERO + sink.join..leave
    };
    sinks.iter().map(of_sink).collect()
}

/// The least that an acknowledgement takes on a link: the headers of IP and TCP.
const ACKNOWLEDGEMENT: Bytes = Bytes(40);

/// The most that a flow's conversations may have under way, on the path to its first sink. `None` where it is not known how
/// much that path carries, as over a shared medium: then nobody can tell what limits the flow.
fn send_limit(flow: &Flow, links: &[Link]) -> Option<SendLimit> {
    let (option, bytes) = flow.transport.in_flight_in_sim()?;
    let block = flow.transport.largest_block();
    let sink = flow.to.first()?;
    let direction = |step: &PathStep| &links[step.link].directions[usize::from(step.from_port)];
    let narrowest = sink.forward.iter().map(|step| capacity(*step, links)).min()??;
    let back = || sink.backward.iter().filter_map(|step| capacity(*step, links));
    let acknowledgement = back().map(|rate| rate.time_for(ACKNOWLEDGEMENT));
    let mtu = sink.forward.iter().map(|step| direction(step).mtu).min();
    let is_announced = option != "send-buffer";
    let segments = mtu.filter(|_| is_announced).and_then(|mtu| flow.transport.whole_segments(bytes, mtu));
    Some(SendLimit {
        option,
        bytes,
        segments,
        conversations: if flow.transport.is_shared() { 1 } else { flow.meta.members },
        narrowest: Some(narrowest),
        carries: Some(carried(flow, links)?),
        packet: mtu.into_iter().chain(block).min(),
        blocks: flow.transport.window_in_blocks(),
        largest: flow.transport.largest_window(),
        on_sockets: flow.transport.in_flight(),
        back: Some(acknowledgement.fold(propagation_of(&sink.backward, links), |sum, time| sum + time)),
        narrowest_back: back().min(),
        twice: flow.transport.takes_two_round_trips(),
        burst: mtu.and_then(|mtu| flow.transport.rate_control(mtu)).map(|(rate, burst, packet)| BurstLimit {
            rate,
            burst,
            packet,
        }),
    })
}

/// As much as the paths of all hosts between which a flow is made carry together, each to its first sink.
fn carried(flow: &Flow, links: &[Link]) -> Option<Rate> {
    let ends = flow.each.iter().map(|ends| &ends.to);
    let sinks: Vec<&Sink> = match flow.each.is_empty() {
        true => flow.to.first().into_iter().collect(),
        false => ends.filter_map(|to| to.first()).collect(),
    };
    let mut crossed: BTreeMap<(usize, u16), u64> = BTreeMap::new();
    for step in sinks.iter().flat_map(|sink| &sink.forward) {
        *crossed.entry((step.link, step.from_port)).or_default() += 1;
    }
    // A link has a share for each path that crosses it, and each path is as wide as its smallest share.
    let of_path = |sink: &&Sink| {
        let share = |step: &PathStep| {
            Some(capacity(*step, links)?.bits_per_second() / crossed[&(step.link, step.from_port)])
        };
        sink.forward.iter().map(share).min()?
    };
    let paths: Option<Vec<u64>> = sinks.iter().map(of_path).collect();
    Some(Rate::from_bits_per_second(paths?.into_iter().fold(0, u64::saturating_add)))
}

/// The most that a link carries in one direction: its rate, or that of its shaper or policer. `None` of a medium whose stations
/// share it, or that has no rate.
fn capacity(step: PathStep, links: &[Link]) -> Option<Rate> {
    let link = &links[step.link];
    let direction = &link.directions[usize::from(step.from_port)];
    let values = &direction.values;
    let given = |name: &str| {
        let found = values.iter().find(|(key, _)| *key == name);
        let is_rate = found.is_some_and(|(_, value)| matches!(value, Value::Rate(_) | Value::Series(_)));
        is_rate.then(|| Rate::from_bits_per_second(values.over_time(name).max()))
    };
    let kind = &medium::KINDS[link.medium];
    let is_shared = *kind.stations.end() > 2;
    let has_rate = kind.parameters.iter().any(|parameter| parameter.name == "rate");
    let policed = given("committed-rate").filter(|_| values.text("policing") == "discard");
    let shaped = ["line", "shape-rate", "shape-pcr", "shape-scr"].into_iter().filter_map(given);
    (has_rate && !is_shared).then(|| shaped.chain(policed).fold(direction.rate, Rate::min))
}

fn propagation_of(path: &[PathStep], links: &[Link]) -> Duration {
    let delay = |step: &PathStep| links[step.link].directions[usize::from(step.from_port)].delay;
    path.iter().map(delay).fold(Duration::ZERO, |sum, delay| sum + delay)
}
