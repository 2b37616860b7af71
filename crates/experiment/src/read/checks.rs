//! What must fit together: source, transport and the links on the way.

use trunkline_core::Distribution;
use trunkline_core::schema::{Kind, Value};
use trunkline_traffic::SourceKind;
use trunkline_transport::kind::{Conflict, FlowNeeds, MessageSize, Packet, TransportKind, Written};

use super::Reader;
use super::table::Chosen;
use crate::model::{Answer, Flow, Framing, Link, Path, Sink};
use crate::transport::Transport;
use crate::tree::Table;

/// Where a flow's parts stand in the file.
pub(super) struct Places<'t> {
    pub(super) flow: &'t Table,
    pub(super) transport: &'t Chosen,
    pub(super) source: &'t Chosen,
}

impl Reader<'_> {
    /// Remarks on parts of a flow that do not fit together.
    pub(super) fn check_flow(
        &mut self,
        flow: &Flow,
        source: &SourceKind,
        places: &Places<'_>,
        links: Option<&[Link]>,
    ) {
        let values = &flow.source.values;
        let at = &places.source.span;
        let answer = flow.answer();
        if answer == Answer::Echo && !flow.reflect {
            let at = places.flow.node("reflect").map_or(at, |node| &node.span);
            self.remark(at, format!("the source `{}` waits for replies; set `reflect = true`", source.name));
        }
        let transport = flow.transport.kind();
        self.check_sinks(flow, source, places);
        self.check_promises(flow, source, places);
        if let Some(audio) = places.flow.node("audio")
            && flow.meta.keeps_payload
            && (source.samples_per_packet)(values).is_none()
        {
            let message = match (source.packetiser)(values) {
                Some(_) => "audio from a `fifo` cannot be written: its packets differ in length".to_owned(),
                None => format!("the source `{}` carries no audio that could be written", source.name),
            };
            self.remark(&audio.span, message);
        }
        if (source.needs_flow_control)(values) && !flow.transport.holds_back() {
            let message = format!(
                "the source `{}` sends as fast as the transport allows, but {} has no flow control; {}use {}",
                source.name,
                flow.transport.called(),
                if has_interval(source) { "give it an `interval` or " } else { "" },
                self.either(|t| t.features.flow_control || t.features.congestion_control),
            );
            self.remark(at, message);
        }
        let message = (source.max_message)(values);
        // On sockets a header stands in front of what must arrive unchanged.
        let most =
            |size| transport.max_message.saturating_sub(flow.added_to(size).max(flow.added_on_sockets(size)));
        if let Answer::Bytes(answer) = answer
            && answer > most(answer)
        {
            let message = format!(
                "an answer of {answer} B is larger than the {} B that one over `{}` may have",
                most(answer),
                transport.name
            );
            self.remark(places.source.span_of("answer"), message);
        }
        // The largest of an exponential distribution comes once in 10^27 messages, that of a normal one once in 10^19.
        let is_rare =
            |d: &Distribution| matches!(d, Distribution::Exponential { .. } | Distribution::Normal { .. });
        if message > most(message) && !draws_size(flow, source, is_rare) {
            let message = format!(
                "a message of {message} B is larger than the {} B that one over `{}` may have",
                most(message),
                transport.name
            );
            self.remark(given(SIZES, places).map_or(at, |key| places.source.span_of(key)), message);
        } else if let Some(links) = links {
            self.check_packets(flow, source, places, links, message);
        }
        if let Err(problem) = crate::build::try_source(flow) {
            // It names the key that it is about.
            let key = problem.strip_prefix('`').and_then(|rest| rest.split_once('`'));
            self.remark(key.map_or(at, |(key, _)| places.source.span_of(key)), problem);
        }
    }

    /// The transports that promise something, as the end of a sentence.
    fn either(&self, promises: impl Fn(&TransportKind) -> bool) -> String {
        let kinds = self.schema.transports.iter().filter(|kind| promises(kind));
        crate::problem::either(kinds.map(|kind| kind.name))
    }

    /// Remarks on what a flow needs and its transport does not promise.
    fn check_promises(&mut self, flow: &Flow, source: &SourceKind, places: &Places<'_>) {
        let (transport, values) = (&flow.transport, &flow.source.values);
        let features = transport.features();
        let headerless = flow.framing == Framing::None;
        let others = self.either(|kind| kind.features.reliable && kind.features.ordered);
        if headerless && !(features.reliable && features.ordered) {
            let at = places.flow.node("framing").map_or(&places.transport.span, |node| &node.span);
            let message = format!(
                "without a header every message must arrive in order, which {} does not guarantee; use {}",
                transport.called(),
                others
            );
            self.remark(at, message);
        }
        let repair = (source.needs_reliability)(values);
        let needs = FlowNeeds {
            source: source.name,
            repair,
            backpressure: (source.needs_flow_control)(values),
            has_interval: has_interval(source),
            headerless,
            reflect: flow.reflect,
            sinks: flow.to.len(),
        };
        self.remark_conflicts(transport.check_use(&needs), places.transport);
        if repair && !features.reliable {
            let message = format!(
                "the source `{}` would wait forever if a reply were lost, and {} does not repair loss; use {}",
                source.name,
                transport.called(),
                others
            );
            self.remark(&places.source.span, message);
        }
        if repair && transport.send_timeout().is_some() {
            let message = needs.would_wait("a message were abandoned", "omit `send-timeout`");
            self.remark(places.transport.span_of("send-timeout"), message);
        }
    }

    /// The transport that was chosen, with remarks on options that do not fit together, whatever uses it.
    pub(super) fn transport(&mut self, chosen: &Chosen) -> Option<Transport> {
        let transport = Transport::new(self.schema.transports.get(chosen.index)?, chosen.values.clone());
        self.check_options(&transport, chosen);
        Some(transport)
    }

    fn check_options(&mut self, transport: &Transport, chosen: &Chosen) {
        let has = |key: &str| chosen.table.as_ref().is_some_and(|table| table.node(key).is_some());
        let written = Written { values: &chosen.values, has: &has };
        self.remark_conflicts(transport.check(&written), chosen);
    }

    fn remark_conflicts(&mut self, conflicts: Vec<Conflict>, chosen: &Chosen) {
        for Conflict { key, message } in conflicts {
            self.remark(chosen.span_of(&key), message);
        }
    }

    /// Remarks on packets that no link on the way lets through.
    fn check_packets(
        &mut self,
        flow: &Flow,
        source: &SourceKind,
        places: &Places<'_>,
        links: &[Link],
        message: u64,
    ) {
        let drawn = draws_size(flow, source, |d| !matches!(d, Distribution::Constant(_)));
        let entrances = |path: fn(&Sink) -> &Path| -> Vec<(usize, u16)> {
            flow.to.iter().flat_map(path).map(|step| (step.link, step.from_port)).collect()
        };
        let forward = flow.nowhere.into_iter().chain(entrances(|sink| &sink.forward)).collect();
        let backward = || entrances(|sink| &sink.backward);
        let mut ways = vec![(forward, "a message", message, drawn, SIZES)];
        match flow.answer() {
            Answer::Bytes(answer) => ways.push((backward(), "an answer", answer, false, &["answer"])),
            _ if flow.reflect => ways.push((backward(), "a message", message, drawn, SIZES)),
            _ => {}
        }
        let mtu = |&(link, port): &(usize, u16)| links[link].directions[usize::from(port)].mtu.count();
        for (place, (path, noun, size, drawn, keys)) in ways.into_iter().enumerate() {
            let whole = size.saturating_add(flow.added_to(size));
            let message = MessageSize { noun, size, whole, varies: drawn, is_back: place > 0 };
            // The key that decides about the size.
            let of_source = given(keys, places);
            let span = |key: Option<&str>| match (key, of_source) {
                (Some(key), _) => places.transport.span_of(key),
                (None, Some(key)) => places.source.span_of(key),
                (None, None) => &places.source.span,
            };
            let (packet, what, key) = match flow.transport.packet(&message) {
                Packet::Fits => continue,
                Packet::Needs { bytes, what, key } => (bytes, what, key),
                Packet::TooLarge { message, key } => return self.remark(span(key), message),
            };
            let narrow = path.iter().min_by_key(|at| mtu(at)).filter(|at| mtu(at) < packet);
            if let Some(narrow) = narrow {
                let named = key.or(of_source).map_or_else(String::new, |key| format!("`{key}`: "));
                let message = format!(
                    "{named}{what} with all headers, which link `{}` would drop: its `mtu` is {} B",
                    links[narrow.0].name,
                    mtu(narrow)
                );
                return self.remark(span(key), message);
            }
        }
    }
}

/// The keys of sources that say how large a message can be, the one that decides first.
const SIZES: &[&str] = &["largest", "fifo", "samples", "message", "frames"];

/// The first of these keys that the file gives the source.
fn given(keys: &[&'static str], places: &Places<'_>) -> Option<&'static str> {
    keys.iter().copied().find(|key| places.source.gives(key))
}

/// Whether the source draws a size from such a distribution.
fn draws_size(flow: &Flow, source: &SourceKind, such: impl Fn(&Distribution) -> bool) -> bool {
    let sizes = source.parameters.iter().filter(|p| matches!(p.kind, Kind::Sizes { .. }));
    sizes.map(|p| flow.source.values.value(p.name)).any(|v| matches!(v, Value::Distribution(d) if such(d)))
}

/// Whether the source may be given a rate of its own.
fn has_interval(source: &SourceKind) -> bool {
    source.parameters.iter().any(|parameter| parameter.name == "interval")
}
