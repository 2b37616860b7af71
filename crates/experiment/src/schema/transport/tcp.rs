//! TCP and MPTCP, and their options.

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration};
use trunkline_transport::classic_tcp::{MAX_MSS, TimerConfig};
use trunkline_transport::features;
use trunkline_transport::framing::MAX_PAYLOAD;

use super::TransportKind;
use crate::model::{ClassicTcpOptions, TcpEngine, TcpOptions, Transport};

const CLASSIC: &str = "classic";

/// A millisecond to an hour.
const TIMEOUT: Kind = Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(3600) };

/// TCP.
pub(super) const KIND: TransportKind = TransportKind {
    name: "tcp",
    doc: "TCP (RFC 9293), one connection per member: the kernel's in `live` and `wire`; in `sim` as `engine` says.",
    parameters: &[
        WINDOW,
        MSS,
        NODELAY,
        CONGESTION_CONTROL,
        SEND_TIMEOUT,
        Parameter {
            name: "engine",
            kind: Kind::Choice(&[
                Choice {
                    name: "modern",
                    doc: "ours, which behaves as Linux 6.1's: CUBIC with HyStart, time stamps, selective acknowledgements with RACK \
                            and tail loss probes, timeouts of at least 200 ms, buffers that grow",
                },
                Choice {
                    name: CLASSIC,
                    doc: "ours, as hosts had it in the 1990s: RFC 793, RFC 1122 and the congestion control of RFC 2001",
                },
            ]),
            default: Preset::Text("modern"),
            doc: "Whose TCP it is in `sim`; `live` refuses `classic`. A classic TCP announces at most 65,535 bytes, which \
                  `window` is also to its send buffer (64 KiB without that key): it takes a message of any size while less \
                  waits there. It has `nagle` instead of `nodelay`, and a congestion control of its own. All keys below are \
                  its alone; the modern engine does not look at them.",
        },
        Parameter {
            name: "delayed-ack",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_millis(500) },
            default: Preset::Text("200 ms"),
            doc: "How long an acknowledgement waits for data or another segment to go with (RFC 1122 section 4.2.3.2); with 0 \
                  every segment has its own at once. Counted from the first segment that is not acknowledged.",
        },
        Parameter {
            name: "ack-every",
            kind: Kind::Integer { min: 1, max: 1000 },
            default: Preset::Text("2"),
            doc: "So many full-size segments are acknowledged at once (RFC 1122 section 4.2.3.2): as many bytes as they hold, in \
                  however many segments.",
        },
        Parameter {
            name: "ack-unpushed",
            kind: Kind::Flag,
            default: Preset::Text("false"),
            doc: "Acknowledges a segment without PSH at once, as Solaris 2 did in effect: more is known to follow, and only what \
                  ends a burst waits for `delayed-ack`.",
        },
        Parameter {
            name: "window-updates",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Tells the sender at once when reading has opened the window by two segments or by half (RFC 1122 section \
                  4.2.3.3). Without them the next acknowledgement says so, unless the window was closed: as in Solaris 2, \
                  where what is read without delay never counts against the window.",
        },
        Parameter {
            name: "nagle",
            kind: Kind::Bytes { min: Bytes(0), max: Bytes(MAX_MSS as u64) },
            default: Preset::Text("0 B"),
            doc: "Segments smaller than this wait while data is unacknowledged (RFC 896); the largest segment makes it the \
                  algorithm of RFC 1122 section 4.2.3.4, 0 turns it off. A limit between them is also what a window must hold \
                  to be used; without one, half of the largest window that there was.",
        },
        Parameter {
            name: "initial-window",
            kind: Kind::Integer { min: 1, max: 1000 },
            default: Preset::Text("1"),
            doc: "With how many segments slow start begins (RFC 2001 section 1: 1; RFC 6928 allows 10).",
        },
        Parameter {
            name: "rto-initial",
            kind: TIMEOUT,
            default: Preset::Text("3 s"),
            doc: "The retransmission timeout before a round trip was measured (RFC 1122 section 4.2.3.1).",
        },
        Parameter {
            name: "rto-min",
            kind: TIMEOUT,
            default: Preset::Text("1 s"),
            doc: "The shortest retransmission timeout (RFC 6298 section 2.4).",
        },
        Parameter {
            name: "rto-max",
            kind: TIMEOUT,
            default: Preset::Text("60 s"),
            doc: "The longest retransmission timeout (RFC 6298 section 2.5).",
        },
        Parameter {
            name: "keep-backoff",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Keeps a retransmission timeout that was doubled until a segment that was sent once is acknowledged (Karn; RFC \
                  6298 section 5). Otherwise any acknowledgement of new data ends it, and where the round trip has become \
                  longer than the timeout every segment is sent twice for good (compare RFC 2525 sections 2.7 and 2.10).",
        },
        Parameter {
            name: "fast-retransmit",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Three duplicate acknowledgements start fast retransmit and fast recovery (RFC 2001 sections 3 and 4); \
                  otherwise only the timer repairs losses.",
        },
    ],
    features: &features::TCP,
    max_message: MAX_PAYLOAD as u64,
    read: |values| Transport::Tcp(TcpOptions { engine: engine(values), ..options(values) }),
};

