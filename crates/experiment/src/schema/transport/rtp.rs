//! RTP and its options.

use trunkline_core::Rate;
use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_transport::framing::HEADER_LENGTH;
use trunkline_transport::{features, rtp};

use super::TransportKind;
use crate::model::{RtpOptions, Transport};

/// RTP.
pub(super) const KIND: TransportKind = TransportKind {
    name: "rtp",
    doc: "RTP and RTCP (RFC 3550) over UDP, both on one port (RFC 5761), one session per member. Every \
          message is the payload of one packet. Nothing is repaired, \
          nothing holds the sender back, and duplicates are dropped. Both ends send reports while either sends data.",
    parameters: &[
        Parameter {
            name: "payload",
            kind: Kind::Choice(&[
                Choice { name: "pcmu", doc: "mu-law, a byte per sample (RFC 3551 section 4.5.14)" },
                Choice { name: "l16", doc: "linear, two bytes per sample (RFC 3551 section 4.5.11)" },
            ]),
            default: Preset::Text("pcmu"),
            doc: "What the messages hold, by which timestamps count samples.",
        },
        Parameter {
            name: "clock",
            kind: Kind::Integer { min: 1000, max: 768_000 },
            default: Preset::Absent,
            doc: "Samples per second. Without this key 8000 of `pcmu` and 44100 of `l16`.",
        },
        Parameter {
            name: "channels",
            kind: Kind::Integer { min: 1, max: 255 },
            default: Preset::Text("1"),
            doc: "Channels, whose samples take turns.",
        },
        Parameter {
            name: "reports",
            kind: Kind::Choice(&[
                Choice { name: "fixed", doc: "about 5 s apart, or more" },
                Choice {
                    name: "reduced",
                    doc: "about 360 s apart, divided by `session-bandwidth` in kbit/s, or more",
                },
                Choice { name: super::NONE, doc: "never" },
            ]),
            default: Preset::Text("fixed"),
            doc: "How often each end reports: at random times, so rarely that all reports together take 5 % of \
                  `session-bandwidth` (RFC 3550 section 6.2).",
        },
        Parameter {
            name: "session-bandwidth",
            kind: Kind::Rate {
                min: Rate::from_bits_per_second(1000),
                max: Rate::from_bits_per_second(1_000_000_000_000),
            },
            default: Preset::Text("64 kbit/s"),
            doc: "What the session is expected to use; only reports depend on it.",
        },
    ],
    features: &features::RTP,
    max_message: (rtp::MAX_MESSAGE - HEADER_LENGTH) as u64,
    read: |values| {
        // At most 768,000 and 255.
        let clock = values.integer_if_given("clock").map(|clock| clock as u32);
        let channels = values.integer("channels") as u8;
        let bandwidth = values.rate("session-bandwidth");
        Transport::Rtp(RtpOptions {
            format: match values.text("payload").as_str() {
                "l16" => rtp::PayloadFormat::l16(clock.unwrap_or(44_100), channels, DYNAMIC_PAYLOAD_TYPE),
                _ => rtp::PayloadFormat::pcmu(clock.unwrap_or(8000), channels, DYNAMIC_PAYLOAD_TYPE),
            },
            reporting: match values.text("reports").as_str() {
                super::NONE => None,
                "reduced" => Some(rtp::Reporting::reduced(bandwidth)),
                _ => Some(rtp::Reporting::with_bandwidth(bandwidth)),
            },
            encapsulation: rtp::Encapsulation::Udp,
        })
    },
};

/// The first of the payload types that both ends agree on (RFC 3551 section 6).
const DYNAMIC_PAYLOAD_TYPE: u8 = 96;
