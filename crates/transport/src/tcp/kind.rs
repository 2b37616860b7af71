//! TCP and MPTCP as experiment files name them.

mod checks;
mod keys;

use std::sync::Arc;

use trunkline_core::schema::{Default as Preset, Kind, Parameter, Value, Values};
use trunkline_core::{Bytes, Duration};

use super::segment::Options;
use super::{BufferConfig, MAX_MSS, Nagle, TcpConfig, TcpEndpoint, UnknownAlgorithm, WindowUpdates};
use crate::conversation::Features;
use crate::features;
use crate::framing::MOST_OF_STREAM;
use crate::kind::{
    Advised, Conflict, IPV4, MessageSize, Packet, Pair, Place, Sockets, StreamProtocol, TransportKind,
    TransportOptions, Written,
};
use crate::udp::IPV4_HEADER_LENGTH;
use keys::OnSockets;

/// Length of the TCP header without options, in bytes (RFC 9293 section 3.1).
const HEADER_LENGTH: u64 = 20;

/// IPv4 and TCP headers, without options.
const HEADERS: u64 = HEADER_LENGTH + IPV4_HEADER_LENGTH as u64;

/// TCP.
pub const KIND: TransportKind = TransportKind {
    name: "tcp",
    doc: "TCP (RFC 9293), one connection per member: the kernel's in `live` and `wire`; in `sim` Trunkline's, as set \
          by `profile` and the keys below it.",
    parameters: &PARAMETERS,
    features: &features::TCP,
    modes: &[],
    // With time stamps (RFC 7323).
    advised: Some(Advised { rank: 3, headers: IPV4 + 32, alike: "tcp" }),
    max_message: MOST_OF_STREAM,
    options: |values| {
        let (config, given) = keys::config(values);
        // Where the engine collects small messages, the kernel does.
        let collects =
            given.iter().any(|key| key == keys::NAGLE || key == keys::CORK) && config.nagle != Nagle::Off;
        let common = options(values);
        let nodelay = common.nodelay && !collects;
        Arc::new(Tcp(TcpOptions { config: Box::new(config), given, nodelay, ..common }))
    },
};

/// Keys that TCP and MPTCP both have.
const COMMON: [Parameter; 5] = [WINDOW, MSS, NODELAY, CONGESTION_CONTROL, SEND_TIMEOUT];
const PARAMETERS: [Parameter; COMMON.len() + 1 + keys::KEYS.len()] = {
    let mut all = [keys::PROFILES; COMMON.len() + 1 + keys::KEYS.len()];
    let mut index = 0;
    while index < COMMON.len() {
        all[index] = COMMON[index];
        index += 1;
    }
    index += 1;
    while index < all.len() {
        all[index] = keys::KEYS[index - COMMON.len() - 1].parameter;
        index += 1;
    }
    all
};

/// MPTCP.
pub const MULTIPATH: TransportKind = TransportKind {
    name: "mptcp",
    doc: "Multipath TCP (RFC 8684), one connection per member: the kernel's, on `live` and `wire`, on Linux where \
          available. The host's path manager selects additional paths (`ip mptcp`). Connections that fell \
          back to TCP because something on the path removed MPTCP's options are counted.",
    parameters: &COMMON,
    features: &features::MPTCP,
    modes: &[],
    // TCP's and the data sequence signal (RFC 8684 section 3.3).
    advised: Some(Advised { rank: 8, headers: IPV4 + 32 + 20, alike: "mptcp" }),
    max_message: MOST_OF_STREAM,
    options: |values| Arc::new(Mptcp(options(values))),
};

const WINDOW: Parameter = Parameter {
    name: "window",
    kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
    default: Preset::Absent,
    doc: "Fixed size of the receive window and of the send buffer. `sim` announces it in whole segments; real \
          sockets set `SO_RCVBUF` and `SO_SNDBUF` (Linux doubles the value and uses part of it for bookkeeping). \
          Without this key, the kernel's default, and the profile's in `sim`: Linux's buffers grow with the capacity \
          of the path, up to 3 MiB to receive and 4 MiB to send.",
};

const MSS: Parameter = Parameter {
    name: "mss",
    kind: Kind::Bytes { min: Bytes(88), max: Bytes(65_495) },
    default: Preset::Absent,
    doc: "Maximum segment size, as announced in the SYN: the largest payload of a segment without options. Time \
          stamps take 12 bytes of it. Without this key, as much as the MTU allows.",
};

const NODELAY: Parameter = Parameter {
    name: "nodelay",
    kind: Kind::Flag,
    default: Preset::Absent,
    doc: "`TCP_NODELAY`: send at once instead of collecting small messages (Nagle, RFC 896, off). Without this key, \
          true unless `nagle` or `cork` is given.",
};