/// MPTCP.
pub(super) const MULTIPATH: TransportKind = TransportKind {
    name: "mptcp",
    doc: "Multipath TCP (RFC 8684), one connection per member: the kernel's, in `live` only, where Linux has it. Which \
          further paths a connection takes is for the host to say (`ip mptcp`). Connections that fell back to TCP, because \
          something on the way did not let MPTCP's options through, are counted.",
    parameters: &[WINDOW, MSS, NODELAY, CONGESTION_CONTROL, SEND_TIMEOUT],
    features: &features::MPTCP,
    max_message: MAX_PAYLOAD as u64,
    read: |values| Transport::Mptcp(options(values)),
};

const WINDOW: Parameter = Parameter {
    name: "window",
    kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
    default: Preset::Absent,
    doc: "Receive window, and with it the send buffer: in `sim` this, of which whole segments are announced, in `live` set as `SO_RCVBUF` and `SO_SNDBUF` (Linux \
          doubles what it is told and uses part of it for its own books). Without this key the kernel's \
          default, which `sim` has too: buffers that grow with what the path carries, to 3 MiB received and 4 MiB sent.",
};

const MSS: Parameter = Parameter {
    name: "mss",
    kind: Kind::Bytes { min: Bytes(88), max: Bytes(65_495) },
    default: Preset::Absent,
    doc: "Maximum segment size, as announced in the SYN: the largest payload of a segment without options. Time stamps, which \
          `modern` has, take 12 bytes of it. Without this key what the MTU allows.",
};

const NODELAY: Parameter = Parameter {
    name: "nodelay",
    kind: Kind::Flag,
    default: Preset::Text("true"),
    doc: "`TCP_NODELAY`: send at once instead of collecting small messages (Nagle, RFC 896, off).",
};

const CONGESTION_CONTROL: Parameter = Parameter {
    name: "congestion-control",
    kind: Kind::Text,
    default: Preset::Absent,
    doc: "By name: `cubic`, `reno`, `bbr`, `dctcp` or `none` in `sim`, whatever the kernel offers in `live`. Without this \
          key `cubic` in `sim` and the kernel's default in `live`.",
};

const SEND_TIMEOUT: Parameter = Parameter {
    name: "send-timeout",
    kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
    default: Preset::Absent,
    doc: "How long a message may wait for room in the send buffer before it is given up and counted as \
          refused (Schiavoni and Queiroz 2013: 40 ms). Without this key it waits.",
};

fn options(values: &Values) -> TcpOptions {
    TcpOptions {
        window: values.bytes_if_given("window"),
        mss: values.bytes_if_given("mss"),
        nodelay: values.flag("nodelay"),
        congestion_control: values.text_if_given("congestion-control"),
        send_timeout: values.duration_if_given("send-timeout"),
        engine: TcpEngine::Modern,
    }
}

fn engine(values: &Values) -> TcpEngine {
    if values.text("engine") != CLASSIC {
        return TcpEngine::Modern;
    }
    TcpEngine::Classic(ClassicTcpOptions {
        delayed_ack: values.duration("delayed-ack"),
        // At most 1000, as the initial window.
        ack_every: values.integer("ack-every") as u32,
        ack_unpushed: values.flag("ack-unpushed"),
        window_updates: values.flag("window-updates"),
        nagle: values.bytes("nagle"),
        initial_window: values.integer("initial-window") as u32,
        timer: TimerConfig {
            initial: values.duration("rto-initial"),
            min: values.duration("rto-min"),
            max: values.duration("rto-max"),
            keep_backoff: values.flag("keep-backoff"),
        },
        fast_retransmit: values.flag("fast-retransmit"),
    })
}
