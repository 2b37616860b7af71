//! TCP and MPTCP, and their options.

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter, Value, Values};
use trunkline_core::{Bytes, Duration};
use trunkline_transport::classic_tcp::TimerConfig;
use trunkline_transport::features;
use trunkline_transport::framing::MAX_PAYLOAD;
use trunkline_transport::tcp::{Nagle, TcpConfig};

use super::TransportKind;
use crate::model::{ClassicTcpOptions, TcpEngine, TcpOptions, Transport};

mod keys;

pub use keys::{OnSockets, tcp_key_on_sockets};

const CLASSIC: &str = "classic";

/// TCP.
pub(super) const KIND: TransportKind = TransportKind {
    name: "tcp",
    doc: "TCP (RFC 9293), one connection per member: the kernel's in `live` and `wire`; in `sim` as `engine` says.",
    parameters: &PARAMETERS,
    features: &features::TCP,
    max_message: MAX_PAYLOAD as u64,
    read: |values| {
        let (config, given) = keys::config(values);
        // Where the engine collects small messages, the kernel does.
        let collects =
            given.iter().any(|key| key == keys::NAGLE || key == keys::CORK) && config.nagle != Nagle::Off;
        let common = options(values);
        let nodelay = common.nodelay && !collects;
        Transport::Tcp(TcpOptions { engine: engine(values, config), given, nodelay, ..common })
    },
};

/// Keys that TCP and MPTCP both have.
const COMMON: [Parameter; 5] = [WINDOW, MSS, NODELAY, CONGESTION_CONTROL, SEND_TIMEOUT];
const PARAMETERS: [Parameter; COMMON.len() + 2 + keys::KEYS.len()] = {
    let mut all = [ENGINE; COMMON.len() + 2 + keys::KEYS.len()];
    let mut index = 0;
    while index < COMMON.len() {
        all[index] = COMMON[index];
        index += 1;
    }
    all[index + 1] = keys::PROFILES;
    index += 2;
    while index < all.len() {
        all[index] = keys::KEYS[index - COMMON.len() - 2].parameter;
        index += 1;
    }
    all
};

const ENGINE: Parameter = Parameter {
    name: "engine",
    kind: Kind::Choice(&[
        Choice { name: "modern", doc: "ours, as `profile` and the keys below say" },
        Choice {
            name: CLASSIC,
            doc: "ours, as hosts had it in the 1990s: RFC 793, RFC 1122 and the congestion control of RFC 2001",
        },
    ]),
    default: Preset::Text("modern"),
    doc: "Whose TCP it is in `sim`; `live` refuses `classic`. A classic TCP announces at most 65,535 bytes, which `window` \
          is also to its send buffer (64 KiB without that key). Of the keys below it has `nagle`, `initial-window`, \
          `fast-retransmit`, `rto-initial` (3 s), `rto-min` (1 s), `rto-max` (60 s), `keep-backoff`, `delayed-ack` (200 ms), \
          `ack-every`, `ack-unpushed` and `window-updates` only, and no `profile`.",
};

/// MPTCP.
pub(super) const MULTIPATH: TransportKind = TransportKind {
    name: "mptcp",
    doc: "Multipath TCP (RFC 8684), one connection per member: the kernel's, in `live` only, where Linux has it. Which \
          further paths a connection takes is for the host to say (`ip mptcp`). Connections that fell back to TCP, because \
          something on the way did not let MPTCP's options through, are counted.",
    parameters: &COMMON,
    features: &features::MPTCP,
    max_message: MAX_PAYLOAD as u64,
    read: |values| Transport::Mptcp(options(values)),
};

const WINDOW: Parameter = Parameter {
    name: "window",
    kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
    default: Preset::Absent,
    doc: "Receive window, and with it the send buffer, of a fixed size: in `sim` this, of which whole segments are announced, on real sockets \
          `SO_RCVBUF` and `SO_SNDBUF` (Linux doubles the value and uses part of it for its own books). Without this key the \
          kernel's default, and the profile's in `sim`: Linux's buffers grow with what the path carries, to 3 MiB received and \
          4 MiB sent.",
};

const MSS: Parameter = Parameter {
    name: "mss",
    kind: Kind::Bytes { min: Bytes(88), max: Bytes(65_495) },
    default: Preset::Absent,
    doc: "Maximum segment size, as announced in the SYN: the largest payload of a segment without options. Time stamps \
          take 12 bytes of it. Without this key what the MTU allows.",
};

const NODELAY: Parameter = Parameter {
    name: "nodelay",
    kind: Kind::Flag,
    default: Preset::Absent,
    doc: "`TCP_NODELAY`: send at once instead of collecting small messages (Nagle, RFC 896, off). Without this key true, unless \
          `nagle` or `cork` is given.",
};

const CONGESTION_CONTROL: Parameter = Parameter {
    name: "congestion-control",
    kind: Kind::Text,
    default: Preset::Absent,
    doc: "By name: `cubic`, `reno`, `bbr` (version 1), `bbr3` (version 3), `dctcp`, `prague` or `none` in `sim`, whatever the \
          kernel offers on `wire` and `live` (`TCP_CONGESTION`), where `bbr` is the version that the kernel has. Without this key the profile's in `sim`, and the kernel's default on real sockets.",
};

const SEND_TIMEOUT: Parameter = Parameter {
    name: "send-timeout",
    kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
    default: Preset::Absent,
    doc: "How long a message may wait for room in the send buffer before it is given up and counted as \
          refused (Schiavoni and Queiroz 2013: 40 ms). Without this key it waits.",
};

/// Returns true if the file has this key.
fn is_given(values: &Values, name: &str) -> bool {
    *values.value(name) != Value::Absent
}

fn options(values: &Values) -> TcpOptions {
    TcpOptions {
        window: values.bytes_if_given("window"),
        mss: values.bytes_if_given("mss"),
        nodelay: values.flag_if_given("nodelay").unwrap_or(true),
        congestion_control: values.text_if_given("congestion-control"),
        send_timeout: values.duration_if_given("send-timeout"),
        ..TcpOptions::default()
    }
}

/// `config`: what the keys come to where the modern engine runs.
fn engine(values: &Values, config: TcpConfig) -> TcpEngine {
    if values.text("engine") != CLASSIC {
        return TcpEngine::Modern(Box::new(config));
    }
    let timer = TimerConfig::default();
    let millis = Duration::from_millis;
    TcpEngine::Classic(ClassicTcpOptions {
        delayed_ack: values.duration_if_given("delayed-ack").unwrap_or(millis(200)),
        // At most 1000, as the initial window.
        ack_every: values.integer_if_given("ack-every").unwrap_or(2) as u32,
        ack_unpushed: values.flag_if_given("ack-unpushed").unwrap_or(false),
        window_updates: values.flag_if_given("window-updates").unwrap_or(true),
        nagle: values.bytes_if_given("nagle").unwrap_or(Bytes::ZERO),
        initial_window: values.integer_if_given("initial-window").unwrap_or(1) as u32,
        timer: TimerConfig {
            initial: values.duration_if_given("rto-initial").unwrap_or(timer.initial),
            min: values.duration_if_given("rto-min").unwrap_or(timer.min),
            max: values.duration_if_given("rto-max").unwrap_or(timer.max),
            keep_backoff: values.flag_if_given("keep-backoff").unwrap_or(timer.keep_backoff),
        },
        fast_retransmit: values.flag_if_given("fast-retransmit").unwrap_or(true),
    })
}
