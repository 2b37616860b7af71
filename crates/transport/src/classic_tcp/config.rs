//! What a classic TCP conversation can be told.

use core::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;

/// Options of a classic TCP conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// The receive window in bytes, and the send buffer: a message is taken as long as fewer bytes than that wait here unsent
    /// or unacknowledged. There is no window scaling: of 64 KiB, 65,535 bytes are announced (RFC 793 section 3.1).
    pub window: usize,
    /// The largest payload of a segment, in bytes; the packet is 40 bytes larger. The peer's counts if it is smaller.
    pub mss: usize,
    /// How long an acknowledgement waits for company (RFC 1122 section 4.2.3.2); with 0 every segment has its own.
    pub delayed_ack: Duration,
    /// Bytes that are acknowledged at once, in full-size segments (RFC 1122 section 4.2.3.2: 2).
    pub ack_every: u32,
    /// Whether a segment without PSH is acknowledged at once, as Solaris 2 did in effect.
    pub ack_unpushed: bool,
    /// Whether the peer is told at once when reading has opened the window by two segments or by half (RFC 1122 section
    /// 4.2.3.3). Otherwise the next acknowledgement tells it, unless the window was closed: in Solaris 2 what a process reads
    /// without delay never counts against the window.
    pub window_updates: bool,
    /// Segments of fewer bytes wait while data is unacknowledged (RFC 896; RFC 1122 section 4.2.3.4), unless they are of
    /// full size; what is as large goes even where the window holds it back from being larger. 0: none waits, and the window
    /// must hold half of the largest that there was.
    pub nagle: usize,
    /// With how many segments slow start begins (RFC 2001 section 1: 1).
    pub initial_window: u32,
    /// The retransmission timer.
    pub timer: TimerConfig,
    /// Whether three duplicate acknowledgements start fast retransmit and fast recovery (RFC 2001 sections 3 and 4).
    pub fast_retransmit: bool,
    /// After how long without any answer, to a request or to data, the peer counts as gone. `None` for never.
    pub timeout: Option<Duration>,
}

/// The retransmission timer's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerConfig {
    /// The timeout before a round trip was measured (RFC 1122 section 4.2.3.1: 3 s).
    pub initial: Duration,
    /// The shortest (RFC 6298 section 2.4: 1 s).
    pub min: Duration,
    /// The longest (RFC 6298 section 2.5: 60 s at least).
    pub max: Duration,
    /// Whether a timeout that was doubled is kept until a segment that was sent once is acknowledged (Karn and Partridge
    /// 1987; RFC 6298 section 5). Otherwise any acknowledgement of new data ends it, and a timeout that has become too short
    /// stays so.
    pub keep_backoff: bool,
}

impl Default for TcpConfig {
    /// A window of 64 KiB, Ethernet's segments, RFC 1122's acknowledgements, no Nagle, RFC 2001's congestion control, and RFC
    /// 793's five minutes of patience (section 3.8).
    fn default() -> TcpConfig {
        TcpConfig {
            window: 64 << 10,
            mss: 1460,
            delayed_ack: Duration::from_millis(200),
            ack_every: 2,
            ack_unpushed: false,
            window_updates: true,
            nagle: 0,
            initial_window: 1,
            timer: TimerConfig::default(),
            fast_retransmit: true,
            timeout: Some(Duration::from_secs(300)),
        }
    }
}

impl Default for TimerConfig {
    /// RFC 1122's first timeout, RFC 6298's bounds, and Karn's rule kept.
    fn default() -> TimerConfig {
        TimerConfig {
            initial: Duration::from_secs(3),
            min: Duration::from_secs(1),
            max: Duration::from_secs(60),
            keep_backoff: true,
        }
    }
}

/// Why a classic TCP conversation cannot be set up as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TcpConfigError {
    /// A value is out of its range.
    #[error("classic TCP's {what} is {value} {unit}; expected {} to {}", range.start(), range.end())]
    Range {
        /// Which.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// Of what.
        unit: &'static str,
        /// What is possible.
        range: RangeInclusive<u64>,
    },
    /// A port of 0.
    #[error("TCP cannot use port 0; expected 1 to 65535")]
    Port,
}

/// The largest window in bytes: RFC 793 announces it in 16 bits, and 64 KiB is meant where one more is said.
pub const MAX_WINDOW: usize = 64 << 10;
/// The largest segment: what an IPv4 packet holds.
pub const MAX_MSS: usize = 65_535 - 40;
/// The smallest: Linux's.
pub(super) const MIN_MSS: usize = 48;

impl TcpConfig {
    pub(super) fn check(&self, ports: &[u16]) -> Result<(), TcpConfigError> {
        let TimerConfig { initial, min, max, .. } = self.timer;
        let micros = |duration: Duration| duration.as_nanos() / 1000;
        let hour = micros(Duration::from_secs(3600));
        for (what, value, unit, range) in [
            ("window", self.window as u64, "bytes", 1..=MAX_WINDOW as u64),
            ("maximum segment size", self.mss as u64, "bytes", MIN_MSS as u64..=MAX_MSS as u64),
            ("number of segments for an acknowledgement", self.ack_every.into(), "segments", 1..=65_535),
            ("initial window", self.initial_window.into(), "segments", 1..=65_535),
            // RFC 1122 section 4.2.3.2.
            ("delay of acknowledgements", micros(self.delayed_ack), "microseconds", 0..=500_000),
            ("shortest timeout", micros(min), "microseconds", 1..=hour),
            ("longest timeout", micros(max), "microseconds", micros(min).max(1)..=hour),
            ("first timeout", micros(initial), "microseconds", 1..=hour),
        ] {
            if !range.contains(&value) {
                return Err(TcpConfigError::Range { what, value, unit, range });
            }
        }
        if ports.contains(&0) { Err(TcpConfigError::Port) } else { Ok(()) }
    }
}
