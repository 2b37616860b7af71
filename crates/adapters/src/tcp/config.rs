//! What a TCP conversation can be told.

use core::ops::RangeInclusive;
use core::str::FromStr;

use trunkline_core::Duration;

/// Options of a TCP conversation in virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// The receive window in bytes: how much may be under way to this end and unread here. Exactly that; no doubling
    /// as in Linux's `SO_RCVBUF`.
    pub window: usize,
    /// How many bytes of taken messages wait here until the peer has acknowledged them. It must hold at least the
    /// peer's window, or it is what limits the throughput.
    pub send_buffer: usize,
    /// The largest payload of a segment, in bytes; the packet is 40 bytes larger.
    pub mss: usize,
    /// Sends small messages at once instead of collecting them while data is unacknowledged (Nagle, RFC 896).
    pub nodelay: bool,
    /// How the sender reacts to loss.
    pub congestion_control: CongestionControl,
    /// After how long without any answer, to a connection request or to data, the peer counts as gone. `None` for
    /// never. Below a second the first lost packet ends the conversation: the retransmission timer starts at one
    /// second (RFC 6298 section 2.1).
    pub timeout: Option<Duration>,
}

impl Default for TcpConfig {
    /// A window of 64 KiB, Ethernet's segments, Nagle on and CUBIC as in Linux, and a minute's patience.
    fn default() -> TcpConfig {
        TcpConfig {
            window: 64 << 10,
            send_buffer: 128 << 10,
            mss: 1460,
            nodelay: false,
            congestion_control: CongestionControl::Cubic,
            timeout: Some(Duration::from_secs(60)),
        }
    }
}

/// Congestion control algorithms that the engine has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// None: only the receive window limits the sender, as before 1988.
    None,
    /// Reno (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
}

impl CongestionControl {
    /// All of them.
    pub const ALL: [CongestionControl; 3] =
        [CongestionControl::None, CongestionControl::Reno, CongestionControl::Cubic];

    /// The word in an experiment file.
    pub const fn name(self) -> &'static str {
        match self {
            CongestionControl::None => "none",
            CongestionControl::Reno => "reno",
            CongestionControl::Cubic => "cubic",
        }
    }
}

impl FromStr for CongestionControl {
    type Err = TcpConfigError;
    fn from_str(name: &str) -> Result<CongestionControl, TcpConfigError> {
        CongestionControl::ALL
            .into_iter()
            .find(|known| known.name() == name)
            .ok_or_else(|| TcpConfigError::CongestionControl(name.to_owned()))
    }
}

/// Why a TCP conversation cannot be set up as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TcpConfigError {
    /// A size is out of its range.
    #[error("TCP's {what} is {value} bytes; expected {} to {}", range.start(), range.end())]
    Size {
        /// Which.
        what: &'static str,
        /// What was asked for.
        value: usize,
        /// What is possible.
        range: RangeInclusive<usize>,
    },
    /// A port of 0.
    #[error("TCP cannot use port 0; expected 1 to 65535")]
    Port,
    /// An unknown algorithm.
    #[error("congestion control `{0}` is not known in virtual time; expected `none`, `reno` or `cubic`")]
    CongestionControl(String),
}

/// Windows that window scaling can express (RFC 7323 section 2.3).
const WINDOW: RangeInclusive<usize> = 1..=1 << 30;
/// Linux's smallest segment, and the largest that an IPv4 packet holds.
const MSS: RangeInclusive<usize> = 48..=65_535 - 40;

impl TcpConfig {
    pub(super) fn check(&self, ports: &[u16]) -> Result<(), TcpConfigError> {
        for (what, value, range) in [
            ("receive window", self.window, WINDOW),
            ("send buffer", self.send_buffer, WINDOW),
            ("maximum segment size", self.mss, MSS),
        ] {
            if !range.contains(&value) {
                return Err(TcpConfigError::Size { what, value, range });
            }
        }
        if ports.contains(&0) { Err(TcpConfigError::Port) } else { Ok(()) }
    }
}
