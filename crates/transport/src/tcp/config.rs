//! Options of a TCP connection.

use core::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use trunkline_core::{Duration, Rate};

use super::congestion::Algorithm;
pub use super::rtt::Estimator;

/// Options of one end of a TCP connection. The default is what Linux 6 does without any `sysctl` changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpConfig {
    /// The largest payload of a segment without options, in bytes. The packet is 40 bytes larger. The peer's maximum counts if
    /// it is smaller.
    pub mss: usize,
    /// The receive buffer, and so the window.
    pub receive_buffer: BufferConfig,
    /// The send buffer: a message is taken, however large, as long as fewer bytes than this wait here unsent or
    /// unacknowledged.
    pub send_buffer: BufferConfig,
    /// True if a writer who was refused hears of room when a third of the send buffer is free, as in Linux, and not at once.
    pub wakes_writer_late: bool,
    /// Window scaling (RFC 7323 section 2).
    pub window_scaling: bool,
    /// Time stamps with protection against wrapped sequence numbers (RFC 7323 sections 3 and 5).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018) with reports of duplicates (RFC 2883).
    pub sack: bool,
    /// The congestion control.
    pub congestion_control: Algorithm,
    /// How slow start ends before the first loss. Only CUBIC looks at it.
    pub hystart: Hystart,
    /// Segments that slow start begins with (RFC 6928 section 2: 10).
    pub initial_window: u32,
    /// True if the congestion window shrinks while nothing is sent (RFC 5681 section 4.1).
    pub slow_start_after_idle: bool,
    /// How losses are found and repaired before the timer runs out.
    pub recovery: Recovery,
    /// True if the last segment is repeated after two round trips without an acknowledgement (RFC 8985 section 7). Needs
    /// selective acknowledgements.
    pub tail_loss_probe: bool,
    /// True if a timeout is checked for having been too early (RFC 5682).
    pub frto: bool,
    /// The retransmission timer.
    pub timeout: TimeoutConfig,
    /// When acknowledgements are sent.
    pub acks: AckConfig,
    /// When reading is announced to the peer.
    pub window_updates: WindowUpdates,
    /// Which small segments wait while data is unacknowledged.
    pub nagle: Nagle,
    /// True if segments have half of the peer's largest window at most, as in Linux, so that two fit into it. Otherwise a
    /// segment is as small as the window makes it, if that is worth it (RFC 9293 section 3.8.6.2.1).
    pub half_window_segments: bool,
    /// True if the congestion window counts bytes and grows with every acknowledgement (RFC 2001): by a segment in slow start,
    /// by a segment per window in congestion avoidance, whether the window was full or not. Upon a loss, the smaller of it and
    /// the peer's window is halved. Otherwise it counts acknowledged segments and grows only while it is used, as in Linux.
    pub window_in_bytes: bool,
    /// Whether departures are spread over the round trip.
    pub pacing: Pacing,
    /// Departures are paced, at this rate of payload at most (`SO_MAX_PACING_RATE`).
    pub max_pacing_rate: Option<Rate>,
    /// The largest burst that reaches the network at once, in bytes: what the kernel gives to a network interface that
    /// segments by itself. At most one segment where it is smaller.
    pub burst: usize,
    /// The rate of the host's interface, which spreads bursts, and before which only little of a connection waits (TCP small
    /// queues). `None`: bursts reach the network at once.
    pub interface: Option<Rate>,
    /// Explicit congestion notification.
    pub ecn: EcnConfig,
    /// Probes of an idle connection (RFC 9293 section 3.8.4).
    pub keepalive: Option<KeepaliveConfig>,
    /// For how long sent data may stay unacknowledged before the connection is given up (RFC 5482, Linux's
    /// `TCP_USER_TIMEOUT`). `None`: `retries` decides.
    pub user_timeout: Option<Duration>,
    /// After as many doublings of the shortest timeout a connection is given up (Linux's `tcp_retries2`).
    pub retries: u32,
    /// How often a SYN is repeated (Linux's `tcp_syn_retries`).
    pub syn_retries: u32,
    /// The step of the host's timers. Linux counts in jiffies: 4 ms where the kernel was built for 250 Hz. Zero: timers are
    /// exact.
    pub tick: Duration,
}

