//! TCP and MPTCP, and their options.

use trunkline_core::schema::{Default as Preset, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration};
use trunkline_transport::features;
use trunkline_transport::framing::MAX_PAYLOAD;

use super::TransportKind;
use crate::model::{TcpOptions, Transport};

/// TCP.
pub(super) const KIND: TransportKind = TransportKind {
    name: "tcp",
    doc: "TCP (RFC 9293), one connection per member: the kernel's in `live` and `wire`, smoltcp's in `sim`. Messages carry \
          a header of 40 bytes by which they are found in the byte stream and measured.",
    parameters: PARAMETERS,
    features: &features::TCP,
    max_message: MAX_PAYLOAD as u64,
    read: |values| Transport::Tcp(options(values)),
};

/// MPTCP.
pub(super) const MULTIPATH: TransportKind = TransportKind {
    name: "mptcp",
    doc: "Multipath TCP (RFC 8684), one connection per member: the kernel's, in `live` only, where Linux has it. Which \
          further paths a connection takes is for the host to say (`ip mptcp`). Connections that fell back to TCP, because \
          something on the way did not let MPTCP's options through, are counted.",
    parameters: PARAMETERS,
    features: &features::MPTCP,
    max_message: MAX_PAYLOAD as u64,
    read: |values| Transport::Mptcp(options(values)),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "window",
        kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
        default: Preset::Absent,
        doc: "Receive window: in `sim` exactly this, in `live` set as `SO_RCVBUF` and `SO_SNDBUF` (Linux \
              doubles what it is told and uses part of it for its own books). Without this key the backend's \
              default.",
    },
    Parameter {
        name: "mss",
        kind: Kind::Bytes { min: Bytes(88), max: Bytes(65_495) },
        default: Preset::Absent,
        doc: "Largest segment payload; without this key what the MTU allows.",
    },
    Parameter {
        name: "nodelay",
        kind: Kind::Flag,
        default: Preset::Text("true"),
        doc: "`TCP_NODELAY`: send at once instead of collecting small messages (Nagle, RFC 896, off).",
    },
    Parameter {
        name: "congestion-control",
        kind: Kind::Text,
        default: Preset::Absent,
        doc: "By name: `reno`, `cubic` or `none` in `sim`, whatever the kernel offers in `live`. Without this \
              key the backend's default.",
    },
    Parameter {
        name: "send-timeout",
        kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
        default: Preset::Absent,
        doc: "How long a message may wait for room in the send buffer before it is given up and counted as \
              refused (Schiavoni and Queiroz 2013: 40 ms). Without this key it waits.",
    },
];

fn options(values: &Values) -> TcpOptions {
    TcpOptions {
        window: values.bytes_if_given("window"),
        mss: values.bytes_if_given("mss"),
        nodelay: values.flag("nodelay"),
        congestion_control: values.text_if_given("congestion-control"),
        send_timeout: values.duration_if_given("send-timeout"),
    }
}
