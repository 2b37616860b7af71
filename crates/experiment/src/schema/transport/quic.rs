//! QUIC and its options.

use trunkline_adapters::quic::Encapsulation;
use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration};
use trunkline_transport::features;
use trunkline_transport::framing::MAX_PAYLOAD;

use super::TransportKind;
use crate::model::{QuicOptions, Transport};

/// QUIC.
pub(super) const KIND: TransportKind = TransportKind {
    name: "quic",
    doc: "QUIC (RFC 9000), one connection per member, which carries all its channels. Packets are encrypted \
          (TLS 1.3 with AES-128-GCM), and the end that connects trusts one certificate, made for the conversation. Links \
          on the way must carry packets of 1228 bytes. `mode` decides what is promised: one stream is as TCP, datagrams \
          are as UDP with congestion control.",
    parameters: &[
        Parameter {
            name: "mode",
            kind: Kind::Choice(&[
                Choice {
                    name: "stream",
                    doc: "all messages share one stream, a byte stream: reliable and in order",
                },
                Choice {
                    name: "streams",
                    doc: "every message has a stream of its own: reliable, and a loss delays no other message",
                },
                Choice {
                    name: "datagrams",
                    doc: "every message is a datagram (RFC 9221) in one packet: nothing is repaired or ordered",
                },
            ]),
            default: Preset::Text("stream"),
            doc: "What carries messages.",
        },
        Parameter {
            name: "congestion-control",
            kind: Kind::Choice(&[
                Choice { name: "cubic", doc: "CUBIC (RFC 9438)" },
                Choice { name: "new-reno", doc: "NewReno (RFC 9002 section 7)" },
            ]),
            default: Preset::Text("cubic"),
            doc: "The congestion control, both ways. It paces what it sends and reacts to marks (ECN) as to losses.",
        },
        Parameter {
            name: "window",
            kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
            default: Preset::Text("1 MiB"),
            doc: "Receive window of streams. With datagrams, how much may wait to be received: what finds no room is dropped.",
        },
        Parameter {
            name: "send-buffer",
            kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
            default: Preset::Absent,
            doc: "How much waits at the sender: of streams until it is acknowledged, of datagrams until congestion control \
                  lets it out. Without this key the window for streams, and 64 KiB for datagrams.",
        },
        Parameter {
            name: "send-timeout",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
            default: Preset::Absent,
            doc: "How long a message may wait for room in the send buffer before it is given up and counted as refused. \
                  Without this key it waits.",
        },
    ],
    features: &features::QUIC,
    max_message: MAX_PAYLOAD as u64,
    read: |values| {
        Transport::Quic(QuicOptions {
            // The words are those of the choices.
            mode: values.text("mode").parse().unwrap_or_default(),
            congestion_control: values.text("congestion-control").parse().unwrap_or_default(),
            window: values.bytes("window"),
            send_buffer: values.bytes_if_given("send-buffer"),
            encapsulation: Encapsulation::Udp,
            send_timeout: values.duration_if_given("send-timeout"),
        })
    },
};
