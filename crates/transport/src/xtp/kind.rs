//! XTP as experiment files name it.

use std::sync::Arc;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Address, Bytes, Duration, Rate, Ratio};

use super::answered::Answered;
use super::wire::{ADDRESS_LENGTH, HEADER_LENGTH, TRAFFIC_LENGTH};
use super::{
    Acknowledge, Encapsulation, ErrorControl, FlowControl, IP_PROTOCOL, Meaning, Open, RateLimit, XtpConfig,
    XtpDatagrams, XtpEndpoint, XtpGroupConfig, XtpGroupReceiver, XtpGroupSender, XtpTransactions,
};
use crate::conversation::Features;
use crate::features;
use crate::framing::MOST_OF_STREAM;
use crate::kind::{
    Advised, Carrier, Conflict, FeatureMode, FlowNeeds, Group, GroupPlace, IPV4_UDP, Made, MessageSize, NONE,
    Packet, Pair, Place, Sockets, TransportKind, TransportOptions, Written,
};

/// Bytes in front of the data of XTP's FIRST packets, behind their header.
const FIRST_SEGMENTS: u64 = (ADDRESS_LENGTH + TRAFFIC_LENGTH) as u64;

/// XTP.
pub const KIND: TransportKind = TransportKind {
    name: "xtp",
    doc: "XTP 4.0 (XTP Forum 1995), one conversation per member. Each mechanism is selected separately. \
          Waiting messages are sent together, as many whole messages per packet as fit. Packets have a header \
          of 32 bytes; those that open a conversation, which every datagram and every request does, have 40 \
          bytes more: an address segment and a traffic specifier.",
    parameters: &[
        Parameter {
            name: "service",
            kind: Kind::Choice(&[
                Choice { name: "stream", doc: "a stream to one sink" },
                Choice { name: "datagram", doc: "individual messages, unacknowledged" },
                Choice {
                    name: "acknowledged-datagram",
                    doc: "individual messages, each repeated until it is acknowledged",
                },
                Choice { name: "transaction", doc: "a request and its reply; requires `reflect = true`" },
                Choice { name: "multicast", doc: "a stream to any number of sinks, unacknowledged" },
                Choice {
                    name: "reliable-multicast",
                    doc: "a stream to any number of sinks. The slowest sink determines the rate, and data \
                          that any sink misses is sent again to all. With `reflect`, replies are \
                          acknowledged datagrams",
                },
            ]),
            default: Preset::Text("stream"),
            doc: "The service. Options that do not apply to it are refused.",
        },
        Parameter {
            name: "error-control",
            kind: Kind::Choice(&[
                Choice { name: "selective", doc: "gaps reported by the receiver are retransmitted" },
                Choice { name: NONE, doc: "none: the stream continues after losses (NOERR)" },
            ]),
            default: Preset::Text("selective"),
            doc: "Recovery from losses.",
        },
        Parameter {
            name: "fast-nak",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Whether the receiver reports a gap at once (FASTNAK) instead of on request.",
        },
        Parameter {
            name: "flow-control",
            kind: Kind::Choice(&[
                Choice { name: "window", doc: "the receiver allocates the space in its buffer" },
                Choice {
                    name: "reserved",
                    doc: "the receiver allocates what its application has requested (RES)",
                },
                Choice { name: NONE, doc: "none (NOFLOW)" },
            ]),
            default: Preset::Text("window"),
            doc: "Flow control.",
        },
        Parameter {
            name: "window",
            kind: Kind::Bytes { min: Bytes(1 << 8), max: Bytes(1 << 30) },
            default: Preset::Text("64 KiB"),
            doc: "Size of the receive buffer and of the send buffer.",
        },
        Parameter {
            name: "acknowledge",
            kind: Kind::Choice(&[
                Choice { name: "every", doc: "with every packet, or every nth as set by `every`" },
                Choice { name: "on-request", doc: "when the sender cannot continue without it" },
                Choice {
                    name: "never",
                    doc: "only to open and close; requires `error-control` and `flow-control` to be `none`",
                },
            ]),
            default: Preset::Text("every"),
            doc: "When the sender requests an acknowledgement.",
        },
        Parameter {
            name: "every",
            kind: Kind::Integer { min: 1, max: 1_000_000 },
            default: Preset::Absent,
            doc: "Data packets per requested acknowledgement, if `acknowledge` is `every`. Without this key, \
                  1; in a reliable multicast 8, and never less than four times the number of receivers.",
        },
        Parameter {
            name: "acknowledged-when",
            kind: Kind::Choice(&[
                Choice { name: "arrived", doc: "the data has arrived (SREQ)" },
                Choice { name: "delivered", doc: "the application has read the data (DREQ)" },
            ]),
            default: Preset::Text("arrived"),
            doc: "Meaning of an acknowledgement.",
        },
        Parameter {
            name: "rate",
            kind: Kind::Rate {
                min: Rate::from_bits_per_second(8),
                max: Rate::from_bits_per_second(34_000_000_000),
            },
            default: Preset::Absent,
            doc: "Rate limit of the data, without headers.",
        },
        Parameter {
            name: "burst",
            kind: Kind::Bytes { min: Bytes(1), max: Bytes(1 << 30) },
            default: Preset::Absent,
            doc: "Maximum amount of data sent at once under `rate`, and the credit of each of its periods. \
                  Without this key, ten packets.",
        },
        Parameter {
            name: "checksum",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Whether the checksum covers the data, not only the header (otherwise NOCHECK: damaged data is \
                  delivered, but a message whose measurement header is damaged counts as lost).",
        },
        Parameter {
            name: "open",
            kind: Kind::Choice(&[
                Choice { name: "handshake", doc: "data is sent after the first packet has been answered" },
                Choice { name: "implicit", doc: "the first packet carries data" },
            ]),
            default: Preset::Text("handshake"),
            doc: "How a stream is opened.",
        },
        Parameter {
            name: "encapsulation",
            kind: Kind::Choice(&[
                Choice {
                    name: "ip",
                    doc: "IP protocol 36: 20 bytes per packet; in `live`, through raw sockets",
                },
                Choice { name: "udp", doc: "UDP: 28 bytes per packet" },
                Choice {
                    name: "revision-3.6",
                    doc: "the link's frames, with the sizes of XTP 3.6 (Weaver & McNabb 1992): 44 bytes of \
                          headers per data packet, control packets of 92 bytes; `sim` only",
                },
            ]),
            default: Preset::Text("ip"),
            doc: "Encapsulation of the packets.",
        },
        Parameter {
            name: "withhold",
            kind: Kind::Ratio,
            default: Preset::Text("0 %"),
            doc: "Share of packets with new data that the receiver delivers but does not acknowledge. The \
                  sender learns from later reports that they are missing and retransmits them. Weaver & \
                  McNabb (1992) emulated loss in this way.",
        },
        Parameter {
            name: "max-data",
            kind: Kind::Bytes { min: Bytes(96), max: Bytes(65_475) },
            default: Preset::Absent,
            doc: "Maximum data per packet, after the header of 32 bytes. Without this key, as much as the \
                  MTU allows.",
        },
        Parameter {
            name: "sort",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Whether packets carry the flow's `priority` (SORT).",
        },
        Parameter {
            name: "wait",
            kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(60) },
            default: Preset::Text("1 s"),
            doc: "Timeout of the first status request (WTIMER); later timeouts follow the measured round \
                  trip.",
        },
        Parameter {
            name: "patience",
            kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(86_400) },
            default: Preset::Text("60 s"),
            doc: "Time without any reply to requests after which a peer is considered lost (CTIMEOUT). A \
                  stream then ends; a reliable multicast continues without that receiver.",
        },
        Parameter {
            name: "quorum",
            kind: Kind::Integer { min: 1, max: 65_535 },
            default: Preset::Absent,
            doc: "Number of receivers that must have joined before a reliable multicast begins. Without this \
                  key, all that join at the start of the run.",
        },
        Parameter {
            name: "slot",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(10) },
            default: Preset::Text("1 ms"),
            doc: "Length of a slot, the unit by which receivers of a reliable multicast delay their control \
                  packets.",
        },
        Parameter {
            name: "slots",
            kind: Kind::Integer { min: 1, max: 1_000_000 },
            default: Preset::Text("20"),
            doc: "Number of slots from which each receiver draws one.",
        },
        Parameter {
            name: "repair-wait",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(60) },
            default: Preset::Text("200 ms"),
            doc: "Time for the repair of a reported gap before the receiver reports it again.",
        },
    ],
    features: &features::XTP,
    modes: &[
        FeatureMode { option: "service = \"datagram\"", features: &features::XTP_DATAGRAM },
        FeatureMode {
            option: "service = \"acknowledged-datagram\"",
            features: &features::XTP_ACKNOWLEDGED_DATAGRAM,
        },
        FeatureMode { option: "service = \"transaction\"", features: &features::XTP_TRANSACTION },
        FeatureMode { option: "service = \"multicast\"", features: &features::XTP_MULTICAST },
        FeatureMode {
            option: "service = \"reliable-multicast\"",
            features: &features::XTP_RELIABLE_MULTICAST,
        },
        FeatureMode { option: "error-control = \"none\"", features: &features::XTP_UNREPAIRED },
        FeatureMode { option: "flow-control = \"none\"", features: &features::XTP_UNHINDERED },
        FeatureMode { option: "checksum = false", features: &features::XTP_UNCHECKED },
    ],
    // The fixed header of XTP 4.0 and the data segment's.
    advised: Some(Advised { rank: 5, headers: IPV4_UDP + 40, alike: "xtp" }),
    max_message: MOST_OF_STREAM,
    options: |values| {
        let service = match values.text("service").as_str() {
            "datagram" => Service::Datagram,
            "acknowledged-datagram" => Service::AcknowledgedDatagram,
            "transaction" => Service::Transaction,
            "multicast" => Service::Multicast,
            "reliable-multicast" => Service::ReliableMulticast,
            _ => Service::Stream,
        };
        let every = values.integer_if_given("every").unwrap_or(match service {
            Service::ReliableMulticast => 8,
            _ => 1,
        });
        // All integers here are at most a million.
        Arc::new(Xtp {
            service,
            error_control: match values.text("error-control").as_str() {
                NONE => ErrorControl::None,
                _ => ErrorControl::Selective,
            },
            fast_nak: values.flag("fast-nak"),
            flow_control: match values.text("flow-control").as_str() {
                NONE => FlowControl::None,
                "reserved" => FlowControl::Reserved,
                _ => FlowControl::Window,
            },
            window: values.bytes("window"),
            acknowledge: match values.text("acknowledge").as_str() {
                "never" => Acknowledge::Never,
                "on-request" => Acknowledge::OnRequest,
                _ => Acknowledge::Every(every as u32),
            },
            meaning: match values.text("acknowledged-when").as_str() {
                "delivered" => Meaning::Delivered,
                _ => Meaning::Arrived,
            },
            rate: values.rate_if_given("rate"),
            burst: values.bytes_if_given("burst"),
            checksum: values.flag("checksum"),
            open: match values.text("open").as_str() {
                "implicit" => Open::Implicit,
                _ => Open::Handshake,
            },
            encapsulation: match values.text("encapsulation").as_str() {
                "udp" => Encapsulation::Udp,
                "revision-3.6" => Encapsulation::Revision36,
                _ => Encapsulation::Ip,
            },
            withhold: values.ratio("withhold"),
            max_data: values.bytes_if_given("max-data"),
            sort: values.flag("sort"),
            wait: values.duration("wait"),
            patience: values.duration("patience"),
            quorum: values.integer_if_given("quorum").map(|quorum| quorum as u32),
            slot: values.duration("slot"),
            slots: values.integer("slots") as u32,
            repair_wait: values.duration("repair-wait"),
        })
    },
};