/// A buffer: how large it is at first, and how far it grows with the connection's needs. One that may not grow has a fixed
/// size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferConfig {
    /// Bytes at the beginning.
    pub initial: usize,
    /// Bytes at most.
    pub max: usize,
}

impl BufferConfig {
    /// A buffer that does not grow.
    pub const fn fixed(bytes: usize) -> BufferConfig {
        BufferConfig { initial: bytes, max: bytes }
    }

    /// All of its memory, of which half is for what surrounds the data if it may grow, as in Linux.
    pub(super) const fn memory(&self) -> usize {
        if self.max > self.initial { self.max.saturating_mul(2) } else { self.max }
    }
}

/// The retransmission timer's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeoutConfig {
    /// The estimator.
    pub estimator: Estimator,
    /// The timeout before a round trip was measured (RFC 6298 section 2.1: 1 s).
    pub initial: Duration,
    /// The shortest (RFC 6298 section 2.4: 1 s; Linux: 200 ms).
    pub min: Duration,
    /// The longest (RFC 6298 section 2.5: at least 60 s; Linux: 120 s).
    pub max: Duration,
    /// True if a timeout that was doubled is kept until a segment that was sent once is acknowledged (Karn and Partridge 1987;
    /// RFC 6298 section 5). Otherwise any acknowledgement of new data ends it.
    pub keep_backoff: bool,
}

/// How slow start ends before the first loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hystart {
    /// With a loss only.
    Off,
    /// As Linux's CUBIC finds the end: by the length of a train of acknowledgements, or by an increase of the round trip (Ha
    /// and Rhee 2011).
    #[default]
    Linux,
    /// HyStart++ (RFC 9406).
    PlusPlus,
}

/// How losses are found and repaired before the timer runs out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recovery {
    /// By the time of sending (RFC 8985). Without the peer's selective acknowledgements NewReno.
    #[default]
    Rack,
    /// By three duplicate acknowledgements: with selective acknowledgements RFC 6675, without them NewReno (RFC 6582).
    Dupack,
    /// By three duplicate acknowledgements; one segment is repaired, and the next acknowledgement ends the recovery (RFC 2001
    /// section 4, 4.3BSD-Reno). Selective acknowledgements are not looked at.
    Reno,
    /// The timer repairs all losses.
    Timeout,
}

/// When acknowledgements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckConfig {
    /// How long an acknowledgement waits for data or another segment. With `adaptive` the shortest delay.
    pub delay: Duration,
    /// True if the delay follows the peer's rhythm up to `max_delay` (Linux's `ato`).
    pub adaptive: bool,
    /// The longest delay with `adaptive`.
    pub max_delay: Duration,
    /// This many full-size segments are acknowledged at once (RFC 9293 section 3.8.6.3: 2).
    pub every: u32,
    /// Number of segments of a new or restarted connection that are acknowledged at once (Linux: 16).
    pub quick: u32,
    /// True if a segment without PSH is acknowledged at once, as Solaris 2 did in effect.
    pub unpushed: bool,
    /// For how long acknowledgements of segments behind a gap are held back and joined, and how many at most (Linux: 1 ms or
    /// a twentieth of the round trip, 44). Zero: each is sent.
    pub compress: CompressConfig,
    /// The step of the timer for them, as [`TcpConfig::tick`].
    pub tick: Duration,
}

/// How acknowledgements of segments behind a gap are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompressConfig {
    /// For how long at most.
    pub delay: Duration,
    /// How many at most.
    pub count: u32,
}

/// When reading is announced to the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowUpdates {
    /// When it has at least doubled the window, as Linux does.
    #[default]
    Doubled,
    /// When it has opened the window by two segments or by half of the buffer (RFC 9293 section 3.8.6.2.2).
    TwoSegments,
    /// With the next acknowledgement, unless the window was closed: in Solaris 2 what a process reads without delay never
    /// counts against the window.
    WhenClosed,
}

