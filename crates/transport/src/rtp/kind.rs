//! RTP as experiment files name it.

use std::sync::Arc;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Rate};

use super::{HEADERS, MAX_MESSAGE, PayloadFormat, Reporting, RtpConfig, RtpEndpoint};
use crate::conversation::Features;
use crate::features;
use crate::framing::HEADER_LENGTH;
use crate::kind::{MessageSize, NONE, Packet, Pair, Place, TransportKind, TransportOptions};
use crate::udp::UdpConfig;

/// RTP.
pub const KIND: TransportKind = TransportKind {
    name: "rtp",
    doc: "RTP and RTCP (RFC 3550) over UDP, multiplexed on one port (RFC 5761), with one session per member. \
          Every message is the payload of one packet. There is no retransmission or rate control, and \
          duplicates are dropped. Both ends send reports while either end sends data.",
    parameters: &[
        Parameter {
            name: "payload",
            kind: Kind::Choice(&[
                Choice { name: "pcmu", doc: "mu-law, a byte per sample (RFC 3551 section 4.5.14)" },
                Choice { name: "l16", doc: "linear, two bytes per sample (RFC 3551 section 4.5.11)" },
            ]),
            default: Preset::Text("pcmu"),
            doc: "Payload format, which determines the unit of the timestamps.",
        },
        Parameter {
            name: "clock",
            kind: Kind::Integer { min: 1000, max: 768_000 },
            default: Preset::Absent,
            doc: "Samples per second. Without this key, 8000 for `pcmu` and 44100 for `l16`.",
        },
        Parameter {
            name: "channels",
            kind: Kind::Integer { min: 1, max: 255 },
            default: Preset::Text("1"),
            doc: "Number of channels, whose samples are interleaved.",
        },
        Parameter {
            name: "reports",
            kind: Kind::Choice(&[
                Choice { name: "fixed", doc: "at least about 5 s" },
                Choice {
                    name: "reduced",
                    doc: "at least about 360 s, divided by `session-bandwidth` in kbit/s",
                },
                Choice { name: NONE, doc: "no reports" },
            ]),
            default: Preset::Text("fixed"),
            doc: "Interval between the reports of each end. It is random, and so long that all reports \
                  together take 5 % of `session-bandwidth` (RFC 3550 section 6.2).",
        },
        Parameter {
            name: "session-bandwidth",
            kind: Kind::Rate {
                min: Rate::from_bits_per_second(1000),
                max: Rate::from_bits_per_second(1_000_000_000_000),
            },
            default: Preset::Text("64 kbit/s"),
            doc: "Expected bandwidth of the session, which determines the rate of reports.",
        },
    ],
    features: &features::RTP,
    modes: &[],
    advised: None,
    max_message: MAX_MESSAGE as u64,
    options: |values| {
        // At most 768,000 and 255.
        let clock = values.integer_if_given("clock").map(|clock| clock as u32);
        let channels = values.integer("channels") as u8;
        let bandwidth = values.rate("session-bandwidth");
        Arc::new(Rtp {
            format: match values.text("payload").as_str() {
                "l16" => PayloadFormat::l16(clock.unwrap_or(44_100), channels, DYNAMIC_PAYLOAD_TYPE),
                _ => PayloadFormat::pcmu(clock.unwrap_or(8000), channels, DYNAMIC_PAYLOAD_TYPE),
            },
            reporting: match values.text("reports").as_str() {
                NONE => None,
                "reduced" => Some(Reporting::reduced(bandwidth)),
                _ => Some(Reporting::with_bandwidth(bandwidth)),
            },
        })
    },
};

/// The first of the payload types that both ends agree on (RFC 3551 section 6).
const DYNAMIC_PAYLOAD_TYPE: u8 = 96;

#[derive(Debug)]
struct Rtp {
    format: PayloadFormat,
    reporting: Option<Reporting>,
}

impl TransportOptions for Rtp {
    fn features(&self) -> &'static Features {
        &features::RTP
    }

    fn full_packet(&self, mtu: Bytes) -> Option<Bytes> {
        Some(mtu)
    }

    fn packet(&self, message: &MessageSize<'_>) -> Packet {
        Packet::of_message(message, HEADERS, "")
    }

    fn pair(&self, place: &Place<'_>) -> Result<Pair, String> {
        let config = |end: &str| {
            // A name that has too many bytes is cut: it only has to be another one at each end.
            let mut cname = format!("{end}/{}@{}", place.member, place.flow);
            cname.truncate(cname.floor_char_boundary(255));
            RtpConfig {
                // Every message begins with the header by which it is measured.
                preamble: HEADER_LENGTH,
                reporting: self.reporting,
                udp: UdpConfig { encapsulation: place.udp_encapsulation(), ..UdpConfig::default() },
                cname,
                ..RtpConfig::new(self.format, place.stream(&format!("rtp/{end}")))
            }
        };
        let Place { near, far, .. } = *place;
        Pair::of(
            place,
            RtpEndpoint::new(near, far, config("near")),
            RtpEndpoint::new(far, near, config("far")),
        )
    }

    fn not_for_sessions(&self) -> Option<String> {
        Some("RTP is a packet format; its transport is `udp`".to_owned())
    }
}