/// Options of XTP. Those that the service does not have are not looked at.
#[derive(Debug)]
struct Xtp {
    service: Service,
    error_control: ErrorControl,
    fast_nak: bool,
    flow_control: FlowControl,
    window: Bytes,
    acknowledge: Acknowledge,
    meaning: Meaning,
    rate: Option<Rate>,
    burst: Option<Bytes>,
    checksum: bool,
    open: Open,
    encapsulation: Encapsulation,
    withhold: Ratio,
    max_data: Option<Bytes>,
    sort: bool,
    wait: Duration,
    patience: Duration,
    quorum: Option<u32>,
    slot: Duration,
    slots: u32,
    repair_wait: Duration,
}

/// The services of XTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    /// A stream to one sink.
    Stream,
    /// A message by itself, unacknowledged.
    Datagram,
    /// A message by itself, repeated until it is acknowledged.
    AcknowledgedDatagram,
    /// A message and its answer.
    Transaction,
    /// A stream to many sinks, unacknowledged.
    Multicast,
    /// A stream to many sinks, repaired.
    ReliableMulticast,
}

impl Service {
    /// Its word in the file.
    const fn name(self) -> &'static str {
        match self {
            Service::Stream => "stream",
            Service::Datagram => "datagram",
            Service::AcknowledgedDatagram => "acknowledged-datagram",
            Service::Transaction => "transaction",
            Service::Multicast => "multicast",
            Service::ReliableMulticast => "reliable-multicast",
        }
    }

    /// Promises of the service.
    const fn features(self) -> &'static Features {
        match self {
            Service::Stream => &features::XTP,
            Service::Datagram => &features::XTP_DATAGRAM,
            Service::AcknowledgedDatagram => &features::XTP_ACKNOWLEDGED_DATAGRAM,
            Service::Transaction => &features::XTP_TRANSACTION,
            Service::Multicast => &features::XTP_MULTICAST,
            Service::ReliableMulticast => &features::XTP_RELIABLE_MULTICAST,
        }
    }

    /// Returns true if one transmission reaches all sinks.
    const fn is_multicast(self) -> bool {
        matches!(self, Service::Multicast | Service::ReliableMulticast)
    }
}

