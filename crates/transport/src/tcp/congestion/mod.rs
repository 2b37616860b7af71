//! Congestion controls: what they are told, what they decide, and the list of them.

mod bbr;
mod bbr3;
mod cubic;
mod dctcp;
mod hystart;
mod none;
mod path;
mod prague;
mod reno;

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use trunkline_core::{Duration, Stream};

use super::config::Hystart;
use super::flow::{Flow, Phase};
use super::rate::RateSample;
use super::scoreboard::Sent;

pub(super) use none::ANY as UNLIMITED;

/// Every congestion control: a new one is a file and a line here.
pub static ALGORITHMS: &[AlgorithmKind] =
    &[reno::KIND, cubic::KIND, bbr::KIND, bbr3::KIND, dctcp::KIND, prague::KIND, none::KIND];

/// A congestion control that a file can name.
pub struct AlgorithmKind {
    /// The name of the kernel's module, where the kernel has it.
    pub name: &'static str,
    /// For the reference.
    pub doc: &'static str,
    /// Whether it works only with pacing.
    pub needs_pacing: bool,
    /// Whether it works only with marks (RFC 3168).
    pub needs_ecn: bool,
    /// Whether its packets ask for the low-latency service (RFC 9331): they are sent as ECT(1).
    pub is_l4s: bool,
    pub(super) make: fn(&Making<'_>) -> Box<dyn CongestionControl>,
}

/// What an algorithm is made from.
pub(super) struct Making<'m> {
    pub(super) hystart: Hystart,
    pub(super) initial_window: u32,
    pub(super) stream: &'m dyn Fn() -> Stream,
}

/// A congestion control by name. The default is CUBIC.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub struct Algorithm(&'static AlgorithmKind);

impl Algorithm {
    /// Reno.
    pub fn reno() -> Algorithm {
        Algorithm(&ALGORITHMS[0])
    }

    /// Its entry in the list.
    pub fn kind(self) -> &'static AlgorithmKind {
        self.0
    }

    /// Its name in a file.
    pub fn name(self) -> &'static str {
        self.0.name
    }
}

impl Default for Algorithm {
    fn default() -> Algorithm {
        Algorithm(&ALGORITHMS[1])
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Algorithm) -> bool {
        self.0.name == other.0.name
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

/// A name that no congestion control has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown congestion control `{0}`; expected one of {known}", known = names())]
pub struct UnknownAlgorithm(pub String);

fn names() -> String {
    ALGORITHMS.iter().map(|kind| format!("`{}`", kind.name)).collect::<Vec<String>>().join(", ")
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;
    fn from_str(name: &str) -> Result<Algorithm, UnknownAlgorithm> {
        let found = ALGORITHMS.iter().find(|kind| kind.name == name);
        found.map(Algorithm).ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}

impl TryFrom<String> for Algorithm {
    type Error = UnknownAlgorithm;
    fn try_from(name: String) -> Result<Algorithm, UnknownAlgorithm> {
        name.parse()
    }
}

impl From<Algorithm> for &'static str {
    fn from(algorithm: Algorithm) -> &'static str {
        algorithm.name()
    }
}

/// What a connection tells its congestion control beside acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowEvent {
    /// Data is sent and nothing was in flight.
    Restart,
    /// The window has been reduced because nothing was sent for a while.
    IdleReset,
    /// The timer has run out.
    Timeout,
    /// The reduction of the window is complete.
    Reduced,
}

/// What an acknowledgement said of the round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSample {
    /// The round trip of the last segment that was acknowledged and had been sent once.
    pub(super) rtt: Option<Duration>,
}

/// A congestion control: sets the window, the threshold and, if it paces, the rate of a [`Flow`].
pub(super) trait CongestionControl: fmt::Debug + Send {
    /// The connection is established.
    fn start(&mut self, _flow: &mut Flow) {}

    /// The threshold after a loss or a mark, in segments.
    fn ssthresh(&mut self, flow: &Flow) -> u32;

    /// Grows the window: so many segments were delivered, and the network did not complain.
    fn grow(&mut self, flow: &mut Flow, acked: u32);

    /// The window after a reduction that was a mistake.
    fn undone_cwnd(&mut self, flow: &Flow) -> u32 {
        flow.cwnd.max(flow.prior_cwnd)
    }

    /// Takes the round trip of an acknowledgement, before the window changes.
    fn acked(&mut self, _flow: &mut Flow, _sample: &AckSample) {}

    /// Takes every acknowledgement before losses are looked for. `has_echo`: with the echo of a mark.
    fn arrived(&mut self, _flow: &mut Flow, _has_echo: bool) {}

    /// Whether it decides on the window at every acknowledgement, in all phases: then [`govern`](Self::govern) is called and
    /// [`grow`](Self::grow) is not, and nothing else touches the window but a timeout.
    fn governs(&self) -> bool {
        false
    }

    /// Decides on the window and the rate.
    fn govern(&mut self, _flow: &mut Flow, _sample: &RateSample) {}

    /// The phase of repair has changed from what `flow` says to `phase`.
    fn phase_changes(&mut self, _flow: &mut Flow, _phase: Phase) {}

    /// A segment counts as lost.
    fn lost(&mut self, _flow: &Flow, _sent: &Sent) {}

    /// Something happened.
    fn event(&mut self, _flow: &mut Flow, _event: FlowEvent) {}

    /// The smallest burst that is worth waiting for, in segments.
    fn min_burst(&self, _flow: &Flow) -> u32 {
        2
    }

    /// The largest burst in segments, where the control and not the host's rule decides on it.
    fn max_burst(&self, _flow: &Flow) -> Option<u32> {
        None
    }

    /// How many windows the send buffer holds.
    fn send_buffer_windows(&self) -> u32 {
        2
    }
}
