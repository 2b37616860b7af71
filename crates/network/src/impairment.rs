//! Impairments: what happens to packets on a link beside queueing, transmission and propagation.
//!
//! Each impairment draws from a stream of its own, once for every packet transmitted and whatever the others decide
//! about that packet. Switching one on, or changing its strength, therefore never changes which packets another one
//! hits.

mod jitter;
mod loss;
mod stage;

#[cfg(test)]
mod tests;

use trunkline_core::schema::{Default as Preset, Kind, Parameter, Values};
use trunkline_core::{Custom, Distribution, Duration, Ratio};

pub use loss::{LossKind, LossModel};
pub(crate) use stage::Stage;

/// The impairments of one direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Random loss after transmission.
    pub loss: Loss,
    /// Extra delay, drawn per packet from a distribution of nanoseconds; arrival order is kept.
    pub jitter: Option<Distribution>,
    /// The correlation time of the jitter; without it, packets' delays are independent.
    pub jitter_memory: Option<Duration>,
    /// The share of packets that are held back by `reorder_by`, so that later ones overtake them.
    pub reorder: Ratio,
    /// How long a reordered packet is held back.
    pub reorder_by: Duration,
    /// The share of packets that arrive twice.
    pub duplicate: Ratio,
    /// The share of packets of which one bit is flipped.
    pub corrupt: Ratio,
}

/// A loss model.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Every packet with the same probability, independently.
    Bernoulli(Ratio),
    /// A two-state Markov chain, stepped once per packet before the packet's loss is drawn (Gilbert 1960, Elliott
    /// 1963). It starts in the good state. With `loss_good` 0 % and `loss_bad` 100 % the mean length of a burst is
    /// `1 / to_good`, and the share lost is `to_bad / (to_bad + to_good)`.
    GilbertElliott {
        /// Probability of going from good to bad.
        to_bad: Ratio,
        /// Probability of going from bad to good.
        to_good: Ratio,
        /// Loss in the good state.
        loss_good: Ratio,
        /// Loss in the bad state.
        loss_bad: Ratio,
    },
    /// A two-state Markov chain in continuous time: how long a state lasts is exponential, whatever packets there are.
    /// The first packet finds it in equilibrium, bad with probability `bad / (good + bad)`.
    Bursts {
        /// Mean duration of the good state.
        good: Duration,
        /// Mean duration of the bad state.
        bad: Duration,
        /// Loss in the good state.
        loss_good: Ratio,
        /// Loss in the bad state.
        loss_bad: Ratio,
    },
    /// The losses of a function: a draw for each packet. After its last draw, nothing is lost.
    Custom(Custom<bool>),
}

/// The keys of a link's impairments in the experiment file, without `loss`, which names one of [`LOSS_KINDS`].
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "jitter",
        kind: Kind::Durations { min: Duration::ZERO, max: Duration::from_secs(3600) },
        default: Preset::Absent,
        doc: "Additional random delay of each packet, such as `{ kind = \"uniform\", min = \"0 ms\", max = \"10 ms\" }`; \
              what is the same for each packet belongs in `delay`. It does not reorder packets: a packet that would \
              overtake an earlier one arrives together with it. Without this key, there is none.",
    },
    Parameter {
        name: JITTER_MEMORY,
        kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
        default: Preset::Absent,
        doc: "Correlation time of the jitter. Two packets that leave the line a time t apart have delays correlated by \
              exp(-t/`jitter-memory`), whatever the packets between them: nearly the same delay after a hundredth of \
              it, independent ones after several times of it. Each delay alone has the distribution of `jitter` (an \
              Ornstein-Uhlenbeck process, mapped to that distribution; the correlation is exact for `normal`, \
              a little lower for `uniform` and `exponential`, and much lower for heavy tails and for a few values). \
              Without this key, delays are independent.",
    },
    Parameter {
        name: "reorder",
        kind: Kind::Ratio,
        default: Preset::Text("0 %"),
        doc: "Share of packets that are delayed by `reorder-by`, so that later packets overtake them.",
    },
    Parameter {
        name: "reorder-by",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) },
        default: Preset::Text("10 ms"),
        doc: "Delay of a packet selected by `reorder`.",
    },
    Parameter {
        name: "duplicate",
        kind: Kind::Ratio,
        default: Preset::Text("0 %"),
        doc: "Share of packets that arrive twice; the copy follows the original immediately.",
    },
    Parameter {
        name: "corrupt",
        kind: Kind::Ratio,
        default: Preset::Text("0 %"),
        doc: "Share of packets in which one random bit, at the transport layer or above, is flipped.",
    },
];

/// The key of the jitter's correlation time.
pub const JITTER_MEMORY: &str = "jitter-memory";

/// Those that do nothing without another: each with that one.
pub const NEEDS: &[(&str, &str)] = &[(JITTER_MEMORY, "jitter"), ("reorder-by", "reorder")];

/// Every loss model that an experiment file can name: `loss = { kind = "gilbert-elliott", ... }`. A plain share,
/// `loss = "1 %"`, is the `probability` of the first.
pub const LOSS_KINDS: &[LossKind] = &[loss::BERNOULLI, loss::GILBERT_ELLIOTT, loss::BURSTS, loss::CUSTOM];

/// The loss model of that name.
pub fn find_loss(name: &str) -> Option<&'static LossKind> {
    LOSS_KINDS.iter().find(|kind| kind.name == name)
}

impl Impairments {
    /// The impairments of a loss model and the values of [`PARAMETERS`].
    pub fn new(loss: Loss, values: &Values) -> Impairments {
        Impairments {
            loss,
            jitter: values.distribution_if_given("jitter"),
            jitter_memory: values.duration_if_given(JITTER_MEMORY),
            reorder: values.ratio("reorder"),
            reorder_by: values.duration("reorder-by"),
            duplicate: values.ratio("duplicate"),
            corrupt: values.ratio("corrupt"),
        }
    }
}
