//! What must fit together: source, transport and the links on the way.

use trunkline_adapters::quic::{self, Mode};
use trunkline_core::schema::{Kind, Value};
use trunkline_core::{Bytes, Distribution, Duration};
use trunkline_traffic::SourceKind;
use trunkline_transport::classic_tcp;
use trunkline_transport::dccp::{self, WhenFull};
use trunkline_transport::rtp;
use trunkline_transport::sctp::{self, Reliability};
use trunkline_transport::tcp::{TcpConfig, TcpConfigError};
use trunkline_transport::udp::{IPV4_HEADER_LENGTH, UDP_HEADER_LENGTH};
use trunkline_transport::urp;
use trunkline_transport::xtp::{self, ErrorControl, FlowControl};

use super::Reader;
use super::services::{holds_back, named, promised};
use super::table::Chosen;
use crate::model::{
    Answer, ClassicTcpOptions, Flow, Framing, Link, Path, SctpEngine, SctpOptions, SctpStyle, Sink,
    TcpEngine, TcpOptions, Transport, XtpOptions, XtpService,
};
use crate::schema::transport::{self, TransportKind};
use crate::tree::Table;

/// What stands before the data of XTP's FIRST packets, behind their header, in bytes.
const FIRST_SEGMENTS: u64 = (xtp::wire::ADDRESS_LENGTH + xtp::wire::TRAFFIC_LENGTH) as u64;

/// Length of the TCP header without options, in bytes (RFC 9293 section 3.1).
const TCP_HEADER_LENGTH: u64 = 20;

/// Pairs of TCP's keys of which a file gives one at most, with a sentence.
const EXCLUDED: &[(&str, &str, &str)] = &[
    (
        "nagle",
        "nodelay",
        "`nagle` collects small messages, which `nodelay = true` forbids; leave one of them out",
    ),
    (
        "cork",
        "nodelay",
        "`cork` collects small messages, which `nodelay = true` forbids; leave one of them out",
    ),
    ("nagle", "cork", "`nagle` and `cork` are two ways to collect small messages; leave one of them out"),
    (
        "autotuning",
        "window",
        "`window` fixes the buffers, which `autotuning` lets grow; leave one of them out",
    ),
    ("max-window", "window", "`window` fixes the buffers, which grow to `max-window`; leave one of them out"),
    ("fast-retransmit", "recovery", "`recovery` and `fast-retransmit` set the same thing; omit one of them"),
];

/// Keys of TCP that the classic engine has.
const CLASSIC_KEYS: &[&str] = &[
    "nagle",
    "initial-window",
    "fast-retransmit",
    "rto-initial",
    "rto-min",
    "rto-max",
    "keep-backoff",
    "delayed-ack",
    "ack-every",
    "ack-unpushed",
    "window-updates",
];

/// A setting that a classic TCP does not have, with its key.
fn classic_problems(classic: &ClassicTcpOptions, options: &TcpOptions) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    if options.window.is_some_and(|window| window > Bytes(classic_tcp::MAX_WINDOW as u64)) {
        let message = "`engine = \"classic\"` has windows of 64 KiB at most; make `window` smaller";
        problems.push(("window".to_owned(), message.to_owned()));
    }
    problems.extend(timeout_problem(classic.timer.min, classic.timer.max));
    let foreign = options.given.iter().find(|key| !CLASSIC_KEYS.contains(&key.as_str()));
    problems.extend(
        foreign.map(|key| {
            (key.clone(), format!("`engine = \"classic\"` has no `{key}`; leave one of them out"))
        }),
    );
    problems
}

fn timeout_problem(min: Duration, max: Duration) -> Option<(String, String)> {
    let message = || format!("an `rto-min` of {min} is longer than the `rto-max` of {max}");
    (min > max).then(|| ("rto-min".to_owned(), message()))
}