/// Options of XTP that only some services have. All others belong to every service.
const OF_SERVICES: &[(&str, &[Service])] = {
    use Service::{AcknowledgedDatagram, Multicast, ReliableMulticast, Stream, Transaction};
    &[
        ("error-control", &[Stream]),
        ("fast-nak", &[Stream, Transaction, ReliableMulticast]),
        ("flow-control", &[Stream, Transaction]),
        ("acknowledge", &[Stream, Transaction]),
        ("every", &[Stream, Transaction, ReliableMulticast]),
        ("withhold", &[Stream]),
        ("acknowledged-when", &[Stream, Transaction]),
        ("rate", &[Stream, Transaction, Multicast, ReliableMulticast]),
        ("burst", &[Stream, Transaction, Multicast, ReliableMulticast]),
        ("checksum", &[Stream, Transaction, Multicast, ReliableMulticast]),
        ("open", &[Stream]),
        ("wait", &[Stream, AcknowledgedDatagram, Transaction, ReliableMulticast]),
        ("patience", &[Stream, AcknowledgedDatagram, Transaction, ReliableMulticast]),
        ("quorum", &[ReliableMulticast]),
        ("slot", &[ReliableMulticast]),
        ("slots", &[ReliableMulticast]),
        ("repair-wait", &[ReliableMulticast]),
    ]
};