/// Which small segments wait while data is unacknowledged (RFC 896, RFC 9293 section 3.7.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Nagle {
    /// None (`TCP_NODELAY`).
    #[default]
    Off,
    /// Those after a small segment that is unacknowledged (Minshall's variant, as in Linux).
    Minshall,
    /// Those of fewer bytes than this, which must also fit into the window to be sent. The largest segment makes it RFC 896's
    /// algorithm.
    Below(usize),
    /// All but full ones, for as long as a probe of a closed window waits (`TCP_CORK`).
    Cork,
}

/// Whether departures are spread over the round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pacing {
    /// If the congestion control needs it (BBR, Prague): what Linux does where the interface has no `fq`.
    #[default]
    Auto,
    /// Always, as with the queue `fq` at the interface: at twice the rate of the window in slow start, at 1.2 times after it.
    Always,
    /// Never.
    Never,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EcnConfig {
    /// Neither asked for nor accepted (Linux's `tcp_ecn=0`).
    Off,
    /// Accepted if the peer asks for it (Linux's `tcp_ecn=2`, the default).
    #[default]
    Accept,
    /// Asked for and accepted (RFC 3168, Linux's `tcp_ecn=1`).
    On,
    /// Asked for and accepted with accurate feedback (RFC 9768); with a peer that does not have it RFC 3168's.
    Accurate,
}

/// Probes of an idle connection (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepaliveConfig {
    /// Idle for this long before the first probe.
    pub time: Duration,
    /// Between probes.
    pub interval: Duration,
    /// So many unanswered probes end the connection.
    pub probes: u32,
}

impl Default for TcpConfig {
    /// Linux 6.1's defaults on Ethernet: CUBIC with HyStart, an initial window of 10, time stamps, selective acknowledgements
    /// and RACK, buffers that grow from 64 KiB to 3 and 4 MiB, delayed acknowledgements from 40 ms on, 15 retries.
    fn default() -> TcpConfig {
        TcpConfig {
            mss: 1460,
            // Half of `tcp_rmem`: the other half is for what surrounds the data.
            receive_buffer: BufferConfig { initial: 64 << 10, max: 3 << 20 },
            send_buffer: BufferConfig { initial: 16 << 10, max: 4 << 20 },
            wakes_writer_late: true,
            window_scaling: true,
            timestamps: true,
            sack: true,
            congestion_control: Algorithm::default(),
            hystart: Hystart::Linux,
            initial_window: 10,
            slow_start_after_idle: true,
            recovery: Recovery::Rack,
            tail_loss_probe: true,
            frto: true,
            timeout: TimeoutConfig::default(),
            acks: AckConfig::default(),
            window_updates: WindowUpdates::Doubled,
            nagle: Nagle::Off,
            half_window_segments: true,
            window_in_bytes: false,
            pacing: Pacing::Auto,
            max_pacing_rate: None,
            burst: 64 << 10,
            interface: None,
            ecn: EcnConfig::Accept,
            keepalive: None,
            user_timeout: None,
            retries: 15,
            syn_retries: 6,
            tick: Duration::from_millis(4),
        }
    }
}

impl Default for TimeoutConfig {
    /// Linux's bounds.
    fn default() -> TimeoutConfig {
        TimeoutConfig {
            estimator: Estimator::Linux,
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            max: Duration::from_secs(120),
            keep_backoff: true,
        }
    }
}

impl Default for AckConfig {
    /// Linux's.
    fn default() -> AckConfig {
        AckConfig {
            delay: Duration::from_millis(40),
            adaptive: true,
            max_delay: Duration::from_millis(200),
            every: 2,
            quick: 16,
            unpushed: false,
            compress: CompressConfig { delay: Duration::from_millis(1), count: 44 },
            tick: Duration::from_millis(4),
        }
    }
}

/// Why a TCP connection cannot be set up as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TcpConfigError {
    /// A value is out of its range.
    #[error("TCP's {what} is {value} {unit}; expected {} to {}", range.start(), range.end())]
    Range {
        /// Which.
        what: &'static str,
        /// The value.
        value: u64,
        /// Its unit.
        unit: &'static str,
        /// Possible values.
        range: RangeInclusive<u64>,
    },
    /// A port of 0.
    #[error("TCP cannot use port 0; expected 1 to 65535")]
    Port,
    /// Two options exclude each other.
    #[error("{text}")]
    Contradiction {
        /// Their keys in a file.
        keys: [&'static str; 2],
        /// Which, and what to do.
        text: &'static str,
    },
}