/// Conflicts between TCP's keys, with the key that is one too many.
fn tcp_problem(config: &TcpConfig, chosen: &Chosen) -> Option<(String, String)> {
    let values = &chosen.values;
    // A flag that is off asks for nothing that another key could exclude.
    let asks = |key: &str| match values.value(key) {
        Value::Absent => false,
        Value::Flag(is_on) => *is_on || key == "fast-retransmit",
        _ => true,
    };
    let excluded = EXCLUDED.iter().find(|(one, other, _)| asks(one) && asks(other));
    if let Some((one, _, message)) = excluded {
        return Some(((*one).to_owned(), (*message).to_owned()));
    }
    let of_keepalive = ["keep-alive-interval", "keep-alive-probes"].into_iter().find(|key| asks(key));
    if let Some(key) = of_keepalive.filter(|_| !asks("keep-alive")) {
        return Some((
            key.to_owned(),
            format!("without `keep-alive` nothing is probed; give it, or leave `{key}` out"),
        ));
    }
    if let Some(problem) = timeout_problem(config.timeout.min, config.timeout.max) {
        return Some(problem);
    }
    match config.check() {
        Ok(()) => None,
        Err(TcpConfigError::Contradiction { keys, text }) => {
            let key = keys.into_iter().find(|key| *values.value(key) != Value::Absent)?;
            Some((key.to_owned(), text.to_owned()))
        }
        Err(error) => Some(("profile".to_owned(), error.to_string())),
    }
}

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
        transport: &TransportKind,
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
        self.check_sinks(flow, transport, source, places);
        self.check_xtp_service(flow, places);
        self.check_promises(flow, transport, source, places);
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
        // Congestion control holds a source back too, unless the file has the transport drop what does not get out.
        let drops =
            matches!(&flow.transport, Transport::Dccp(options) if options.when_full != WhenFull::Refuse);
        let holds_back = holds_back(flow, transport);
        let takes_all = matches!(
            &flow.transport,
            Transport::Xtp(XtpOptions {
                service: XtpService::Stream,
                error_control: ErrorControl::None,
                flow_control: FlowControl::None,
                rate: None,
                ..
            })
        );
        if (source.needs_flow_control)(values) && drops {
            let at = places.transport.span_of("when-full");
            let message = format!(
                "the source `{}` sends as fast as the transport allows, but this one takes all and drops it; leave \
                 `when-full` out{}",
                source.name,
                if source.parameters.iter().any(|p| p.name == "interval") {
                    " or give the source an `interval`"
                } else {
                    ""
                }
            );
            self.remark(at, message);
        } else if (source.needs_flow_control)(values) && takes_all {
            let message = format!(
                "the source `{}` sends as fast as the transport allows, but this one takes all; give it a `rate` or \
                 leave `flow-control` out",
                source.name
            );
            self.remark(places.transport.span_of("flow-control"), message);
        } else if (source.needs_flow_control)(values) && !holds_back {
            let message = format!(
                "the source `{}` sends as fast as the transport allows, but {} has no flow control; {}use {}",
                source.name,
                named(flow, transport),
                if source.parameters.iter().any(|p| p.name == "interval") {
                    "give it an `interval` or "
                } else {
                    ""
                },
                crate::problem::either(
                    transport::KINDS
                        .iter()
                        .filter(|t| t.features.flow_control || t.features.congestion_control)
                        .map(|t| t.name)
                ),
            );
            self.remark(at, message);
        }
        let message = (source.max_message)(values);
        if let Answer::Bytes(answer) = answer
            && answer > transport.max_message
        {
            let message = format!(
                "an answer of {answer} B is larger than the {} B that one over `{}` may have",
                transport.max_message, transport.name
            );
            self.remark(at, message);
        }
        // The largest of an exponential distribution comes once in 10^27 messages, that of a normal one once in 10^19.
        let is_rare =
            |d: &Distribution| matches!(d, Distribution::Exponential { .. } | Distribution::Normal { .. });
        if message > transport.max_message && !draws_size(flow, source, is_rare) {
            let message = format!(
                "a message of {message} B is larger than the {} B that one over `{}` may have",
                transport.max_message, transport.name
            );
            self.remark(at, message);
        } else if let Some(links) = links {
            self.check_packets(flow, source, places, links, message);
        }
        if let Err(problem) = crate::build::try_source(flow) {
            self.remark(at, problem);
        }
    }

    /// Remarks on what a flow needs and its transport does not promise.
    fn check_promises(
        &mut self,
        flow: &Flow,
        transport: &TransportKind,
        source: &SourceKind,
        places: &Places<'_>,
    ) {
        let features = promised(flow, transport);
        let reliable = |t: &&TransportKind| t.features.reliable && t.features.ordered;
        let others = || crate::problem::either(transport::KINDS.iter().filter(reliable).map(|t| t.name));
        if flow.framing == Framing::None && !(features.reliable && features.ordered) {
            let at = places.flow.node("framing").map_or(&places.transport.span, |node| &node.span);
            let message = format!(
                "without a header every message must arrive, in its order, which {} does not promise; use {}",
                named(flow, transport),
                others()
            );
            self.remark(at, message);
        }
        let unrepaired =
            matches!(&flow.transport, Transport::Xtp(options) if options.error_control == ErrorControl::None);
        if flow.framing == Framing::None && unrepaired {
            let message = "without a header every message must arrive; leave `error-control` out".to_owned();
            self.remark(places.transport.span_of("error-control"), message);
        }
        let mode = if let Transport::Quic(options) = &flow.transport { options.mode } else { Mode::Stream };
        if flow.framing == Framing::None && mode != Mode::Stream {
            let message = format!(
                "without a header every message must arrive, in its order, which mode `{}` does not promise; leave `mode` out",
                mode.name()
            );
            self.remark(places.transport.span_of("mode"), message);
        }
        self.check_options(&flow.transport, places.transport);
        if let Transport::Sctp(options) = &flow.transport {
            let needs_repair = (source.needs_reliability)(&flow.source.values);
            self.check_sctp_use(options, flow.framing == Framing::None, needs_repair, source, places);
        }
        if !(source.needs_reliability)(&flow.source.values) {
            return;
        }
        if mode == Mode::Datagrams {
            let message = format!(
                "the source `{}` would wait forever if a reply were lost; use `mode = \"streams\"`",
                source.name
            );
            self.remark(places.transport.span_of("mode"), message);
        }
        if unrepaired {
            let message = format!(
                "the source `{}` would wait forever if a reply were lost; omit `error-control`",
                source.name
            );
            self.remark(places.transport.span_of("error-control"), message);
        }
        if !features.reliable {
            let message = format!(
                "the source `{}` would wait forever if a reply were lost, and {} does not repair loss; use {}",
                source.name,
                named(flow, transport),
                others()
            );
            self.remark(&places.source.span, message);
        }
        if places
            .transport
            .values
            .iter()
            .any(|(name, value)| name == "send-timeout" && *value != Value::Absent)
        {
            let message = format!(
                "the source `{}` would wait forever if a message were abandoned; omit `send-timeout`",
                source.name
            );
            self.remark(places.transport.span_of("send-timeout"), message);
        }
    }

    /// Remarks on options of a transport that do not fit together, whatever uses it.
    pub(super) fn check_options(&mut self, transport: &Transport, chosen: &Chosen) {
        match transport {
            Transport::Tcp(options) => self.check_tcp(options, chosen),
            Transport::Sctp(options) => self.check_sctp(options, chosen),
            _ => {}
        }
    }

    /// Remarks on options of TCP that exclude each other.
    fn check_tcp(&mut self, options: &TcpOptions, chosen: &Chosen) {
        let problems = match &options.engine {
            TcpEngine::Classic(classic) => classic_problems(classic, options),
            TcpEngine::Modern(config) => tcp_problem(config, chosen).into_iter().collect(),
        };
        for (key, message) in problems {
            self.remark(chosen.span_of(&key), message);
        }
    }

    /// Remarks on options of SCTP that exclude each other.
    fn check_sctp(&mut self, options: &SctpOptions, chosen: &Chosen) {
        let given = |key: &str| chosen.values.iter().any(|(n, v)| n == key && *v != Value::Absent);
        if given("lifetime") && given("retransmissions") {
            let message = "a message has either a `lifetime` or a number of `retransmissions`; leave one out"
                .to_owned();
            self.remark(chosen.span_of("retransmissions"), message);
        }
        let shares = (options.style == SctpStyle::OneToMany).then_some("style");
        let within_udp = (options.encapsulation == sctp::Encapsulation::Udp).then_some("encapsulation");
        let buffer = options.send_buffer.and(Some("send-buffer"));
        let of_ours = gives_up(options).or(overtakes(options)).or(shares).or(within_udp).or(buffer);
        if options.engine == SctpEngine::Kernel
            && let Some(key) = of_ours
        {
            let message = format!("`engine = \"kernel\"` has no `{key}` to choose; leave one of them out");
            self.remark(chosen.span_of(key), message);
        }
    }

    /// Remarks on options of SCTP that the flow cannot do with.
    fn check_sctp_use(
        &mut self,
        options: &SctpOptions,
        headerless: bool,
        needs_repair: bool,
        source: &SourceKind,
        places: &Places<'_>,
    ) {
        if headerless && let Some(key) = gives_up(options).or(overtakes(options)) {
            let message =
                format!("without a header every message must arrive, in its order; leave `{key}` out");
            self.remark(places.transport.span_of(key), message);
        }
        if needs_repair && let Some(key) = gives_up(options) {
            let message =
                format!("the source `{}` would wait forever if a reply were lost; omit `{key}`", source.name);
            self.remark(places.transport.span_of(key), message);
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
        let mut ways = vec![(forward, "a message", message, drawn)];
        match flow.answer() {
            Answer::Bytes(answer) => ways.push((backward(), "an answer", answer, false)),
            _ if flow.reflect => ways.push((backward(), "a message", message, drawn)),
            _ => {}
        }
        let mtu = |&(link, port): &(usize, u16)| links[link].directions[usize::from(port)].mtu.count();
        for (place, (path, noun, size, drawn)) in ways.into_iter().enumerate() {
            let whole = size.saturating_add(flow.added_to(size));
            // What answers a multicast of XTP is a datagram.
            let is_datagram = |service: XtpService| {
                !service.features().fragmentation || service.is_multicast() && place > 0
            };
            let (packet, at, what) = match &flow.transport {
                // Where sizes vary, some packets may pass; those that do not are counted as too large.
                Transport::Udp(_) | Transport::UdpLite(_) if drawn => continue,
                Transport::Udp(_) | Transport::UdpLite(_) => {
                    let headers = (UDP_HEADER_LENGTH + IPV4_HEADER_LENGTH) as u64;
                    let packet = whole.saturating_add(headers);
                    let what = format!("{noun} of {size} B makes a packet of {packet} B");
                    (packet, &places.source.span, what)
                }
                Transport::Tcp(options) | Transport::Mptcp(options) => {
                    let Some(mss) = options.mss else { return };
                    let packet = mss.count() + TCP_HEADER_LENGTH + IPV4_HEADER_LENGTH as u64;
                    let what = format!("segments of {} B make packets of {packet} B", mss.count());
                    (packet, places.transport.span_of("mss"), what)
                }
                Transport::Urp(options) => {
                    let packet = options.block.count() + urp::TRAILER_LENGTH as u64;
                    let what = format!("blocks of {} B make packets of {packet} B", options.block.count());
                    (packet, places.transport.span_of("block"), what)
                }
                Transport::Rtp(_) if drawn => continue,
                Transport::Rtp(_) => {
                    let packet = whole.saturating_add(rtp::HEADERS as u64);
                    let what = format!("{noun} of {size} B makes a packet of {packet} B");
                    (packet, &places.source.span, what)
                }
                // Where sizes vary, some packets may pass; those that do not are refused as too large.
                Transport::Dccp(_) if drawn => continue,
                Transport::Dccp(options) => {
                    let headers = (dccp::HEADERS + options.encapsulation.overhead()) as u64;
                    let packet = whole.saturating_add(headers);
                    let what = format!("{noun} of {size} B makes a packet of up to {packet} B");
                    (packet, &places.source.span, what)
                }
                // Where sizes vary, some datagrams may pass; those that do not are refused as too large.
                Transport::Xtp(options) if is_datagram(options.service) && drawn => continue,
                Transport::Xtp(options) if is_datagram(options.service) => {
                    let data = whole.saturating_add(FIRST_SEGMENTS);
                    if let Some(most) = options.max_data.filter(|most| most.count() < data) {
                        let message = format!(
                            "{noun} of {size} B makes data of {data} B, more than the {most} of `max-data`"
                        );
                        return self.remark(places.transport.span_of("max-data"), message);
                    }
                    let headers = (xtp::wire::HEADER_LENGTH + options.encapsulation.headers()) as u64;
                    let packet = data + headers;
                    (packet, &places.source.span, format!("{noun} of {size} B makes a packet of {packet} B"))
                }
                Transport::Xtp(options)
                    if options.service == XtpService::Transaction
                        && !drawn
                        && whole > options.window.count() =>
                {
                    let message =
                        format!("{noun} of {whole} B does not fit into the `window` of {}", options.window);
                    return self.remark(places.transport.span_of("window"), message);
                }
                Transport::Xtp(options) => {
                    let Some(max_data) = options.max_data else { continue };
                    let headers = (xtp::wire::HEADER_LENGTH + options.encapsulation.headers()) as u64;
                    let packet = max_data.count() + headers;
                    let what = format!("data of {max_data} make packets of {packet} B");
                    (packet, places.transport.span_of("max-data"), what)
                }
                Transport::Quic(options) if options.mode == Mode::Datagrams => {
                    // Where sizes vary, some datagrams may pass; those that do not are refused as too large. Packets of
                    // handshakes are large in any case.
                    let headers = (quic::DATAGRAM_OVERHEAD + quic::HEADERS) as u64;
                    let data = if drawn { 0 } else { whole };
                    let packet = data.saturating_add(headers).max(*quic::PACKET.start() as u64);
                    if packet > *quic::PACKET.end() as u64 {
                        let message = format!(
                            "{noun} of {size} B makes a datagram of {packet} B with all headers; QUIC's packets here are \
                             at most {} B",
                            quic::PACKET.end()
                        );
                        return self.remark(&places.source.span, message);
                    }
                    (
                        packet,
                        &places.source.span,
                        format!("{noun} of {size} B makes a packet of up to {packet} B"),
                    )
                }
                Transport::Sctp(_) => {
                    let packet = sctp::MIN_PACKET as u64;
                    (packet, &places.transport.span, format!("SCTP needs packets of {packet} B"))
                }
                Transport::Quic(_) => {
                    let packet = *quic::PACKET.start() as u64;
                    (packet, &places.transport.span, format!("QUIC needs packets of {packet} B"))
                }
            };
            let narrow = path.iter().min_by_key(|at| mtu(at)).filter(|at| mtu(at) < packet);
            if let Some(narrow) = narrow {
                let message = format!(
                    "{what} with all headers, which link `{}` would drop: its MTU is {} B",
                    links[narrow.0].name,
                    mtu(narrow)
                );
                return self.remark(at, message);
            }
        }
    }
}

/// Whether the source draws a size from such a distribution.
fn draws_size(flow: &Flow, source: &SourceKind, such: impl Fn(&Distribution) -> bool) -> bool {
    let sizes = source.parameters.iter().filter(|p| matches!(p.kind, Kind::Sizes { .. }));
    sizes.map(|p| flow.source.values.value(p.name)).any(|v| matches!(v, Value::Distribution(d) if such(d)))
}

/// The option by which an SCTP gives messages up.
fn gives_up(options: &SctpOptions) -> Option<&'static str> {
    match options.reliability {
        Reliability::Full => None,
        Reliability::Lifetime(_) => Some("lifetime"),
        Reliability::Retransmissions(_) => Some("retransmissions"),
    }
}

/// The option by which messages of an SCTP overtake each other.
fn overtakes(options: &SctpOptions) -> Option<&'static str> {
    let all = [("ordered", !options.ordered), ("streams", options.streams > 1)];
    all.into_iter().find_map(|(key, does)| does.then_some(key))
}