impl Xtp {
    /// The size of its packets where the path carries `mtu`.
    fn max_packet(&self, mtu: Option<Bytes>) -> usize {
        let by_mtu = mtu.map_or(XtpConfig::default().max_packet, |mtu| {
            (mtu.count() as usize).saturating_sub(self.encapsulation.headers()).clamp(128, 65_507)
        });
        self.max_data.map_or(by_mtu, |data| data.count() as usize + HEADER_LENGTH)
    }

    fn send_rate(&self, max_packet: usize) -> Option<RateLimit> {
        let bytes = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let ten_packets = (10 * (max_packet - HEADER_LENGTH)) as u32;
        Some(RateLimit {
            rate: bytes(self.rate?.bits_per_second() / 8).max(1),
            burst: self.burst.map_or(ten_packets, |burst| bytes(burst.count())),
        })
    }

    /// Packets are as large as the path carries, unless `max-data` limits them.
    fn config(&self, place: &Place<'_>) -> XtpConfig {
        let max_packet = self.max_packet(place.mtu);
        let send_rate = self.send_rate(max_packet);
        XtpConfig {
            encapsulation: self.encapsulation,
            max_packet,
            open: self.open,
            error_control: self.error_control,
            fast_nak: self.fast_nak,
            flow_control: self.flow_control,
            send_rate,
            checksum: self.checksum,
            acknowledge: self.acknowledge,
            meaning: self.meaning,
            withhold: self.withhold,
            sort: self.sort.then_some(place.priority),
            // A sender that can just fill its peer's window: more would only add delay before the network.
            send_buffer: self.window.count() as usize,
            receive_buffer: self.window.count() as usize,
            initial_wait: self.wait,
            patience: Some(self.patience),
            ..XtpConfig::default()
        }
    }

    /// A reliable multicast waits for the sinks that listen from the start, unless `quorum` is given.
    fn group_config(&self, place: &Place<'_>, group: &GroupPlace<'_>) -> XtpGroupConfig {
        let stream = self.config(place);
        if self.service == Service::Multicast {
            let defaults = XtpGroupConfig::unacknowledged(group.address);
            let XtpConfig { error_control, flow_control, acknowledge, .. } = defaults.stream;
            return XtpGroupConfig {
                stream: XtpConfig { error_control, flow_control, acknowledge, ..stream },
                ..defaults
            };
        }
        let defaults = XtpGroupConfig::reliable(group.address);
        XtpGroupConfig {
            stream,
            quorum: self.quorum.unwrap_or(group.prompt).max(1) as usize,
            max_receivers: usize::from(u16::MAX),
            slot: self.slot,
            slots: self.slots,
            repair_wait: self.repair_wait,
            ..defaults
        }
    }