/// The largest segment: what an IPv4 packet holds.
pub const MAX_MSS: usize = 65_535 - 40;
/// The smallest: Linux's.
pub(super) const MIN_MSS: usize = 48;
/// What a window can express with the largest scale (RFC 7323 section 2.3).
pub const MAX_BUFFER: usize = 1 << 30;

impl TcpConfig {
    /// Checks every value and every pair of values that exclude each other.
    ///
    /// # Errors
    /// The first value that is out of its range, or the first contradiction.
    pub fn check(&self) -> Result<(), TcpConfigError> {
        let micros = |duration: Duration| duration.as_nanos() / 1000;
        let hour = micros(Duration::from_secs(3600));
        let TimeoutConfig { initial, min, max, .. } = self.timeout;
        let BufferConfig { initial: receive, max: max_receive } = self.receive_buffer;
        let BufferConfig { initial: send, max: max_send } = self.send_buffer;
        let largest = MAX_BUFFER as u64;
        for (what, value, unit, range) in [
            ("maximum segment size", self.mss as u64, "bytes", MIN_MSS as u64..=MAX_MSS as u64),
            ("receive buffer", receive as u64, "bytes", 1..=largest),
            ("largest receive buffer", max_receive as u64, "bytes", receive as u64..=largest),
            ("send buffer", send as u64, "bytes", 1..=largest),
            ("largest send buffer", max_send as u64, "bytes", send as u64..=largest),
            ("initial window", self.initial_window.into(), "segments", 1..=65_535),
            ("number of segments for an acknowledgement", self.acks.every.into(), "segments", 1..=65_535),
            // RFC 9293 section 3.8.6.3.
            ("delay of acknowledgements", micros(self.acks.delay), "microseconds", 0..=500_000),
            ("shortest timeout", micros(min), "microseconds", 1..=hour),
            ("longest timeout", micros(max), "microseconds", micros(min).max(1)..=hour),
            ("first timeout", micros(initial), "microseconds", 1..=hour),
            ("step of timers", micros(self.tick), "microseconds", 0..=1_000_000),
            ("largest burst", self.burst as u64, "bytes", 0..=1 << 20),
        ] {
            if !range.contains(&value) {
                return Err(TcpConfigError::Range { what, value, unit, range });
            }
        }
        match self.contradiction() {
            None => Ok(()),
            Some((keys, text)) => Err(TcpConfigError::Contradiction { keys, text }),
        }
    }

    /// The first two options that exclude each other, with a sentence about them.
    fn contradiction(&self) -> Option<([&'static str; 2], &'static str)> {
        let kind = self.congestion_control.kind();
        let is_paced = self.pacing != Pacing::Never;
        [
            (
                !self.sack && self.recovery == Recovery::Rack,
                ["recovery", "sack"],
                "RACK needs selective acknowledgements: leave `sack = false` out, or set `recovery = \"dupack\"`",
            ),
            (
                !self.sack && self.tail_loss_probe,
                ["tail-loss-probe", "sack"],
                "tail loss probes need selective acknowledgements: leave `sack = false` out, or set `tail-loss-probe = false`",
            ),
            (
                kind.needs_pacing && !is_paced,
                ["pacing", "congestion-control"],
                "this congestion control paces: leave `pacing = \"never\"` out, or choose another `congestion-control`",
            ),
            (
                self.max_pacing_rate.is_some() && !is_paced,
                ["pacing", "max-pacing-rate"],
                "`max-pacing-rate` needs pacing: omit it or `pacing = \"never\"`",
            ),
            (
                kind.needs_ecn && matches!(self.ecn, EcnConfig::Off),
                ["ecn", "congestion-control"],
                "this congestion control needs marks: leave `ecn = \"off\"` out, or choose another `congestion-control`",
            ),
        ]
        .into_iter()
        .find_map(|(is_contradiction, keys, text)| is_contradiction.then_some((keys, text)))
    }

    /// Checks the ports beside everything else.
    pub(super) fn check_with(&self, ports: &[u16]) -> Result<(), TcpConfigError> {
        self.check()?;
        if ports.contains(&0) { Err(TcpConfigError::Port) } else { Ok(()) }
    }
}
