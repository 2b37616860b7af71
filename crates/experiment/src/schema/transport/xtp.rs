//! XTP and its options.

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_transport::framing::MAX_PAYLOAD;
use trunkline_transport::{features, xtp};

use super::TransportKind;
use crate::model::{Transport, XtpOptions, XtpService};

/// XTP.
pub(super) const KIND: TransportKind = TransportKind {
    name: "xtp",
    doc: "XTP 4.0 (XTP Forum 1995), one conversation per member. Every mechanism is chosen \
          by itself. Messages that \
          wait leave together, as many whole ones in a packet as fit.",
    parameters: &[
        Parameter {
            name: "service",
            kind: Kind::Choice(&[
                Choice { name: "stream", doc: "a stream to one sink" },
                Choice { name: "datagram", doc: "every message by itself, unacknowledged" },
                Choice {
                    name: "acknowledged-datagram",
                    doc: "every message by itself, repeated until it is acknowledged",
                },
                Choice { name: "transaction", doc: "a request and its answer; needs `reflect = true`" },
                Choice { name: "multicast", doc: "a stream to any number of sinks, unacknowledged" },
                Choice {
                    name: "reliable-multicast",
                    doc: "a stream to any number of sinks, of which the slowest sets the pace and what any of them misses \
                          is repeated to all; what they send back with `reflect` are acknowledged datagrams",
                },
            ]),
            default: Preset::Text("stream"),
            doc: "What is done for messages. Options that a service does not have are refused.",
        },
        Parameter {
            name: "error-control",
            kind: Kind::Choice(&[
                Choice { name: "selective", doc: "the gaps that the receiver reports are sent again" },
                Choice { name: super::NONE, doc: "nothing: the stream goes on past losses (NOERR)" },
            ]),
            default: Preset::Text("selective"),
            doc: "What is done about losses.",
        },
        Parameter {
            name: "fast-nak",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "The receiver reports a gap at once (FASTNAK), not only when it is asked.",
        },
        Parameter {
            name: "flow-control",
            kind: Kind::Choice(&[
                Choice { name: "window", doc: "the receiver allocates what its buffer holds" },
                Choice { name: "reserved", doc: "the receiver allocates what its user has asked for (RES)" },
                Choice { name: super::NONE, doc: "nothing (NOFLOW)" },
            ]),
            default: Preset::Text("window"),
            doc: "What holds the sender back.",
        },
        Parameter {
            name: "window",
            kind: Kind::Bytes { min: Bytes(1 << 8), max: Bytes(1 << 30) },
            default: Preset::Text("64 KiB"),
            doc: "Receive buffer; as much waits at the sender.",
        },
        Parameter {
            name: "acknowledge",
            kind: Kind::Choice(&[
                Choice { name: "every", doc: "with every packet, or every n-th as `every` says" },
                Choice { name: "on-request", doc: "when it could not go on without" },
                Choice {
                    name: "never",
                    doc: "only to open and to close; needs `error-control` and `flow-control` `none`",
                },
            ]),
            default: Preset::Text("every"),
            doc: "When the sender asks for an acknowledgement.",
        },
        Parameter {
            name: "every",
            kind: Kind::Integer { min: 1, max: 1_000_000 },
            default: Preset::Absent,
            doc: "With every how many data packets, if `acknowledge` is `every`. Without this key 1, and in a reliable \
                  multicast 8, and never less than four times the receivers.",
        },
        Parameter {
            name: "acknowledged-when",
            kind: Kind::Choice(&[
                Choice { name: "arrived", doc: "the data arrived (SREQ)" },
                Choice { name: "delivered", doc: "the data were read (DREQ)" },
            ]),
            default: Preset::Text("arrived"),
            doc: "What an acknowledgement means.",
        },
        Parameter {
            name: "rate",
            kind: Kind::Rate {
                min: Rate::from_bits_per_second(8),
                max: Rate::from_bits_per_second(34_000_000_000),
            },
            default: Preset::Absent,
            doc: "Rate control: the most data that are sent in a time, without headers.",
        },
        Parameter {
            name: "burst",
            kind: Kind::Bytes { min: Bytes(1), max: Bytes(1 << 30) },
            default: Preset::Absent,
            doc: "The most that are sent at once under `rate`, and the credit of each of its periods; without this key \
                  ten packets' worth.",
        },
        Parameter {
            name: "checksum",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "The checksum covers the data, not only the header (otherwise NOCHECK).",
        },
        Parameter {
            name: "open",
            kind: Kind::Choice(&[
                Choice { name: "handshake", doc: "data follow when the first packet was answered" },
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
                    doc: "IP protocol 36: 20 bytes per packet; in `live` through raw sockets",
                },
                Choice { name: "udp", doc: "the payload of UDP: 28 bytes per packet" },
                Choice {
                    name: "revision-3.6",
                    doc: "the link's frames, with the sizes of XTP 3.6 (Weaver & McNabb 1992): 44 bytes beside the data, \
                          control packets of 92 bytes; for `sim`",
                },
            ]),
            default: Preset::Text("ip"),
            doc: "What carries the packets.",
        },
        Parameter {
            name: "withhold",
            kind: Kind::Ratio,
            default: Preset::Text("0 %"),
            doc: "The share of the packets with new data that a receiver delivers and does not acknowledge: the sender learns \
                  from later reports that they are missing, and repeats them. So Weaver & McNabb (1992) made loss.",
        },
        Parameter {
            name: "max-data",
            kind: Kind::Bytes { min: Bytes(96), max: Bytes(65_475) },
            default: Preset::Absent,
            doc: "The most data in a packet, behind its header of 32 bytes; without this key what the MTU allows.",
        },
        Parameter {
            name: "sort",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Packets carry the flow's `priority` (SORT).",
        },
        Parameter {
            name: "wait",
            kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(60) },
            default: Preset::Text("1 s"),
            doc: "How long the first request for status waits for its answer (WTIMER); later ones by the measured round \
                  trip.",
        },
        Parameter {
            name: "patience",
            kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(86_400) },
            default: Preset::Text("60 s"),
            doc: "How long a peer may say nothing, though it was asked, before it counts as gone (CTIMEOUT): a stream is \
                  over then, and a reliable multicast goes on without that receiver.",
        },
        Parameter {
            name: "quorum",
            kind: Kind::Integer { min: 1, max: 65_535 },
            default: Preset::Absent,
            doc: "How many receivers must have joined a reliable multicast before it begins; without this key all that join \
                  at the beginning of the run.",
        },
        Parameter {
            name: "slot",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(10) },
            default: Preset::Text("1 ms"),
            doc: "How long a slot is by which the receivers of a reliable multicast hold their control packets back.",
        },
        Parameter {
            name: "slots",
            kind: Kind::Integer { min: 1, max: 1_000_000 },
            default: Preset::Text("20"),
            doc: "Among how many slots they draw.",
        },
        Parameter {
            name: "repair-wait",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(60) },
            default: Preset::Text("200 ms"),
            doc: "How long the repair of a gap that a receiver has reported may take before it is reported again.",
        },
    ],
    features: &features::XTP,
    max_message: MAX_PAYLOAD as u64,
    read: |values| {
        let service = match values.text("service").as_str() {
            "datagram" => XtpService::Datagram,
            "acknowledged-datagram" => XtpService::AcknowledgedDatagram,
            "transaction" => XtpService::Transaction,
            "multicast" => XtpService::Multicast,
            "reliable-multicast" => XtpService::ReliableMulticast,
            _ => XtpService::Stream,
        };
        let every = values.integer_if_given("every").unwrap_or(match service {
            XtpService::ReliableMulticast => 8,
            _ => 1,
        });
        // All integers here are at most a million.
        Transport::Xtp(XtpOptions {
            service,
            error_control: match values.text("error-control").as_str() {
                super::NONE => xtp::ErrorControl::None,
                _ => xtp::ErrorControl::Selective,
            },
            fast_nak: values.flag("fast-nak"),
            flow_control: match values.text("flow-control").as_str() {
                super::NONE => xtp::FlowControl::None,
                "reserved" => xtp::FlowControl::Reserved,
                _ => xtp::FlowControl::Window,
            },
            window: values.bytes("window"),
            acknowledge: match values.text("acknowledge").as_str() {
                "never" => xtp::Acknowledge::Never,
                "on-request" => xtp::Acknowledge::OnRequest,
                _ => xtp::Acknowledge::Every(every as u32),
            },
            meaning: match values.text("acknowledged-when").as_str() {
                "delivered" => xtp::Meaning::Delivered,
                _ => xtp::Meaning::Arrived,
            },
            rate: values.rate_if_given("rate"),
            burst: values.bytes_if_given("burst"),
            checksum: values.flag("checksum"),
            open: match values.text("open").as_str() {
                "implicit" => xtp::Open::Implicit,
                _ => xtp::Open::Handshake,
            },
            encapsulation: match values.text("encapsulation").as_str() {
                "udp" => xtp::Encapsulation::Udp,
                "revision-3.6" => xtp::Encapsulation::Revision36,
                _ => xtp::Encapsulation::Ip,
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
