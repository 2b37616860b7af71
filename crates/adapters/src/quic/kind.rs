//! QUIC as experiment files name it.

use std::sync::Arc;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration};
use trunkline_transport::framing::MOST_OF_STREAM;
use trunkline_transport::kind::{
    Advised, Conflict, FeatureMode, FlowNeeds, IPV4_UDP, MessageSize, Packet, Pair, Place, TransportKind,
    TransportOptions, WHOLE, smaller,
};
use trunkline_transport::{Features, features};

use super::{
    CongestionControl, DATAGRAM_OVERHEAD, HEADERS, Identity, Mode, PACKET, QuicConfig, QuicEndpoint,
};

/// QUIC.
pub const KIND: TransportKind = TransportKind {
    name: "quic",
    doc: "QUIC (RFC 9000), one connection per member, which carries all its channels. Packets are encrypted \
          (TLS 1.3 with AES-128-GCM); the client trusts one certificate, made for the conversation. Links \
          on the path must carry packets of 1228 bytes. The guarantees depend on `mode`: one stream \
          behaves like TCP, datagrams behave like UDP with congestion control. A client fills the datagrams of \
          its handshake up to the MTU (RFC 9000 section 14.1 asks for 1200 bytes), also the last one: a \
          message sent right after it waits until the link has transmitted it, 12 ms at 1 Mbit/s.",
    parameters: &[
        Parameter {
            name: "mode",
            kind: Kind::Choice(&[
                Choice {
                    name: "stream",
                    doc: "all messages share one stream, a byte stream: reliable and ordered",
                },
                Choice {
                    name: "streams",
                    doc: "each message has its own stream: reliable, and a loss delays no other message",
                },
                Choice {
                    name: "datagrams",
                    doc: "each message is a datagram (RFC 9221) in one packet: neither retransmitted nor \
                          ordered",
                },
            ]),
            default: Preset::Text("stream"),
            doc: "Mapping of messages to streams or datagrams.",
        },
        Parameter {
            name: "congestion-control",
            kind: Kind::Choice(&[
                Choice { name: "cubic", doc: "CUBIC (RFC 9438)" },
                Choice { name: "new-reno", doc: "NewReno (RFC 9002 section 7)" },
            ]),
            default: Preset::Text("cubic"),
            doc: "Congestion control, in both directions. It paces packets, and reacts to marks (ECN) as to \
                  losses.",
        },
        Parameter {
            name: "window",
            kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
            default: Preset::Text("1 MiB"),
            doc: "Receive window of streams. With datagrams, the size of the receive buffer; datagrams that find it \
                  full are dropped.",
        },
        Parameter {
            name: "send-buffer",
            kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
            default: Preset::Absent,
            doc: "Size of the send buffer. Stream data stays in it until it is acknowledged, datagrams until \
                  congestion control sends them. Without this key, the size of the window for streams, \
                  and 64 KiB for datagrams.",
        },
        Parameter {
            name: "send-timeout",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
            default: Preset::Absent,
            doc: "Maximum time that a message waits for room in the send buffer before it is counted as \
                  refused. Without this key, there is no limit.",
        },
    ],
    features: &features::QUIC,
    modes: &[
        FeatureMode { option: "mode = \"streams\"", features: &features::QUIC_STREAMS },
        FeatureMode { option: "mode = \"datagrams\"", features: &features::QUIC_DATAGRAMS },
    ],
    // Short header with an 8-byte connection ID, a STREAM frame, and the tag of the cipher (RFC 9000, RFC 9001).
    advised: Some(Advised { rank: 6, headers: IPV4_UDP + 11 + 8 + 16, alike: "quic" }),
    max_message: MOST_OF_STREAM,
    options: |values| {
        Arc::new(Quic {
            // The words are those of the choices.
            mode: values.text("mode").parse().unwrap_or_default(),
            congestion_control: values.text("congestion-control").parse().unwrap_or_default(),
            window: values.bytes("window"),
            send_buffer: values.bytes_if_given("send-buffer"),
            send_timeout: values.duration_if_given("send-timeout"),
        })
    },
};