const CONGESTION_CONTROL: Parameter = Parameter {
    name: "congestion-control",
    kind: Kind::Text,
    default: Preset::Absent,
    doc: "Congestion control, by name: `cubic`, `reno`, `bbr` (version 1), `bbr3` (version 3), `dctcp`, `prague` or \
          `none` in `sim`; any that the kernel offers on `wire` and `live` (`TCP_CONGESTION`), where `bbr` is the \
          kernel's version. Packets of `dctcp` are marked ECT(0), those of `prague` ECT(1). Without this key, the \
          profile's in `sim`, and the kernel's default on real sockets.",
};

const SEND_TIMEOUT: Parameter = Parameter {
    name: "send-timeout",
    kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
    default: Preset::Absent,
    doc: "Maximum time that a message waits for room in the send buffer before it is counted as refused (Schiavoni \
          and Queiroz 2013: 40 ms). Without this key, there is no limit.",
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

/// Options of TCP and MPTCP.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpOptions {
    /// Receive window: in `sim` exactly, in `live` as `SO_RCVBUF` and `SO_SNDBUF` (Linux doubles the value and
    /// uses part of it for its own books).
    pub window: Option<Bytes>,
    /// Largest segment payload.
    pub mss: Option<Bytes>,
    /// `TCP_NODELAY`: send at once instead of collecting small messages (RFC 896 off).
    pub nodelay: bool,
    /// Congestion control by name: those of `super::ALGORITHMS` in `sim`, whatever the kernel offers in `live`.
    pub congestion_control: Option<String>,
    /// Maximum time that a send blocks before the message is counted as refused (Schiavoni: 40 ms).
    pub send_timeout: Option<Duration>,
    /// The engine's options in `sim`. The segment size and the name of the congestion control are still to be taken from
    /// here.
    pub config: Box<TcpConfig>,
    /// Keys of the engine that the file gives, `profile` among them if it is not Linux's.
    pub given: Vec<String>,
}

impl Default for TcpOptions {
    /// Those of a file that gives none.
    fn default() -> TcpOptions {
        TcpOptions {
            window: None,
            mss: None,
            nodelay: true,
            congestion_control: None,
            send_timeout: None,
            config: Box::default(),
            given: Vec::new(),
        }
    }
}

#[derive(Debug)]
struct Tcp(TcpOptions);

#[derive(Debug)]
struct Mptcp(TcpOptions);

impl TransportOptions for Tcp {
    fn features(&self) -> &'static Features {
        &features::TCP
    }

    fn send_timeout(&self) -> Option<Duration> {
        self.0.send_timeout
    }

    fn in_flight(&self) -> Option<(&'static str, Bytes)> {
        Some(("window", self.0.window?))
    }

    fn in_flight_in_sim(&self) -> Option<(&'static str, Bytes)> {
        self.0.most_in_flight()
    }

    fn largest_window(&self) -> Option<Bytes> {
        (!self.0.config.window_scaling).then_some(Bytes(u16::MAX.into()))
    }

    fn whole_segments(&self, window: Bytes, mtu: Bytes) -> Option<(u64, Bytes)> {
        self.0.whole_segments(window, mtu)
    }

    fn full_packet(&self, mtu: Bytes) -> Option<Bytes> {
        Some(self.0.full_packet(mtu))
    }

    fn check(&self, written: &Written<'_>) -> Vec<Conflict> {
        checks::conflict(&self.0.config, written.values).into_iter().collect()
    }

    fn packet(&self, _message: &MessageSize<'_>) -> Packet {
        self.0.packet()
    }

    fn pair(&self, place: &Place<'_>) -> Result<Pair, String> {
        let Place { near, far, mtu, .. } = *place;
        let [one, other] = ["tcp/near", "tcp/far"].map(|end| place.bits(end));
        let config = Arc::new(self.0.on_path(mtu).map_err(|error| error.to_string())?);
        Pair::of(
            place,
            TcpEndpoint::connect(near, far, config.clone(), one),
            TcpEndpoint::listen(far, config, other),
        )
    }

    fn sockets(&self) -> Sockets {
        Sockets::Stream(StreamProtocol::Tcp, self.0.clone())
    }

    fn differences(&self) -> Vec<String> {
        let name = |key: &String| match keys::on_sockets(key)? {
            OnSockets::Option(_) => None,
            OnSockets::Sysctl(setting) => Some(format!("`{key}` (the hosts' `{setting}` holds)")),
            OnSockets::Route(setting) => Some(format!("`{key}` (the routes' `{setting}` holds)")),
            OnSockets::Nothing => Some(format!("`{key}`")),
        };
        let keys: Vec<String> = self.0.given.iter().filter_map(name).collect();
        let (keys, do_not) = match keys.as_slice() {
            [] => return Vec::new(),
            [one] => (one.clone(), "does not"),
            [before @ .., last] => (format!("{} and {last}", before.join(", ")), "do not"),
        };
        vec![format!("{keys} {do_not} apply on real sockets, where the kernel's TCP runs")]
    }
}