    /// Returns true if each message is one packet.
    fn is_datagram(&self, is_back: bool) -> bool {
        // What answers a multicast is a datagram.
        !self.service.features().fragmentation || self.service.is_multicast() && is_back
    }

    /// Headers of the network and XTP's own.
    fn headers(&self) -> u64 {
        (HEADER_LENGTH + self.encapsulation.headers()) as u64
    }
}

impl TransportOptions for Xtp {
    fn features(&self) -> &'static Features {
        const MULTICAST: Features = Features { checksum: false, ..features::XTP_MULTICAST };
        const RELIABLE: Features = Features { checksum: false, ..features::XTP_RELIABLE_MULTICAST };
        match self.service {
            Service::Stream if !self.checksum => &features::XTP_UNCHECKED,
            Service::Multicast if !self.checksum => &MULTICAST,
            Service::ReliableMulticast if !self.checksum => &RELIABLE,
            service => service.features(),
        }
    }

    fn called(&self) -> String {
        match self.service {
            Service::Stream => "`xtp`".to_owned(),
            service => format!("the service `{}` of `xtp`", service.name()),
        }
    }

    fn is_reliable(&self) -> bool {
        match self.service {
            Service::Stream => self.error_control != ErrorControl::None,
            service => service.features().reliable,
        }
    }

    fn holds_back(&self) -> bool {
        match self.service {
            Service::Datagram => false,
            Service::Multicast => self.rate.is_some(),
            // Acknowledged datagrams by what is not acknowledged.
            _ => true,
        }
    }

    fn is_multicast(&self) -> bool {
        self.service.is_multicast()
    }

    fn buffers(&self) -> Bytes {
        Bytes(self.window.count().saturating_mul(2))
    }

    fn in_flight(&self) -> Option<(&'static str, Bytes)> {
        (self.service == Service::Stream).then_some(("window", self.window))
    }

    fn takes_two_round_trips(&self) -> bool {
        self.acknowledge == Acknowledge::OnRequest
    }

    fn rate_control(&self, mtu: Bytes) -> Option<(Rate, Bytes, Bytes)> {
        let max_packet = self.max_packet(Some(mtu));
        let limit = self.send_rate(max_packet)?;
        let rate = Rate::from_bits_per_second(u64::from(limit.rate) * 8);
        Some((rate, Bytes(limit.burst.into()), Bytes((max_packet - HEADER_LENGTH) as u64)))
    }

    fn check(&self, written: &Written<'_>) -> Vec<Conflict> {
        let foreign = OF_SERVICES
            .iter()
            .filter(|(key, services)| !services.contains(&self.service) && (written.has)(key));
        let conflict = |key: &str| {
            Conflict::new(key, format!("the service `{}` has no `{key}`; leave it out", self.service.name()))
        };
        foreign.map(|(key, _)| conflict(key)).collect()
    }

    fn check_use(&self, flow: &FlowNeeds<'_>) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        let mut conflict = |key: &str, message: String| conflicts.push(Conflict::new(key, message));
        if self.service == Service::Transaction && !flow.reflect {
            let message = "a transaction is a request and its reply; set `reflect = true`";
            conflict("service", message.to_owned());
        }
        let sinks = flow.sinks;
        if let Some(quorum) = self.quorum.filter(|quorum| *quorum as usize > sinks) {
            let message = format!("a `quorum` of {quorum} is more than the {sinks} sinks that there are");
            conflict("quorum", message);
        }
        let unrepaired = self.error_control == ErrorControl::None;
        if unrepaired && flow.headerless {
            let message = "without a header every message must arrive; leave `error-control` out";
            conflict("error-control", message.to_owned());
        }
        if unrepaired && flow.repair {
            conflict("error-control", flow.would_wait("a reply were lost", "omit `error-control`"));
        }
        let takes_all = unrepaired
            && self.service == Service::Stream
            && self.flow_control == FlowControl::None
            && self.rate.is_none();
        if takes_all && flow.backpressure {
            let instead = "give it a `rate` or leave `flow-control` out";
            conflict("flow-control", flow.not_held_back("this one takes all", instead));
        }
        conflicts
    }

    fn packet(&self, message: &MessageSize<'_>) -> Packet {
        let MessageSize { noun, size, whole, varies, is_back } = *message;
        if self.is_datagram(is_back) {
            let data = whole.saturating_add(FIRST_SEGMENTS);
            return match self.max_data.filter(|most| most.count() < data) {
                _ if varies => Packet::Fits,
                Some(most) => Packet::TooLarge {
                    message: format!(
                        "{noun} of {size} B makes data of {data} B, more than the {most} of `max-data`"
                    ),
                    key: Some("max-data"),
                },
                None => Packet::of_message(message, (FIRST_SEGMENTS + self.headers()) as usize, ""),
            };
        }
        if self.service == Service::Transaction && !varies && whole > self.window.count() {
            let message = format!("{noun} of {whole} B does not fit into the `window` of {}", self.window);
            return Packet::TooLarge { message, key: Some("window") };
        }
        let Some(max_data) = self.max_data else { return Packet::Fits };
        let bytes = max_data.count() + self.headers();
        let what = format!("data of {max_data} make packets of {bytes} B");
        Packet::Needs { bytes, what, key: Some("max-data") }
    }

    fn pair(&self, place: &Place<'_>) -> Result<Pair, String> {
        let (Place { near, far, .. }, config) = (*place, self.config(place));
        let [one, other] = ["xtp/near", "xtp/far"].map(|end| place.bits(end));
        match self.service {
            Service::Stream => Pair::of(
                place,
                XtpEndpoint::connect(near, far, &config, one),
                XtpEndpoint::listen(far, &config, other),
            ),
            Service::Datagram | Service::AcknowledgedDatagram => {
                let acknowledged = self.service == Service::AcknowledgedDatagram;
                Pair::of(
                    place,
                    XtpDatagrams::new(near, far, &config, acknowledged, one),
                    XtpDatagrams::new(far, near, &config, acknowledged, other),
                )
            }
            Service::Transaction => Pair::of(
                place,
                XtpTransactions::connect(near, far, &config, one),
                XtpTransactions::listen(far, near, &config, other),
            ),
            Service::Multicast | Service::ReliableMulticast => {
                Err(format!("the service `{}` does not connect two ends", self.service.name()))
            }
        }
    }

    fn group(&self, place: &Place<'_>, group: &GroupPlace<'_>) -> Result<Group, String> {
        if !self.service.is_multicast() {
            return Err("the transport reaches one sink".to_owned());
        }
        let (near, config) = (place.near, self.group_config(place, group));
        let bits = |end: &str| place.bits(&format!("xtp/{end}"));
        let answers = |local, peer, end: &str| {
            let seed = bits(&format!("{end}/answers"));
            XtpDatagrams::new(local, peer, &config.stream, true, seed).map_err(|error| error.to_string())
        };
        let receiver = |(place, at): (usize, Address)| {
            let end = format!("far/{place}");
            let stream = XtpGroupReceiver::new(at, &config, bits(&end)).map_err(|error| error.to_string())?;
            Ok(match group.reflect {
                true => Made::new(at, Answered::receiver(stream, near.host, answers(at, near, &end)?)),
                false => Made::new(at, stream),
            })
        };
        let sinks = || group.sinks.iter().copied();
        let stream = XtpGroupSender::new(near, &config, bits("near")).map_err(|error| error.to_string())?;
        let sender = match group.reflect {
            true => {
                let of = |at: Address| Ok((at.host, answers(near, at, &format!("near/{}", at.host))?));
                Made::new(near, Answered::sender(stream, sinks().map(of).collect::<Result<_, String>>()?))
            }
            false => Made::new(near, stream),
        };
        let far = sinks().enumerate().map(receiver).collect::<Result<_, String>>()?;
        Ok(Group { near: sender, address: group.address, far })
    }

    fn sockets(&self) -> Sockets {
        Sockets::Carried(match self.encapsulation {
            Encapsulation::Ip => Carrier::Ip { protocol: IP_PROTOCOL, has_ports: false },
            _ => Carrier::Udp,
        })
    }

    fn only_simulated(&self) -> Option<String> {
        let message = "`encapsulation = \"revision-3.6\"` is for `sim` only; use `\"udp\"`";
        (self.encapsulation == Encapsulation::Revision36).then(|| message.to_owned())
    }

    fn not_for_sessions(&self) -> Option<String> {
        let name = self.service.name();
        self.service.is_multicast().then(|| format!("the service `{name}` does not connect two ends"))
    }
}