#[derive(Debug)]
struct Quic {
    mode: Mode,
    congestion_control: CongestionControl,
    window: Bytes,
    send_buffer: Option<Bytes>,
    send_timeout: Option<Duration>,
}

impl Quic {
    /// Packets are as large as the path carries. Paths that carry too little for QUIC are refused when the file is read.
    fn config(&self, place: &Place<'_>) -> QuicConfig {
        let defaults = QuicConfig::default();
        let window = self.window.count() as usize;
        // A sender that can just fill its peer's window: more would only add delay before the network.
        let send_buffer = if self.mode == Mode::Datagrams { 64 << 10 } else { window };
        QuicConfig {
            mode: self.mode,
            congestion_control: self.congestion_control,
            window,
            encapsulation: place.udp_encapsulation(),
            send_buffer: self.send_buffer.map_or(send_buffer, |bytes| bytes.count() as usize),
            mtu: place
                .mtu
                .map_or(defaults.mtu, |mtu| (mtu.count() as usize).clamp(*PACKET.start(), *PACKET.end())),
            ..defaults
        }
    }
}

impl TransportOptions for Quic {
    fn features(&self) -> &'static Features {
        &features::QUIC
    }

    fn keeps_messages(&self) -> bool {
        self.mode != Mode::Stream
    }

    fn is_reliable(&self) -> bool {
        self.mode != Mode::Datagrams
    }

    fn buffers(&self) -> Bytes {
        let sent = self.send_buffer.unwrap_or(self.window);
        Bytes(sent.count().saturating_add(self.window.count()))
    }

    fn send_timeout(&self) -> Option<Duration> {
        self.send_timeout
    }

    fn in_flight(&self) -> Option<(&'static str, Bytes)> {
        (self.mode != Mode::Datagrams).then(|| smaller(self.window, self.send_buffer))
    }

    fn check_use(&self, flow: &FlowNeeds<'_>) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        if flow.headerless && self.mode != Mode::Stream {
            let message = format!(
                "without a header every message must arrive in order, which mode `{}` does not guarantee; omit \
                 `mode`",
                self.mode.name()
            );
            conflicts.push(Conflict::new("mode", message));
        }
        if flow.repair && self.mode == Mode::Datagrams {
            let message = flow.would_wait("a reply were lost", "use `mode = \"streams\"`");
            conflicts.push(Conflict::new("mode", message));
        }
        conflicts
    }

    fn packet(&self, message: &MessageSize<'_>) -> Packet {
        let (least, most) = (*PACKET.start() as u64, *PACKET.end() as u64);
        if self.mode != Mode::Datagrams {
            let what = format!("QUIC needs packets of {least} B");
            return Packet::Needs { bytes: least, what, key: Some(WHOLE) };
        }
        let MessageSize { noun, size, whole, varies, .. } = *message;
        // Where sizes vary, some datagrams may pass; those that do not are refused as too large. Packets of handshakes are
        // large in any case.
        let data = if varies { 0 } else { whole };
        let bytes = data.saturating_add((DATAGRAM_OVERHEAD + HEADERS) as u64).max(least);
        if bytes > most {
            let message = format!(
                "{noun} of {size} B makes a datagram of {bytes} B with all headers; QUIC's packets here are at most {most} B"
            );
            return Packet::TooLarge { message, key: None };
        }
        let what = format!("{noun} of {size} B makes a packet of up to {bytes} B");
        Packet::Needs { bytes, what, key: None }
    }

    fn pair(&self, place: &Place<'_>) -> Result<Pair, String> {
        let (Place { near, far, .. }, config) = (*place, self.config(place));
        // Both ends know the run's seed, and so the certificate of this member.
        let mut stream = place.stream("quic/identity");
        let mut secret = [0; 32];
        for word in secret.chunks_exact_mut(8) {
            word.copy_from_slice(&stream.bits().to_le_bytes());
        }
        let identity = Identity::new(secret).map_err(|error| error.to_string())?;
        let fingerprint = identity.fingerprint();
        Pair::of(
            place,
            QuicEndpoint::connect(near, far, &config, fingerprint, place.bits("quic/near")),
            QuicEndpoint::listen(far, &config, &identity, place.bits("quic/far")),
        )
    }
}