impl TransportOptions for Mptcp {
    fn features(&self) -> &'static Features {
        &features::MPTCP
    }

    fn send_timeout(&self) -> Option<Duration> {
        self.0.send_timeout
    }

    fn in_flight(&self) -> Option<(&'static str, Bytes)> {
        Some(("window", self.0.window?))
    }

    fn full_packet(&self, mtu: Bytes) -> Option<Bytes> {
        Some(self.0.full_packet(mtu))
    }

    fn packet(&self, _message: &MessageSize<'_>) -> Packet {
        self.0.packet()
    }

    fn pair(&self, _place: &Place<'_>) -> Result<Pair, String> {
        Err("`mptcp` is the kernel's, which the simulator does not have; use `tcp`".to_owned())
    }

    fn sockets(&self) -> Sockets {
        Sockets::Stream(StreamProtocol::Mptcp, self.0.clone())
    }
}

impl TcpOptions {
    /// The smallest of the windows and buffers that do not grow beyond what the file or the profile allows.
    fn most_in_flight(&self) -> Option<(&'static str, Bytes)> {
        let TcpConfig { receive_buffer, send_buffer, window_scaling, .. } = &*self.config;
        let is_fixed = |buffer: &BufferConfig| buffer.initial == buffer.max;
        let is_given = |key: &str| self.given.iter().any(|given| given == key);
        let limits = [
            ("max-window", is_given("max-window"), receive_buffer.max),
            ("window", is_fixed(receive_buffer), receive_buffer.max),
            ("window-scaling", !window_scaling, usize::from(u16::MAX)),
            ("send-buffer", is_fixed(send_buffer), send_buffer.max),
        ];
        let limits = limits.into_iter().filter(|(_, limits, _)| *limits);
        limits.map(|(option, _, bytes)| (option, Bytes(bytes as u64))).min_by_key(|(_, bytes)| *bytes)
    }

    /// A window that is not scaled is announced in whole segments, of which time stamps take a part.
    fn whole_segments(&self, window: Bytes, mtu: Bytes) -> Option<(u64, Bytes)> {
        let TcpConfig { receive_buffer, window_scaling, window_updates, timestamps, .. } = &*self.config;
        let is_scaled = *window_scaling && receive_buffer.memory() > usize::from(u16::MAX);
        let is_rounded = *window_updates == WindowUpdates::Doubled && !is_scaled;
        let segment = self.largest_segment(Some(mtu)).filter(|_| is_rounded)?.count();
        let count = window.count().checked_div(segment).filter(|count| *count > 0)?;
        let stamps = if *timestamps { Options::TIMESTAMPS_LENGTH as u64 } else { 0 };
        Some((count, Bytes(segment.saturating_sub(stamps))))
    }

    fn full_packet(&self, mtu: Bytes) -> Bytes {
        // Half a window is always sent in one segment, if that is not larger than the largest.
        let half = self.window.map_or(mtu, |window| Bytes(window.count() / 2));
        self.mss.unwrap_or(mtu).min(mtu).min(half)
    }

    fn packet(&self) -> Packet {
        let Some(mss) = self.mss.map(Bytes::count) else { return Packet::Fits };
        let bytes = mss + HEADERS;
        let what = format!("segments of {mss} B make packets of {bytes} B");
        Packet::Needs { bytes, what, key: Some("mss") }
    }

    /// The engine's options for a path; a congestion control that it does not have is refused.
    fn on_path(&self, mtu: Option<Bytes>) -> Result<TcpConfig, UnknownAlgorithm> {
        let mut config = (*self.config).clone();
        if let Some(mss) = self.largest_segment(mtu) {
            config.mss = mss.count() as usize;
        }
        if let Some(name) = &self.congestion_control {
            config.congestion_control = name.parse()?;
        }
        Ok(config)
    }

    /// Without `mss`, segments are as large as the path carries, as path MTU discovery (RFC 1191) would find.
    fn largest_segment(&self, mtu: Option<Bytes>) -> Option<Bytes> {
        let by_mtu = |mtu: Bytes| Bytes(mtu.count().saturating_sub(HEADERS).min(MAX_MSS as u64));
        self.mss.or(mtu.map(by_mtu))
    }
}
